// Sessions that plan again when a lane's speed changes: the rules on simulated time, and the
// session itself on lanes that sleep.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "profile/calibration_cache.h"
#include "profile/signature.h"
#include "report/drift.h"
#include "report/predicted_timeline.h"
#include "runtime/speed_watch.h"
#include "schedule/plan.h"
#include "schedule/scaled_costs.h"
#include "tandem/session.h"
#include "tests/runtime/fake_platform.h"
#include "tests/schedule/random_graph.h"
#include "tests/schedule/speed_model.h"

namespace tandem {
namespace {

using ::testing::HasSubstr;
using testing::Random;
using testing::random_inputs;
using testing::random_tensor;

// 1x1 convolutions, one after another.
Graph chain(int length, int64_t channels) {
  Random random(5);
  constexpr Layout kImage{Order::kChannelsLast, true};
  Graph graph;
  TensorId x = graph.add_input("x", DataType::kFloat32, {1, channels, 4, 4}, kImage);
  for (int i = 0; i < length; ++i) {
    ConvAttributes conv;
    conv.kernel = {1, 1};
    const float limit = 1 / std::sqrt(static_cast<float>(channels));
    const TensorId weights = graph.add_constant(
        "w" + std::to_string(i), random_tensor(random, {channels, channels, 1, 1}, -limit, limit));
    x = graph.add("conv" + std::to_string(i), conv, {x, weights}, {}, kImage).value();
  }
  graph.mark_output(x);
  return graph;
}

// Of all work, how much the lane does.
double share_of(const Graph& graph, const Schedule& schedule, size_t lane) {
  double all = 0;
  double of_lane = 0;
  for (size_t l = 0; l < schedule.lanes.size(); ++l) {
    for (const ScheduledSlice& scheduled : schedule.lanes[l]) {
      const double flops = work_of(graph, scheduled.slice).flops;
      all += flops;
      if (l == lane) of_lane += flops;
    }
  }
  return of_lane / all;
}

// What a session does, on lanes whose slices take what the costs say times `truth`.
class Simulated {
 public:
  Simulated() : graph_(chain(4, 256)), costs_(graph_, {100, 100}, 1, 1) { plan({1, 1}); }

  void run(double noise = 1) {
    if (!watch_.wants_next()) return;
    ++recorded;
    const std::vector<double> times{truth[0] * noise, truth[1] / noise};
    std::vector<double> ratios;
    for (const LaneDrift& lane : drift(schedule_, prediction_, {predict(times)})) {
      ratios.push_back(lane.predicted_us > 0 ? lane.ratio() : 0);
    }
    watch_.observe(ratios);
    if (!watch_.has_drifted()) return;
    ++plans;
    plan(watch_.factors());
    watch_.settle();
  }
  void run_often(int runs) {
    for (int i = 0; i < runs; ++i) run();
  }
  double share() const { return share_of(graph_, schedule_, 1); }
  double makespan_us() { return predict(truth).makespan_us; }

  std::vector<double> truth{1, 1};
  int recorded = 0;
  int plans = 0;

 private:
  Problem problem(const CostModel& costs) {
    Problem problem;
    problem.graph = &graph_;
    problem.lanes = {{"cpu"}, {"gpu", true}};
    problem.cost = &costs;
    return problem;
  }
  Timeline predict(const std::vector<double>& factors) {
    const ScaledCosts costs(costs_, factors);
    const Evaluation evaluation = evaluate_schedule(problem(costs), schedule_).value();
    return predicted_timeline(problem(costs), schedule_, evaluation);
  }
  void plan(const std::vector<double>& factors) {
    const ScaledCosts costs(costs_, factors);
    PlanOptions options;
    options.search.evaluations = 500;
    schedule_ = tandem::plan(problem(costs), options).value().schedule;
    prediction_ = predict(factors);
  }

