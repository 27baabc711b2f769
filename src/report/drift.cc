#include "report/drift.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "support/statistics.h"

namespace tandem {
namespace {

constexpr size_t kNamed = 3;
// Of a lane's time, what an operator has to take to be named.
constexpr double kWeight = 0.02;

bool is_off(double ratio, double threshold) {
  return ratio > 1 + threshold || ratio < 1 / (1 + threshold);
}

}  // namespace

std::vector<LaneDrift> drift(const Schedule& schedule, const Timeline& prediction,
                             const std::vector<Timeline>& runs) {
  std::vector<LaneDrift> result(schedule.lanes.size());
  if (prediction.lanes.empty()) return result;
  for (size_t lane = 0; lane < schedule.lanes.size(); ++lane) {
    std::vector<std::vector<double>> times(schedule.lanes[lane].size());
    for (const Timeline& run : runs) {
      for (const Span& span : run.lanes[lane]) {
        if (span.kind == SpanKind::kSlice) times[span.slice].push_back(span.us());
      }
    }
    std::vector<double> predictions(times.size(), 0);
    for (const Span& span : prediction.lanes[lane]) {
      if (span.kind == SpanKind::kSlice) predictions[span.slice] = span.us();
    }
    std::map<OperatorId, OperatorDrift> operators;
    for (size_t i = 0; i < times.size(); ++i) {
      if (predictions[i] <= 0 || times[i].empty()) continue;
      const double measured = summarize(times[i]).median;
      const OperatorId id = schedule.lanes[lane][i].slice.op;
      OperatorDrift& op = operators[id];
      op.op = id;
      op.predicted_us += predictions[i];
      op.measured_us += measured;
      result[lane].predicted_us += predictions[i];
      result[lane].measured_us += measured;
    }
    for (const auto& [id, op] : operators) {
      if (op.measured_us > kWeight * result[lane].measured_us) result[lane].operators.push_back(op);
    }
    std::sort(result[lane].operators.begin(), result[lane].operators.end(),
              [](const OperatorDrift& a, const OperatorDrift& b) {
                return std::abs(std::log(a.ratio())) > std::abs(std::log(b.ratio()));
              });
  }
  return result;
}

std::string drift_text(const Graph& graph, const std::vector<std::string>& lane_names,
                       const std::vector<LaneDrift>& lanes, double threshold) {
  std::string text;
  for (size_t lane = 0; lane < lanes.size(); ++lane) {
    if (!is_off(lanes[lane].ratio(), threshold)) continue;
    std::vector<std::string> named;
    for (const OperatorDrift& op : lanes[lane].operators) {
      if (named.size() == kNamed || !is_off(op.ratio(), threshold)) break;
      named.push_back(fmt::format("{} {:.2f}x", graph.op(op.op).name, op.ratio()));
    }
    text += fmt::format("lane {} takes {:.2f}x its predicted time{}{}\n", lane_names[lane],
                        lanes[lane].ratio(), named.empty() ? "" : ", most of all ",
                        fmt::join(named, ", "));
  }
  return text;
}

}  // namespace tandem
