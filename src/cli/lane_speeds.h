// Who computes an operator on the cores of a lane: the lane, each implementation that it could
// pick, and libraries called directly.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cli/samples.h"
#include "cli/shapes.h"
#include "profile/lane_crew.h"

namespace tandem::cli {

enum class Role : uint8_t {
  kLane,            // what the lane picks
  kImplementation,  // another one that it could pick
  kOneDnn,          // called directly
  kXnnpack,
};

const char* to_string(Role role);

// Something that computes the shape at hand on the cores of a lane.
struct SpeedContender {
  Role role = Role::kLane;
  std::string lane;
  std::string detail;  // the implementation
  WorkerThread* thread = nullptr;
  std::function<Status(int repetitions)> run;
  int repetitions = 1;
  Samples samples_us;

  double median_us() const { return samples_us.summary().median; }
};

// A lane with the threads that its contenders run on.
struct Site {
  Lane* lane = nullptr;
  WorkerThread* lane_thread = nullptr;
  // Bound to the lane's cores, for libraries called directly; none where the lane is not on this
  // host.
  std::unique_ptr<WorkerThread> direct_thread;
};

StatusOr<Site> make_site(LaneCrew& crew, int lane);

// One shape with the times of all contenders.
struct SpeedRow {
  std::string file;
  CountedShape shape;
  double flops = 0;
  std::vector<SpeedContender> contenders;

  double gflops(const SpeedContender& contender) const {
    return flops / contender.median_us() / 1e3;
  }
};

// Times all contenders for the shape, in turn. The graph is that of the shape.
struct SpeedOptions {
  bool implementations = false;  // all that CPU lanes could pick
  int samples = 9;
};
StatusOr<SpeedRow> measure_speeds(const std::vector<Site>& sites, const std::string& file,
                                  const CountedShape& shape, const Graph& graph,
                                  const SpeedOptions& options);

}  // namespace tandem::cli