  Graph graph_;
  testing::SpeedModel costs_;
  SpeedWatch watch_{2};
  Schedule schedule_;
  Timeline prediction_;
};

TEST(Adapt, SharesFollowTheSpeedOfALaneAndComeBack) {
  Simulated lanes;
  lanes.run_often(50);
  EXPECT_EQ(lanes.plans, 0);
  EXPECT_LT(lanes.recorded, 12);  // a few at first, then one of eight
  const double even = lanes.share();
  EXPECT_NEAR(even, 0.5, 0.1);

  lanes.truth = {1, 3};
  const double before = lanes.makespan_us();
  lanes.run_often(60);
  EXPECT_GE(lanes.plans, 1);
  EXPECT_NEAR(lanes.share(), 0.25, 0.1);
  EXPECT_LT(lanes.makespan_us(), 0.65 * before);  // 0.75 of a half to three halves: 0.5
  const int plans = lanes.plans;
  lanes.run_often(300);
  EXPECT_EQ(lanes.plans, plans);  // at rest

  lanes.truth = {1, 1};
  lanes.run_often(60);
  EXPECT_NEAR(lanes.share(), even, 0.1);
  EXPECT_LE(lanes.plans, plans + 3);
}

TEST(Adapt, NoiseAndSingleDisturbancesChangeNothing) {
  Simulated lanes;
  Random random(7);
  for (int i = 0; i < 500; ++i) {
    lanes.truth = {1, i % 9 < 2 ? 10.0 : 1.0};
    lanes.run(random.real(0.85, 1.15));
  }
  EXPECT_EQ(lanes.plans, 0);
}

TEST(Adapt, ALaneThatGetsNoWorkIsTriedAgain) {
  Simulated lanes;
  lanes.truth = {1, 300};
  lanes.run_often(500);
  const double idle = lanes.share();
  EXPECT_LT(idle, 0.01);
  // Fewer and fewer tries while it stays so.
  const int plans = lanes.plans;
  lanes.run_often(20'000);
  EXPECT_LT(lanes.plans, plans + 40);
  lanes.truth = {1, 1};
  lanes.run_often(200'000);
  EXPECT_NEAR(lanes.share(), 0.5, 0.1);
}

// Of an operator whose slices take their share of kWholeUs, so long that neither computing them nor
// other work on the machine makes much of a difference. What they cost is known from a cache: on a
// busy machine, what measuring tells may be anything.
class AdaptSession : public ::testing::Test {
 protected:
  static constexpr double kWholeUs = 20'000;

  AdaptSession()
      : dir_((std::filesystem::path(::testing::TempDir()) /
              ("tandem_adapt_" +
               std::string(::testing::UnitTest::GetInstance()->current_test_info()->name())))
                 .string()) {
    const auto sleep = [this](const std::atomic<double>& factor) {
      return [this, &factor](const Slice& slice) {
        const double part =
            work_of(*graph_, slice).flops / work_of(*graph_, Slice{.op = slice.op}).flops;
        std::this_thread::sleep_for(
            std::chrono::microseconds(static_cast<int64_t>(factor * part * kWholeUs)));
        return Status();
      };
    };
    platform_->cpu().faults.set(sleep(cpu_factor_));
    platform_->queue().device_faults.set(sleep(queue_factor_));
    options_.strategy = "joint";
    options_.sync = SyncMechanism::kSvm;
    options_.costs = CostSource::kCalibrated;
    options_.calibration_dir = dir_;
    options_.calibration_seconds = 0;
    options_.adapt = true;
    save_costs();
    // Sessions wait ten times as long as planning took before they plan again.
    options_.search_evaluations = 200;
  }
  ~AdaptSession() override { std::filesystem::remove_all(dir_); }
  void save_costs() const {
    CalibrationData data;
    const Placement placement = analyse(*graph_);
    for (OperatorId op = 0; op < static_cast<OperatorId>(graph_->operators().size()); ++op) {
      for (const char* lane : {"cpu0", "gpu0"}) {
        data.slices[signature(*graph_, placement, op)][lane][SliceSize{}] = kWholeUs;
      }
    }
    data.enqueueing["gpu0"] = 1;
    data.crossings[crossing_key("svm", "cpu0", "gpu0")] = 1;
    data.crossings[crossing_key("svm", "gpu0", "cpu0")] = 1;
    std::filesystem::remove_all(dir_);
    CalibrationCache(dir_, platform_->fingerprint()).save(data);
  }
  std::unique_ptr<Session> create() {
    auto session = Session::create(Model(graph_), platform_, options_);
    if (!session.ok()) ADD_FAILURE() << session.status().message();
    return session.ok() ? std::move(session).value() : nullptr;
  }
  void run(Session& session) {
    const std::vector<HostTensor> inputs = random_inputs(random_, *graph_);
    std::vector<HostTensor> outputs;
    const Status status = session.run(inputs, &outputs);
    ASSERT_TRUE(status.ok()) << status.message();
    const ReferenceTensor wanted = reference(*graph_, inputs)[graph_->outputs()[0]];
    for (size_t n = 0; n < wanted.values.size(); ++n) {
      ASSERT_NEAR(outputs[0].data<float>()[n], wanted.values[n], 1e-4);
    }
  }
  // Until the queue's share of work is as wanted; whether it is.
  bool run_until(Session& session, const std::function<bool(double)>& wanted) {
    for (int i = 0; i < 600 && !HasFatalFailure(); ++i) {
      run(session);
      if (wanted(share_of(*graph_, session.schedule(), 1))) return true;
    }
    return false;
  }

  const std::string dir_;
  std::shared_ptr<const Graph> graph_ = std::make_shared<Graph>(chain(2, 64));
  std::shared_ptr<testing::FakePlatform> platform_ = std::make_shared<testing::FakePlatform>();
  std::atomic<double> cpu_factor_ = 1;
  std::atomic<double> queue_factor_ = 1;
  SessionOptions options_;
  Random random_{3};
};

TEST_F(AdaptSession, MovesWorkAwayFromALaneThatIsSlowAndBack) {
  const auto session = create();
  ASSERT_TRUE(session);
  run(*session);
  const double even = share_of(*graph_, session->schedule(), 1);
  ASSERT_NEAR(even, 0.5, 0.1);
  const int loads = platform_->cpu().loads + platform_->queue().loads;
  queue_factor_ = 4;
  EXPECT_TRUE(run_until(*session, [&](double share) { return share < 0.7 * even; }));
  EXPECT_GE(session->adaptation().changed, 1);
  EXPECT_GT(session->adaptation().slowdown[1], session->adaptation().slowdown[0]);
  EXPECT_FALSE(session->prediction().lanes.empty());
  queue_factor_ = 1;
  EXPECT_TRUE(run_until(*session, [&](double share) { return share > 0.85 * even; }))
      << "planned " << session->adaptation().planned << " times in "
      << session->adaptation().plan_ms << " ms; the queue takes "
      << session->adaptation().slowdown[1] << " times as long";
  EXPECT_GE(session->adaptation().changed, 2);
  // What was packed before serves every schedule.
  EXPECT_EQ(platform_->cpu().loads + platform_->queue().loads, loads);
}

TEST_F(AdaptSession, GoesOnWhereLanesCannotTellTimes) {
  platform_->queue().recording_status = unsupported("no clock");
  const auto session = create();
  ASSERT_TRUE(session);
  for (int i = 0; i < 5; ++i) run(*session);
  EXPECT_EQ(session->adaptation().recorded, 0);
  EXPECT_EQ(session->adaptation().planned, 0);
}

TEST_F(AdaptSession, IsUsableAfterAFaultWhileALaneIsSlow) {
  const auto session = create();
  ASSERT_TRUE(session);
  queue_factor_ = 4;
  for (int i = 0; i < 20; ++i) {
    platform_->cpu().faults.set(
        [&](const Slice&) { return i % 3 == 1 ? device_error("it broke") : Status(); });
    const std::vector<HostTensor> inputs = random_inputs(random_, *graph_);
    std::vector<HostTensor> outputs;
    EXPECT_EQ(session->run(inputs, &outputs).ok(), i % 3 != 1);
  }
  platform_->cpu().faults.set(nullptr);
  run(*session);
}

TEST_F(AdaptSession, NeedsAStrategyThatDividesWork) {
  options_.strategy = "gpu";
  const auto session = Session::create(Model(graph_), platform_, options_);
  EXPECT_EQ(session.status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(session.status().message(), HasSubstr("'gpu'"));
}

}  // namespace
}  // namespace tandem
