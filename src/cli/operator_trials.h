// One operator, divided in different ways, timed as sessions run it.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "cli/samples.h"
#include "profile/lane_crew.h"
#include "runtime/executor.h"
#include "runtime/memory_plan.h"
#include "schedule/choose_split.h"

namespace tandem::cli {

// The operator divided in one way.
struct OperatorTrial {
  std::vector<SplitPart> parts;
  SyncMechanism mechanism = SyncMechanism::kSvm;
  std::unique_ptr<Executor> executor;
  Samples us;
};

// Memory with random inputs, and the lanes' packed weights, which all trials share.
class OperatorTrials {
 public:
  // The graph has one operator.
  static StatusOr<std::unique_ptr<OperatorTrials>> create(std::shared_ptr<const Graph> graph,
                                                          std::shared_ptr<LaneCrew> crew);

  StatusOr<OperatorTrial> prepare(const std::vector<SplitPart>& parts,
                                  SyncMechanism mechanism) const;
  // Runs it until caches are as they stay if nothing else runs: five times, as some kernels take
  // that long, or for 5 ms, once at least.
  static Status warm_up(OperatorTrial& trial);
  // Microseconds of one run: from all being ready to start until the last part's end was seen.
  static StatusOr<double> run(OperatorTrial& trial);

  const Graph& graph() const { return *graph_; }
  const std::shared_ptr<LaneCrew>& crew() const { return crew_; }
  const std::vector<std::shared_ptr<LaneProgram>>& programs() const { return programs_; }

 private:
  OperatorTrials(std::shared_ptr<const Graph> graph, std::shared_ptr<LaneCrew> crew)
      : graph_(std::move(graph)), crew_(std::move(crew)) {}

  const std::shared_ptr<const Graph> graph_;
  const std::shared_ptr<LaneCrew> crew_;
  std::optional<Arena> arena_;
  std::vector<std::shared_ptr<LaneProgram>> programs_;  // by lane
};

// "cpu", or "cpu 0.47 + gpu 0.53 along axis 1": who does which share of the operator's work.
std::string describe(const Graph& graph, const LaneCrew& crew, const std::vector<SplitPart>& parts);

}  // namespace tandem::cli
