#include "cli/split_report.h"

#include <algorithm>
#include <limits>

#include "fmt/format.h"

namespace tandem::cli {
namespace {

double median_ms(const OperatorTrial& trial) { return trial.us.summary().median / 1000; }

// The fastest of the lanes of a kind.
double alone_ms(const SplitTimes& times, const LaneCrew& crew, bool queue) {
  double best = std::numeric_limits<double>::infinity();
  for (size_t lane = 0; lane < times.lanes.size(); ++lane) {
    if ((crew.queue_lane(static_cast<int>(lane)) != nullptr) != queue) continue;
    best = std::min(best, median_ms(times.lanes[lane]));
  }
  return best;
}

nlohmann::json parts_json(const std::vector<SplitPart>& parts, const LaneCrew& crew) {
  nlohmann::json json = nlohmann::json::array();
  for (const SplitPart& part : parts) {
    nlohmann::json entry = {{"lane", crew.info(part.lane).name}, {"threads", part.threads}};
    if (!part.slice.whole()) {
      entry["axis"] = part.slice.axis;
      entry["begin"] = part.slice.begin;
      entry["end"] = part.slice.end;
    }
    if (part.us > 0) entry["predicted_ms"] = part.us / 1000;
    json.push_back(std::move(entry));
  }
  return json;
}

std::string name_of(const OperatorSplits& splits) {
  return splits.shape.network + " " + to_string(splits.shape.shape);
}

nlohmann::json times_json(const OperatorSplits& splits, const SplitTimes& times,
                          const LaneCrew& crew) {
  nlohmann::json json = {{"sync", to_string(times.mechanism)},
                         {"cpu_ms", alone_ms(times, crew, false)},
                         {"gpu_ms", alone_ms(times, crew, true)},
                         {"chosen_ms", median_ms(times.chosen)},
                         {"grid_ms", median_ms(times.grid)},
                         {"chosen_predicted_ms", times.predicted_us / 1000},
                         {"chosen_parts", parts_json(times.chosen.parts, crew)},
                         {"grid_parts", parts_json(times.grid.parts, crew)},
                         {"chosen_spread", times.chosen.us.summary().spread},
                         {"grid_spread", times.grid.us.summary().spread},
                         {"speedup_chosen", times.speedup_chosen()},
                         {"speedup_grid", times.speedup_grid()},
                         {"attained", times.attained()},
                         {"limit", times.limit()},
                         {"corun_limit", nullptr},
                         {"of_corun_limit", nullptr}};
  if (splits.corun_limit) {
    json["corun_limit"] = *splits.corun_limit;
    json["of_corun_limit"] = times.speedup_chosen() / *splits.corun_limit;
  }
  return json;
}

nlohmann::json operator_json(const OperatorSplits& splits, const LaneCrew& crew) {
  nlohmann::json json = times_json(splits, splits.times.front(), crew);
  json["name"] = name_of(splits);
  json["network"] = splits.shape.network;
  json["shape"] = to_string(splits.shape.shape);
  json["count"] = splits.shape.count;
  json["gflop"] = splits.work.flops / 1e9;
  json["chosen"] = splits.chosen;
  json["grid"] = splits.grid;
  json["bound"] = to_string(splits.bound);
  json["disturbed_rounds"] = splits.disturbed_rounds;
  for (size_t i = 1; i < splits.times.size(); ++i) {
    json["other_mechanisms"].push_back(times_json(splits, splits.times[i], crew));
  }
  return json;
}

nlohmann::json summary_json(const SplitSummary& summary) {
  nlohmann::json json = {{"mean_speedup_chosen", summary.mean_speedup_chosen},
                         {"mean_speedup_grid", summary.mean_speedup_grid},
                         {"max_speedup_chosen", summary.max_speedup_chosen},
                         {"attained", summary.attained},
                         {"mean_of_corun_limit", nullptr},
                         {"compute_bound", summary.compute_bound}};
  if (summary.compute_bound > 0) json["mean_of_corun_limit"] = summary.mean_of_corun_limit;
  return json;
}

std::string bin_name(const TimeBin& bin) {
  if (bin.to_ms == std::numeric_limits<double>::infinity()) {
    return fmt::format("{:g} ms and more", bin.from_ms);
  }
  return fmt::format("{:g} to {:g} ms", bin.from_ms, bin.to_ms);
}

std::string bins_text(const std::vector<OperatorSplits>& operators) {
  std::string text = "\nspeed-up over the better lane, by its time:\n                    operators";
  for (const SplitTimes& times : operators.front().times) {
    text += fmt::format("   {:>8} {:>8}", to_string(times.mechanism), "(search)");
  }
  text += "\n";
  for (const TimeBin& bin : bins_of(operators)) {
    text += fmt::format("  {:18} {:8}", bin_name(bin), bin.operators);
    for (size_t i = 0; i < bin.speedup_chosen.size(); ++i) {
      text += fmt::format("   {:8.2f} {:8.2f}", bin.speedup_chosen[i], bin.speedup_grid[i]);
    }
    text += "\n";
  }
  return text;
}

}  // namespace

SplitSummary summarize(const std::vector<OperatorSplits>& operators, size_t mechanism) {
  SplitSummary summary;
  for (const OperatorSplits& splits : operators) {
    const SplitTimes& times = splits.times[mechanism];
    summary.mean_speedup_chosen += times.speedup_chosen();
    summary.mean_speedup_grid += times.speedup_grid();
    summary.max_speedup_chosen = std::max(summary.max_speedup_chosen, times.speedup_chosen());
    summary.attained += times.attained();
    if (splits.bound == Bound::kCompute && splits.corun_limit) {
      ++summary.compute_bound;
      summary.mean_of_corun_limit += times.speedup_chosen() / *splits.corun_limit;
    }
  }
  const auto count = static_cast<double>(operators.size());
  summary.mean_speedup_chosen /= count;
  summary.mean_speedup_grid /= count;
  summary.attained /= count;
  if (summary.compute_bound > 0) summary.mean_of_corun_limit /= summary.compute_bound;
  return summary;
}

std::vector<TimeBin> bins_of(const std::vector<OperatorSplits>& operators) {
  constexpr double kEnds[] = {
      0, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, std::numeric_limits<double>::infinity()};
  std::vector<TimeBin> bins;
  for (size_t i = 0; i + 1 < std::size(kEnds); ++i) {
    TimeBin bin{kEnds[i], kEnds[i + 1]};
    const size_t mechanisms = operators.front().times.size();
    bin.speedup_chosen.resize(mechanisms);
    bin.speedup_grid.resize(mechanisms);
    for (const OperatorSplits& splits : operators) {
      const double ms = splits.times.front().best_lane_us() / 1000;
      if (ms < bin.from_ms || ms >= bin.to_ms) continue;
      ++bin.operators;
      for (size_t m = 0; m < mechanisms; ++m) {
        bin.speedup_chosen[m] += splits.times[m].speedup_chosen();
        bin.speedup_grid[m] += splits.times[m].speedup_grid();
      }
    }
    if (bin.operators == 0) continue;
    for (size_t m = 0; m < mechanisms; ++m) {
      bin.speedup_chosen[m] /= bin.operators;
      bin.speedup_grid[m] /= bin.operators;
    }
    bins.push_back(std::move(bin));
  }
  return bins;
}

nlohmann::json set_json(const std::string& set, const std::vector<OperatorSplits>& operators,
                        const LaneCrew& crew) {
  nlohmann::json json = summary_json(summarize(operators, 0));
  json["set"] = set;
  for (const OperatorSplits& splits : operators) {
    json["operators"].push_back(operator_json(splits, crew));
  }
  for (size_t m = 0; m < operators.front().times.size(); ++m) {
    nlohmann::json summary = summary_json(summarize(operators, m));
    summary["sync"] = to_string(operators.front().times[m].mechanism);
    summary["costs"] = operators.front().times[m].costs;
    json["mechanisms"].push_back(std::move(summary));
  }
  for (const TimeBin& bin : bins_of(operators)) {
    nlohmann::json entry = {{"from_ms", bin.from_ms},
                            {"to_ms", nullptr},
                            {"operators", bin.operators},
                            {"speedup_chosen", bin.speedup_chosen},
                            {"speedup_grid", bin.speedup_grid}};
    if (bin.to_ms < std::numeric_limits<double>::infinity()) entry["to_ms"] = bin.to_ms;
    json["by_time"].push_back(std::move(entry));
  }
  return json;
}

std::string set_text(const std::string& set, const std::vector<OperatorSplits>& operators,
                     const LaneCrew& crew) {
  std::string text = fmt::format("{:52} {:>8} {:>8} {:>8} {:>8}  {:>7} {:>5} {:>8} {:>6} {:>5}\n",
                                 "milliseconds", "cpu", "gpu", "chosen", "search", "speedup",
                                 "limit", "attained", "corun", "bound");
  for (const OperatorSplits& splits : operators) {
    const SplitTimes& times = splits.times.front();
    text += fmt::format(
        "{:52} {:8.3f} {:8.3f} {:8.3f} {:8.3f}  {:7.2f} {:5.2f} {:8.3f} {:>6} {:>7}\n    {}",
        name_of(splits), alone_ms(times, crew, false), alone_ms(times, crew, true),
        median_ms(times.chosen), median_ms(times.grid), times.speedup_chosen(), times.limit(),
        times.attained(),
        splits.corun_limit ? fmt::format("{:.2f}", times.speedup_chosen() / *splits.corun_limit)
                           : "-",
        to_string(splits.bound), splits.chosen);
    text += splits.grid == splits.chosen ? "\n" : "; search: " + splits.grid + "\n";
  }
  for (size_t m = 0; m < operators.front().times.size(); ++m) {
    const SplitSummary s = summarize(operators, m);
    text += fmt::format(
        "{} ({} operators, costs: {}): mean speed-up {:.3f} (search {:.3f}), greatest {:.2f}; "
        "attained {:.3f} of the search",
        set, operators.size(), operators.front().times[m].costs, s.mean_speedup_chosen,
        s.mean_speedup_grid, s.max_speedup_chosen, s.attained);
    if (s.compute_bound > 0) {
      text += fmt::format("; {:.3f} of the co-running limit ({} compute-bound)",
                          s.mean_of_corun_limit, s.compute_bound);
    }
    text += "\n";
  }
  return text + bins_text(operators);
}

}  // namespace tandem::cli
