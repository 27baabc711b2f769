// What runs on this machine's lanes record, by the clocks of host and device.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "profile/lane_traits.h"
#include "schedule/scheduler.h"
#include "tests/runtime/answers.h"
#include "tests/runtime/real_platform.h"
#include "tests/runtime/three_lane_platform.h"
#include "tests/runtime/timeline_recorder.h"
#include "tests/schedule/random_graph.h"
#include "tests/schedule/speed_model.h"

namespace tandem {
namespace {

using testing::Answers;
using testing::Random;
using testing::TimelineRecorder;
using testing::violation_of;

// By how much clocks may differ. That of a device that is the host's processor is a clock of the
// host.
double clocks_us(const Platform& platform) {
  const LaneInfo& device = platform.lanes()[testing::queue_lane_of(platform)]->info();
  return device.cores.empty() ? 100 : 0;
}

struct Setup {
  const char* name;
  std::shared_ptr<Platform> (*platform)();
  SyncMechanism mechanism;
};

class RealTimelines : public ::testing::TestWithParam<Setup> {
 protected:
  void SetUp() override {
    if (!testing::has_queue_lane()) GTEST_SKIP() << "no OpenCL lane";
    platform_ = GetParam().platform();
  }
  int lanes() const { return static_cast<int>(platform_->lanes().size()); }
  SessionOptions options(const std::string& strategy) const {
    SessionOptions options = testing::real_lane_options(strategy);
    options.sync = GetParam().mechanism;
    options.tracer = recorder_;
    return options;
  }

  // Runs, some of them recorded, give the right answers, and no timeline violates the schedule.
  void expect_obeyed(const std::shared_ptr<const Graph>& graph, Random& random,
                     const SessionOptions& options) {
    const Answers answers = testing::answers_for(*graph, testing::random_inputs(random, *graph));
    auto session = Session::create(Model(graph), platform_, options);
    if (!session.ok() && session.status().code() == StatusCode::kUnsupported) {
      GTEST_SKIP() << session.status().message();
    }
    ASSERT_TRUE(session.ok()) << session.status().message();
    recorder_->timelines.clear();
    for (int run = 0; run < 6; ++run) {
      recorder_->wanted = run % 3 != 2;
      std::vector<HostTensor> outputs;
      const Status status = (*session)->run(answers.inputs, &outputs);
      ASSERT_TRUE(status.ok()) << status.message();
      testing::expect_answers(answers, outputs);
    }
    ASSERT_EQ(recorder_->timelines.size(), 4U);
    for (const Timeline& timeline : recorder_->timelines) {
      ASSERT_EQ(violation_of(*graph, (*session)->schedule(), timeline, clocks_us(*platform_)), "");
    }
  }

  std::shared_ptr<Platform> platform_;
  std::shared_ptr<TimelineRecorder> recorder_ = std::make_shared<TimelineRecorder>();
};

TEST_P(RealTimelines, NeverViolateRandomSchedules) {
  for (uint64_t seed = 0; seed < 6; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(2000 + seed);
    const auto graph = std::make_shared<const Graph>(testing::random_graph(random, 60));
    SessionOptions with_schedule = options("intra");
    with_schedule.schedule =
        std::make_shared<Schedule>(testing::random_schedule(random, *graph, lanes()));
    expect_obeyed(graph, random, with_schedule);
    if (HasFatalFailure() || IsSkipped()) return;
  }
}

// By costs that make dividing work pay, whatever this machine's lanes are worth.
TEST_P(RealTimelines, NeverViolateWhatStrategiesPlan) {
  Random random(2100);
  const auto graph = std::make_shared<const Graph>(testing::random_graph(random, 16));
  const testing::SpeedModel costs(*graph, std::vector<double>(lanes(), 100), 1, 1);
  const std::shared_ptr<LaneCrew> crew = LaneCrew::of(platform_).value();
  const Problem problem{graph.get(), traits_of(*crew), &costs};
  for (const std::string_view strategy : scheduler_names()) {
    SCOPED_TRACE(strategy);
    const auto schedule = make_scheduler(strategy).value()->schedule(problem);
    ASSERT_TRUE(schedule.ok()) << schedule.status().message();
    if (strategy != "cpu" && strategy != "gpu") {
      EXPECT_GT(std::count_if(schedule->lanes.begin(), schedule->lanes.end(),
                              [](const auto& slices) { return !slices.empty(); }),
                1);
    }
    SessionOptions with_schedule = options("intra");
    with_schedule.schedule = std::make_shared<Schedule>(*schedule);
    expect_obeyed(graph, random, with_schedule);
    if (HasFatalFailure() || IsSkipped()) return;
  }
}

constexpr auto kTwo = &testing::real_platform;
constexpr auto kCopying = &testing::copying_platform;
constexpr auto kThree = &testing::three_lane_platform;
INSTANTIATE_TEST_SUITE_P(Lanes, RealTimelines,
                         ::testing::Values(Setup{"Svm", kTwo, SyncMechanism::kSvm},
                                           Setup{"Event", kTwo, SyncMechanism::kEvent},
                                           Setup{"Pinned", kTwo, SyncMechanism::kPinned},
                                           Setup{"Finish", kTwo, SyncMechanism::kFinish},
                                           Setup{"EventCopying", kCopying, SyncMechanism::kEvent},
                                           Setup{"FinishCopying", kCopying, SyncMechanism::kFinish},
                                           Setup{"SvmThreeLanes", kThree, SyncMechanism::kSvm},
                                           Setup{"EventThreeLanes", kThree, SyncMechanism::kEvent},
                                           Setup{"FinishThreeLanes", kThree,
                                                 SyncMechanism::kFinish}),
                         [](const auto& info) { return info.param.name; });

// What wakes a device before the first slice is no part of it.
TEST(RealTimeline, TheFirstSliceBeginsWithItself) {
  if (!testing::has_queue_lane()) GTEST_SKIP() << "no OpenCL lane";
  const std::shared_ptr<Platform> platform = testing::real_platform();
  const int queue = testing::queue_lane_of(*platform);
  auto graph = std::make_shared<Graph>();
  graph->mark_output(
      graph->add("only", UnaryAttributes{}, {graph->add_input("x", DataType::kFloat32, {1, 32})})
          .value());
  Schedule schedule;
  schedule.lanes.resize(platform->lanes().size());
  schedule.lanes[queue].push_back({.slice = {.op = 0}});
  const auto recorder = std::make_shared<TimelineRecorder>();
  SessionOptions options = testing::real_lane_options("intra");
  options.schedule = std::make_shared<Schedule>(schedule);
  options.tracer = recorder;
  auto session = Session::create(Model(graph), platform, options);
  ASSERT_TRUE(session.ok()) << session.status().message();
  Random random(1);
  for (int run = 0; run < 5; ++run) {
    std::vector<HostTensor> outputs;
    ASSERT_TRUE((*session)->run(testing::random_inputs(random, *graph), &outputs).ok());
    ASSERT_FALSE(recorder->timelines.back().lanes[queue].empty());
    EXPECT_GE(recorder->timelines.back().lanes[queue].front().begin_us, -clocks_us(*platform));
  }
}

}  // namespace
}  // namespace tandem
