// Measures some samples together.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "predict/slice_case.h"
#include "profile/graph_memory.h"
#include "profile/lane_crew.h"
#include "profile/other_load.h"
#include "profile/sampler.h"
#include "profile/slice_timer.h"
#include "profile/store.h"
#include "schedule/placement.h"

namespace tandem {

// One row to be measured.
struct ProfileCase {
  std::shared_ptr<const Sample> sample;
  Cut cut;
  int lane = 0;
  int threads = 1;
  bool repeated = false;
  predict::OtherLoad load = predict::OtherLoad::kNone;
  int attempts = 0;  // that were made before
};
// Tells cases apart; the same in every process.
std::string key_of(const ProfileCase& c, const std::string& lane);

// A lane with what is needed to measure on it.
struct ProfileLane {
  int index = 0;  // in the crew
  std::unique_ptr<SliceTimer> timer;
  predict::LaneFacts facts;
};

// A graph that holds the operators of all cases, each by itself, loaded on every lane. A round runs
// all cases of a lane in an order that differs from round to round, each behind what writes its
// inputs, as in a network: so each finds in caches what producers and strangers leave there. The
// lanes take turns. The first round of all warms up.
class ProfileBatch {
 public:
  // False: stop now; asked between rounds, with the number of those that count so far.
  using GoOn = std::function<bool(int rounds)>;

  static StatusOr<std::unique_ptr<ProfileBatch>> create(LaneCrew& crew,
                                                        const std::vector<ProfileLane>& lanes,
                                                        std::vector<ProfileCase> cases,
                                                        uint64_t seed);
  ~ProfileBatch();

  // `loads` may be null if no case has a load.
  Status measure(OtherLoads* loads, const GoOn& go_on);

  // Those of which there is enough: with times, what the lane does, no probe and no date. Rows that
  // spread too wide are marked as disturbed.
  std::vector<Measurement> rows() const;
  // In the order of rows().
  std::vector<ProfileCase> measured_cases() const;

  // What compiling kernels from source took.
  double compile_us() const { return compile_us_; }

 private:
  struct Bound {
    ProfileCase profile_case;
    Slice slice;
    std::unique_ptr<Task> task;
    std::vector<Task*> writers;
    std::vector<double> us;
    std::vector<double> alone_us;  // with a load: without it, in turn
  };
  struct OnLane {
    const ProfileLane* lane = nullptr;
    std::unique_ptr<LaneProgram> program;
    std::map<OperatorId, std::unique_ptr<Task>> writers;
    std::vector<Bound> bound;
    double alone_us = 0;  // of all cases with a load, without it
  };

  explicit ProfileBatch(LaneCrew& crew, uint64_t seed) : crew_(crew), random_(seed) {}
  Status build(const std::vector<ProfileLane>& lanes, std::vector<ProfileCase> cases);
  Status load(OnLane& on_lane);
  Status measure_mixed(OnLane& on_lane, bool keep);
  Status measure_repeated(OnLane& on_lane);
  Status measure_contended(OnLane& on_lane, OtherLoads& loads, bool keep);
  static void leave_out_short(OnLane& on_lane);
  template <typename Work>
  Status on_thread(const OnLane& on_lane, const Work& work);
  Measurement row_of(const OnLane& on_lane, const Bound& bound) const;
  template <typename Visit>
  void visit_measured(const Visit& visit) const;

  LaneCrew& crew_;
  ProfileRandom random_;
  Graph graph_;
  Placement placement_;
  std::map<std::string, AddedOperator> operators_;  // by signature
  GraphMemory memory_;
  std::vector<OnLane> lanes_;
  double compile_us_ = 0;
};

}  // namespace tandem
