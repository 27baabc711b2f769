// What single operators gain by being divided, as JSON and for people.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/operator_splits.h"

namespace tandem::cli {

// Over all operators of a set, with one mechanism.
struct SplitSummary {
  double mean_speedup_chosen = 0;  // over the better lane
  double mean_speedup_grid = 0;
  double max_speedup_chosen = 0;
  double attained = 0;  // mean of the search's time to the choice's
  // Mean of the choice's share of corun_limit, over the compute-bound ones; and how many these are.
  double mean_of_corun_limit = 0;
  int compute_bound = 0;
};
// `mechanism`: an index into OperatorSplits::times.
SplitSummary summarize(const std::vector<OperatorSplits>& operators, size_t mechanism);

// Operators by how long they take on the better lane.
struct TimeBin {
  double from_ms = 0;
  double to_ms = 0;
  int operators = 0;
  std::vector<double> speedup_chosen{};  // means, by mechanism
  std::vector<double> speedup_grid{};
};
std::vector<TimeBin> bins_of(const std::vector<OperatorSplits>& operators);

nlohmann::json set_json(const std::string& set, const std::vector<OperatorSplits>& operators,
                        const LaneCrew& crew);
std::string set_text(const std::string& set, const std::vector<OperatorSplits>& operators,
                     const LaneCrew& crew);

}  // namespace tandem::cli
