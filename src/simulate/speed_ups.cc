#include "simulate/speed_ups.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "lane/sim/slice_time.h"
#include "simulate/oracle_costs.h"

namespace tandem::simulate {
namespace {

// Output channels are cut at multiples of this.
constexpr int64_t kGranularity = 16;

// Cores of the first CPU lane.
double cpu_us(const sim::PlatformModel& model, const sim::Workload& work) {
  return sim::cpu_slice_time(model, model.lanes.front().cores, work).us;
}
double gpu_us(const sim::PlatformModel& model, const sim::Workload& work) {
  return sim::gpu_slice_time(model, work).us;
}

sim::Workload with_channels(const sim::Workload& whole, int64_t channels) {
  sim::Workload part = whole;
  const double share = static_cast<double>(channels) / static_cast<double>(whole.out_channels);
  part.out_channels = channels;
  part.flops *= share;
  part.weight_elements *= share;
  part.output_elements *= share;
  return part;
}

sim::Workload upper_half(const sim::Workload& whole) {
  sim::Workload part = whole;
  part.out_h = whole.out_h / 2;
  part.in_h = std::min(whole.in_h, part.out_h * whole.stride + whole.kernel_h - 1);
  part.flops *= 0.5;
  part.output_elements *= 0.5;
  part.input_elements *= static_cast<double>(part.in_h) / static_cast<double>(whole.in_h);
  return part;
}

double best_split_us(const sim::PlatformModel& model, const sim::Workload& work) {
  const Mechanism mechanism = best_mechanism(model);
  const sim::CrossingCost& cost = mechanism == Mechanism::kSvm     ? model.sync.svm
                                  : mechanism == Mechanism::kEvent ? model.sync.event
                                                                   : model.sync.finish;
  double best = std::min(cpu_us(model, work), gpu_us(model, work));
  for (int64_t cut = kGranularity; cut < work.out_channels; cut += kGranularity) {
    const double cpu = cpu_us(model, with_channels(work, cut));
    const double gpu = gpu_us(model, with_channels(work, work.out_channels - cut));
    best = std::min(best, std::max(cpu, gpu) + cost.gpu_to_cpu);
  }
  return best;
}

StatusOr<std::vector<sim::Workload>> layers(const std::string& family) {
  constexpr std::pair<int, int> kLinear[] = {{192, 768},  {768, 768},   {768, 3072},
                                             {3072, 768}, {1024, 4096}, {2048, 1000}};
  constexpr std::pair<int, int> kConv[] = {{112, 64}, {56, 64},  {56, 128}, {28, 128},
                                           {28, 256}, {14, 256}, {14, 512}, {7, 512}};
  std::vector<std::string> texts;
  if (family == "linear") {
    for (const int rows : {1, 50, 128, 197}) {
      for (const auto& [in, out] : kLinear) {
        texts.push_back(fmt::format("linear:{}x1:{}:{}x1:{}:1:1:1", rows, in, rows, out));
      }
    }
  } else {
    for (const auto& [size, channels] : kConv) {
      for (const int kernel : {1, 3}) {
        texts.push_back(
            fmt::format("conv:{}:{}:{}:{}:{}:1:1", size, channels, size, channels, kernel));
      }
    }
  }
  std::vector<sim::Workload> works;
  for (const std::string& text : texts) {
    TANDEM_ASSIGN_OR_RETURN(sim::Workload work, sim::parse_workload(text));
    works.push_back(std::move(work));
  }
  return works;
}

}  // namespace

StatusOr<std::optional<double>> simulate_speed_up(const sim::PlatformModel& model,
                                                  const Entry& entry) {
  const size_t slash = entry.workload.find('/');
  const std::string what = entry.workload.substr(0, slash);
  const std::string how = slash == std::string::npos ? "" : entry.workload.substr(slash + 1);
  if (how == "best/predicted") return std::optional<double>();
  if (how == "best/exhaustive") {
    TANDEM_ASSIGN_OR_RETURN(const std::vector<sim::Workload> works, layers(what));
    double best = 0;
    for (const sim::Workload& work : works) {
      best = std::max(best, gpu_us(model, work) / best_split_us(model, work));
    }
    return std::optional(best);
  }
  if (how != "channels" && how != "rows") {
    return invalid_argument("no speed-up is known as " + entry.workload);
  }
  TANDEM_ASSIGN_OR_RETURN(const sim::Workload work, sim::parse_workload(what));
  const sim::Workload half =
      how == "rows" ? upper_half(work) : with_channels(work, work.out_channels / 2);
  return std::optional(cpu_us(model, work) / std::max(cpu_us(model, half), gpu_us(model, half)));
}

}  // namespace tandem::simulate
