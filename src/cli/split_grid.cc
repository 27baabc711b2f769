#include "cli/split_grid.h"

#include <algorithm>

#include "support/statistics.h"

namespace tandem::cli {
namespace {

// Operators that take longer say enough in one run.
constexpr double kLongUs = 2000;
// How often what is left is timed in each round, and how many are left after it.
struct Round {
  int runs;
  size_t keep;
};
constexpr Round kRounds[] = {{2, 12}, {4, 5}, {8, 2}, {12, 1}};
constexpr Round kLongRounds[] = {{1, 8}, {2, 3}, {4, 1}};

bool same(const std::vector<SplitPart>& a, const std::vector<SplitPart>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const SplitPart& x, const SplitPart& y) {
                      return x.lane == y.lane && x.slice == y.slice && x.threads == y.threads;
                    });
}

struct Candidate {
  OperatorTrial trial;
  std::vector<double> us;
  double median() const { return summarize(us).median; }
};

Status time(Candidate& candidate, int runs) {
  TANDEM_RETURN_IF_ERROR(OperatorTrials::warm_up(candidate.trial));
  for (int i = 0; i < runs; ++i) {
    TANDEM_ASSIGN_OR_RETURN(const double us, OperatorTrials::run(candidate.trial));
    candidate.us.push_back(us);
  }
  return {};
}

}  // namespace

std::vector<std::vector<SplitPart>> split_grid(const Graph& graph, int lanes) {
  constexpr int64_t kLeastSteps = 32;
  std::vector<std::vector<SplitPart>> grid;
  for (int lane = 0; lane < lanes; ++lane) grid.push_back({{lane, Slice{.op = 0}}});
  for (const PartitionAxis& axis : partition_axes(graph, 0)) {
    const int64_t extent = graph.output_of(0).dims[axis.axis];
    const int64_t units = (extent + axis.granularity - 1) / axis.granularity;
    const int64_t step = std::max<int64_t>(1, units / kLeastSteps) * axis.granularity;
    for (int first = 0; first < lanes; ++first) {
      for (int second = first + 1; second < lanes; ++second) {
        for (int64_t at = step; at < extent; at += step) {
          grid.push_back(
              {{first, Slice{0, axis.axis, 0, at}}, {second, Slice{0, axis.axis, at, extent}}});
        }
      }
    }
  }
  return grid;
}

StatusOr<std::vector<SplitPart>> best_of_grid(const OperatorTrials& trials, SyncMechanism mechanism,
                                              const std::vector<SplitPart>& also) {
  const auto lanes = static_cast<int>(trials.crew()->lanes().size());
  std::vector<std::vector<SplitPart>> grid = split_grid(trials.graph(), lanes);
  const bool known =
      std::any_of(grid.begin(), grid.end(), [&](const auto& parts) { return same(parts, also); });
  if (!known) grid.push_back(also);
  std::vector<Candidate> left;
  for (const std::vector<SplitPart>& parts : grid) {
    TANDEM_ASSIGN_OR_RETURN(OperatorTrial trial, trials.prepare(parts, mechanism));
    left.push_back({std::move(trial), {}});
  }
  // Whole on one lane, warmed up: is the operator long?
  TANDEM_RETURN_IF_ERROR(time(left.front(), 1));
  const bool is_long = left.front().us.front() > kLongUs;
  const std::vector<Round> rounds =
      is_long ? std::vector<Round>(std::begin(kLongRounds), std::end(kLongRounds))
              : std::vector<Round>(std::begin(kRounds), std::end(kRounds));
  for (const auto& [runs, keep] : rounds) {
    // In two sweeps, so that what disturbs the machine for a moment does not hit all runs of one.
    for (int sweep = 0; sweep < 2 && (sweep == 0 || runs > 1); ++sweep) {
      for (Candidate& candidate : left) {
        TANDEM_RETURN_IF_ERROR(time(candidate, std::max(1, runs / 2)));
      }
    }
    std::stable_sort(left.begin(), left.end(), [](const Candidate& a, const Candidate& b) {
      return a.median() < b.median();
    });
    if (left.size() > keep)
      left.erase(left.begin() + static_cast<std::ptrdiff_t>(keep), left.end());
  }
  return left.front().trial.parts;
}

}  // namespace tandem::cli
