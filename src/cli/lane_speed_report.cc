#include "cli/lane_speed_report.h"

#include <algorithm>
#include <optional>

#include "fmt/format.h"
#include "support/statistics.h"

namespace tandem::cli {
namespace {

// Shapes whose speed has the same limits.
enum class Class : uint8_t { kLargeGemm, kSmallGemm, kConv3x3, kConvOther, kDepthwise, kMatMul };

const char* to_string(Class c) {
  switch (c) {
    case Class::kLargeGemm:
      return "large GEMM-like";
    case Class::kSmallGemm:
      return "small GEMM-like";
    case Class::kConv3x3:
      return "3x3 convolution";
    case Class::kConvOther:
      return "other convolution";
    case Class::kDepthwise:
      return "depthwise";
    case Class::kMatMul:
      return "matmul";
  }
  return "unknown";
}

// Linear layers and 1x1 convolutions are GEMMs. Large: enough work for dispatch not to matter, and
// enough rows for weights to be reused; one-row layers are bound by memory.
Class class_of(const SpeedRow& row) {
  constexpr double kLargeFlops = 2e7;
  constexpr int64_t kLargeRows = 16;
  const OperatorShape& s = row.shape.shape;
  if (s.family == Family::kDepthwise) return Class::kDepthwise;
  if (s.family == Family::kMatMul) return Class::kMatMul;
  const bool gemm = s.family == Family::kLinear || (s.kernel == Size2{1, 1} && s.groups == 1);
  if (gemm) {
    const int64_t rows = s.n * (s.h / s.stride[0]) * (s.w / s.stride[1]);
    return row.flops >= kLargeFlops && rows >= kLargeRows ? Class::kLargeGemm : Class::kSmallGemm;
  }
  return s.kernel == Size2{3, 3} && s.groups == 1 ? Class::kConv3x3 : Class::kConvOther;
}

// The share of the yardstick's speed that a lane should reach: CPU lanes of the better library,
// OpenCL lanes of oneDNN.
std::optional<double> target_of(LaneKind lane, Class c) {
  if (lane == LaneKind::kCpu) return 0.85;
  if (c == Class::kLargeGemm) return 0.80;
  if (c == Class::kConv3x3) return 0.60;
  return std::nullopt;
}

const SpeedContender* find(const SpeedRow& row, const std::string& lane, Role role) {
  for (const SpeedContender& contender : row.contenders) {
    if (contender.lane == lane && contender.role == role) return &contender;
  }
  return nullptr;
}

// Time of what the lane is measured against; nothing if no library has the operator.
std::optional<double> yardstick_us(const SpeedRow& row, const LaneInfo& lane) {
  const SpeedContender* onednn = find(row, lane.name, Role::kOneDnn);
  const SpeedContender* xnnpack = find(row, lane.name, Role::kXnnpack);
  if (lane.kind == LaneKind::kOpenCl || xnnpack == nullptr) {
    if (onednn == nullptr) return std::nullopt;
    return onednn->median_us();
  }
  if (onednn == nullptr) return xnnpack->median_us();
  return std::min(onednn->median_us(), xnnpack->median_us());
}

// Over the shapes of one class, each counted as often as the networks have it.
struct ClassSummary {
  std::string lane;
  Class shape_class = Class::kLargeGemm;
  int shapes = 0;
  double share = 0;         // of the yardstick's speed, over the time of all
  double median_share = 0;  // of single shapes
  double worst_share = 0;
  double gflops = 0;
  std::string worst_shape;
  std::optional<double> target;
};

std::optional<ClassSummary> summarize_class(const std::vector<SpeedRow>& rows, const LaneInfo& lane,
                                            Class shape_class) {
  ClassSummary summary;
  summary.lane = lane.name;
  summary.shape_class = shape_class;
  summary.target = target_of(lane.kind, shape_class);
  std::vector<double> shares;
  double lane_us = 0;
  double base_us = 0;
  double flops = 0;
  for (const SpeedRow& row : rows) {
    if (class_of(row) != shape_class) continue;
    const std::optional<double> base = yardstick_us(row, lane);
    if (!base) continue;
    const double us = find(row, lane.name, Role::kLane)->median_us();
    lane_us += row.shape.count * us;
    base_us += row.shape.count * *base;
    flops += row.shape.count * row.flops;
    if (shares.empty() || *base / us < summary.worst_share) {
      summary.worst_share = *base / us;
      summary.worst_shape = to_string(row.shape.shape);
    }
    shares.push_back(*base / us);
  }
  if (shares.empty()) return std::nullopt;
  summary.shapes = static_cast<int>(shares.size());
  summary.share = base_us / lane_us;
  summary.median_share = summarize(shares).median;
  summary.gflops = flops / lane_us / 1e3;
  return summary;
}

std::vector<ClassSummary> summarize_all(const std::vector<SpeedRow>& rows,
                                        const std::vector<Site>& sites) {
  std::vector<ClassSummary> summaries;
  for (const Site& site : sites) {
    for (const Class c : {Class::kLargeGemm, Class::kSmallGemm, Class::kConv3x3, Class::kConvOther,
                          Class::kDepthwise, Class::kMatMul}) {
      const std::optional<ClassSummary> summary = summarize_class(rows, site.lane->info(), c);
      if (summary) summaries.push_back(*summary);
    }
  }
  return summaries;
}

nlohmann::json row_json(const SpeedRow& row) {
  nlohmann::json json = {{"file", row.file},
                         {"shape", to_string(row.shape.shape)},
                         {"class", to_string(class_of(row))},
                         {"count", row.shape.count},
                         {"gflop", row.flops / 1e9},
                         {"results", nlohmann::json::array()}};
  for (const SpeedContender& contender : row.contenders) {
    const Summary time = contender.samples_us.summary();
    json["results"].push_back({{"lane", contender.lane},
                               {"role", to_string(contender.role)},
                               {"implementation", contender.detail},
                               {"gflops", row.gflops(contender)},
                               {"median_us", time.median},
                               {"p90_us", time.p90},
                               {"spread", time.spread},
                               {"samples", time.count},
                               {"dropped", contender.samples_us.dropped()}});
  }
  return json;
}

nlohmann::json summary_json(const ClassSummary& summary) {
  nlohmann::json json = {{"lane", summary.lane},
                         {"class", to_string(summary.shape_class)},
                         {"shapes", summary.shapes},
                         {"gflops", summary.gflops},
                         {"share", summary.share},
                         {"median_share", summary.median_share},
                         {"worst_share", summary.worst_share},
                         {"worst_shape", summary.worst_shape}};
  if (summary.target) {
    json["target"] = *summary.target;
    json["reached"] = summary.share >= *summary.target;
  }
  return json;
}

void print_row(const SpeedRow& row, const std::vector<Site>& sites) {
  fmt::print("{} (x{}, {:.3f} GFLOP)\n", to_string(row.shape.shape), row.shape.count,
             row.flops / 1e9);
  for (const Site& site : sites) {
    const LaneInfo& lane = site.lane->info();
    const std::optional<double> base = yardstick_us(row, lane);
    for (const SpeedContender& contender : row.contenders) {
      if (contender.lane != lane.name) continue;
      std::string line =
          fmt::format("  {:8} {:14} {:7.1f} GFLOPS {:10.1f} us", contender.lane,
                      to_string(contender.role), row.gflops(contender), contender.median_us());
      if (base && (contender.role == Role::kLane || contender.role == Role::kImplementation)) {
        line += fmt::format("  {:5.2f}", *base / contender.median_us());
      } else {
        line += "       ";
      }
      fmt::print("{}  {}\n", line, contender.detail);
    }
  }
}

void print_summary(const std::vector<ClassSummary>& summaries) {
  fmt::print(
      "\nshare of the yardstick's speed (CPU lanes: the better of oneDNN and XNNPACK; OpenCL "
      "lanes: oneDNN; same cores):\n{:8} {:18} {:>6} {:>8} {:>7} {:>7} {:>7} {:>7}\n",
      "lane", "class", "shapes", "GFLOPS", "overall", "median", "worst", "target");
  for (const ClassSummary& s : summaries) {
    const std::string target =
        s.target ? fmt::format("{:.2f} {}", *s.target, s.share >= *s.target ? "ok" : "MISSED")
                 : "-";
    fmt::print("{:8} {:18} {:6} {:8.1f} {:7.2f} {:7.2f} {:7.2f} {:>7}   worst: {}\n", s.lane,
               to_string(s.shape_class), s.shapes, s.gflops, s.share, s.median_share, s.worst_share,
               target, s.worst_shape);
  }
}

}  // namespace

nlohmann::json speeds_json(const std::vector<SpeedRow>& rows, const std::vector<Site>& sites) {
  nlohmann::json json = {{"shapes", nlohmann::json::array()}, {"summary", nlohmann::json::array()}};
  for (const SpeedRow& row : rows) json["shapes"].push_back(row_json(row));
  for (const ClassSummary& summary : summarize_all(rows, sites)) {
    json["summary"].push_back(summary_json(summary));
  }
  return json;
}

void print_speeds(const std::vector<SpeedRow>& rows, const std::vector<Site>& sites) {
  for (const SpeedRow& row : rows) print_row(row, sites);
  print_summary(summarize_all(rows, sites));
}

}  // namespace tandem::cli
