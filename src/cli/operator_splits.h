// Single operators: each lane alone, the division that the engine chooses, and the best that an
// exhaustive search finds, in turn.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/operator_trials.h"
#include "cli/probe.h"
#include "cli/shapes.h"
#include "tandem/platform.h"

namespace tandem::cli {

// What limits an operator on the cores of all lanes together.
enum class Bound : uint8_t { kCompute, kMemory };
const char* to_string(Bound bound);

// One operator under one mechanism of synchronisation.
struct SplitTimes {
  SyncMechanism mechanism = SyncMechanism::kSvm;
  std::string costs;                 // where the choice has them from
  double predicted_us = 0;           // of the choice
  std::vector<OperatorTrial> lanes;  // alone, by lane
  OperatorTrial chosen;
  OperatorTrial grid;

  double best_lane_us() const;
  double speedup_chosen() const { return best_lane_us() / chosen.us.summary().median; }
  double speedup_grid() const { return best_lane_us() / grid.us.summary().median; }
  // Of the exhaustive search's speed, how much the choice reaches.
  double attained() const { return grid.us.summary().median / chosen.us.summary().median; }
  // The bound on the speed-up if each lane kept the speed that it has alone: 1 + t_fast / t_slow,
  // and so on for more lanes.
  double limit() const;
};

struct OperatorSplits {
  CountedShape shape;
  Work work;
  Bound bound = Bound::kCompute;
  std::optional<double> corun_limit;  // see cli/continuous.h; none without a CPU lane and a queue
  std::vector<SplitTimes> times;      // by mechanism
  int disturbed_rounds = 0;           // measured again
  std::string chosen;                 // in words, with the first mechanism
  std::string grid;
};

struct SplitBenchOptions {
  std::vector<SyncMechanism> mechanisms{SyncMechanism::kAuto};
  SessionOptions session;  // where costs come from
  int samples = 15;
};

// Measures operators one after another on the lanes of a platform.
class SplitBench {
 public:
  static StatusOr<std::unique_ptr<SplitBench>> create(std::shared_ptr<Platform> platform,
                                                      SplitBenchOptions options);

  StatusOr<OperatorSplits> measure(const CountedShape& shape);

  const LaneCrew& crew() const { return *crew_; }
  const std::vector<int>& cores() const { return cores_; }

 private:
  SplitBench(std::shared_ptr<Platform> platform, std::shared_ptr<LaneCrew> crew,
             SplitBenchOptions options, std::vector<int> cores);

  StatusOr<SplitTimes> prepare(const OperatorTrials& trials, std::shared_ptr<const Graph> graph,
                               SyncMechanism mechanism);
  Status take_turns(OperatorSplits& splits);
  Bound bound_of(const Work& work) const;

  const std::shared_ptr<Platform> platform_;
  const std::shared_ptr<LaneCrew> crew_;
  const SplitBenchOptions options_;
  const std::vector<int> cores_;
  SpeedWatch watch_;
  double gflops_ = 0;  // of all cores together
};

}  // namespace tandem::cli
