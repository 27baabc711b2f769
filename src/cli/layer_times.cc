#include "cli/layer_times.h"

#include "support/statistics.h"

namespace tandem::cli {
namespace {

using nlohmann::json;

struct MeanAndBest {
  double sum = 0;
  double best = 0;
  int count = 0;

  void add(double value) {
    sum += value;
    best = std::max(best, value);
    ++count;
  }
  json to_json() const { return {{"mean", count > 0 ? sum / count : 0}, {"best", best}}; }
};

}  // namespace

json summary_of(const std::vector<LayerTimes>& layers) {
  json summary;
  MeanAndBest bound;
  std::vector<double> cpu_to_gpu;
  std::map<std::string, std::map<std::string, MeanAndBest>> over_better;
  std::map<std::string, std::map<std::string, MeanAndBest>> over_gpu;
  std::map<std::string, std::map<std::string, int>> divided;
  for (const LayerTimes& layer : layers) {
    const double ratio = layer.cpu_us / layer.gpu_us;
    cpu_to_gpu.push_back(ratio);
    bound.add(1 + std::min(ratio, 1 / ratio));
    for (const auto& [exchange, choices] : layer.choices) {
      for (const auto& [how, choice] : choices) {
        over_better[exchange][how].add(layer.better_lane_us() / choice.us);
        over_gpu[exchange][how].add(layer.gpu_us / choice.us);
        divided[exchange][how] += choice.divided;
      }
    }
  }
  summary["count"] = layers.size();
  summary["bound"] = bound.to_json();
  summary["cpu_us_over_gpu_us_median"] = tandem::summarize(cpu_to_gpu).median;
  for (const auto& [exchange, hows] : over_better) {
    for (const auto& [how, speed_up] : hows) {
      summary["speed_up"][exchange][how] = {{"over_better_lane", speed_up.to_json()},
                                            {"over_gpu", over_gpu[exchange][how].to_json()},
                                            {"divided", divided[exchange][how]}};
    }
  }
  return summary;
}

}  // namespace tandem::cli
