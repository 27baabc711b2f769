// The engine on this machine's lanes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph/reference.h"
#include "runtime/sync_bench.h"
#include "schedule/schedule.h"
#include "tests/runtime/answers.h"
#include "tests/runtime/real_platform.h"
#include "tests/schedule/random_graph.h"

namespace tandem {
namespace {

using testing::Answers;
using testing::answers_for;
using testing::copying_platform;
using testing::expect_answers;
using ::testing::HasSubstr;
using testing::Random;
using testing::random_inputs;

std::shared_ptr<Platform> platform() { return testing::real_platform(); }

int queue_lane() { return testing::queue_lane_of(*platform()); }

SessionOptions base_options() { return testing::real_lane_options("intra"); }

// No wrong number and no hang: random graphs of up to 200 operators, cut, spread and ordered at
// random, a thousand runs in all, each with other inputs than the one before, so that what is left
// from an earlier run is a wrong number.
struct Setup {
  const char* name;
  SyncMechanism mechanism;
  bool own_memory = false;
};
class RandomGraphsOnRealLanes : public ::testing::TestWithParam<Setup> {};

TEST_P(RandomGraphsOnRealLanes, ThousandRuns) {
  if (queue_lane() == kNone) GTEST_SKIP() << "no OpenCL lane";
  constexpr int kGraphs = 20;
  constexpr int kSchedules = 2;
  constexpr int kRuns = 25;
  constexpr int kInputs = 3;
  const auto lanes = static_cast<int>(platform()->lanes().size());
  for (int g = 0; g < kGraphs; ++g) {
    Random random(1000 + g);
    const auto graph = std::make_shared<Graph>(
        testing::random_graph(random, g == 0 ? 200 : static_cast<int>(random.integer(5, 200))));
    std::vector<Answers> answers;
    for (int i = 0; i < kInputs; ++i) {
      answers.push_back(answers_for(*graph, random_inputs(random, *graph)));
    }
    for (int s = 0; s < kSchedules; ++s) {
      SessionOptions options = base_options();
      options.sync = GetParam().mechanism;
      options.schedule =
          std::make_shared<Schedule>(testing::random_schedule(random, *graph, lanes));
      const auto lanes_used = GetParam().own_memory ? copying_platform() : platform();
      auto session = Session::create(Model(graph), lanes_used, options);
      if (!session.ok() && session.status().code() == StatusCode::kUnsupported) {
        GTEST_SKIP() << session.status().message();
      }
      ASSERT_TRUE(session.ok()) << session.status().message();
      std::vector<HostTensor> outputs;
      for (int run = 0; run < kRuns; ++run) {
        SCOPED_TRACE("graph " + std::to_string(g) + " schedule " + std::to_string(s) + " run " +
                     std::to_string(run));
        const Answers& expected = answers[run % kInputs];
        const Status status = (*session)->run(expected.inputs, &outputs);
        ASSERT_TRUE(status.ok()) << status.message();
        expect_answers(expected, outputs);
        if (HasFatalFailure()) return;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Mechanisms, RandomGraphsOnRealLanes,
                         ::testing::Values(Setup{"Svm", SyncMechanism::kSvm},
                                           Setup{"Event", SyncMechanism::kEvent},
                                           Setup{"Pinned", SyncMechanism::kPinned},
                                           Setup{"Finish", SyncMechanism::kFinish},
                                           Setup{"EventCopying", SyncMechanism::kEvent, true},
                                           Setup{"FinishCopying", SyncMechanism::kFinish, true}),
                         [](const auto& info) { return info.param.name; });

// Every tensor can be read.
void expect_activations(const Session& session, const Graph& graph, const Answers& answers) {
  const std::vector<ReferenceTensor> exact = reference(graph, answers.inputs);
  const double tolerance = *std::max_element(answers.tolerances.begin(), answers.tolerances.end());
  for (size_t t = 0; t < graph.tensors().size(); ++t) {
    const Tensor& tensor = graph.tensor(static_cast<TensorId>(t));
    if (tensor.kind != TensorKind::kActivation) continue;
    const auto value = session.tensor(tensor.name);
    ASSERT_TRUE(value.ok()) << value.status().message();
    for (size_t n = 0; n < exact[t].values.size(); ++n) {
      ASSERT_NEAR(value->data<float>()[n], exact[t].values[n], tolerance) << tensor.name;
    }
  }
}

class Strategies : public ::testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(RealLanes, Strategies, ::testing::Bool(),
                         [](const auto& info) { return info.param ? "Copying" : "Sharing"; });

TEST_P(Strategies, AgreeWithTheReference) {
  Random random(77);
  const auto graph = std::make_shared<Graph>(testing::random_graph(random, 60));
  const Answers answers = answers_for(*graph, random_inputs(random, *graph));
  for (const char* strategy : {"cpu", "gpu", "intra"}) {
    if (strategy == std::string("gpu") && queue_lane() == kNone) continue;
    SessionOptions options = base_options();
    options.strategy = strategy;
    options.keep_all = true;
    const auto lanes_used = GetParam() ? copying_platform() : platform();
    auto session = Session::create(Model(graph), lanes_used, options);
    ASSERT_TRUE(session.ok()) << session.status().message();
    std::vector<HostTensor> outputs;
    const Status status = (*session)->run(answers.inputs, &outputs);
    ASSERT_TRUE(status.ok()) << strategy << ": " << status.message();
    expect_answers(answers, outputs);
    expect_activations(**session, *graph, answers);
  }
}

// An aborted run leaves nothing behind in the driver.
TEST(RealLanes, CancelledRunsLeaveTheSessionUsable) {
  if (queue_lane() == kNone) GTEST_SKIP() << "no OpenCL lane";
  Random random(78);
  const auto graph = std::make_shared<Graph>(testing::random_graph(random, 80));
  const Answers answers = answers_for(*graph, random_inputs(random, *graph));
  for (const SyncMechanism sync : {SyncMechanism::kAuto, SyncMechanism::kEvent}) {
    SessionOptions options = base_options();
    options.sync = sync;
    options.schedule = std::make_shared<Schedule>(
        testing::random_schedule(random, *graph, static_cast<int>(platform()->lanes().size())));
    auto session = Session::create(Model(graph), platform(), options);
    ASSERT_TRUE(session.ok()) << session.status().message();
    std::vector<HostTensor> outputs;
    int cancelled_runs = 0;
    // Some cancels come too early for their run, or too late.
    for (int i = 0; i < 40 || (cancelled_runs == 0 && i < 4000); ++i) {
      std::thread canceller([&] {
        std::this_thread::sleep_for(std::chrono::microseconds(i % 40 * 60));
        (*session)->cancel();
      });
      const Status status = (*session)->run(answers.inputs, &outputs);
      canceller.join();
      ASSERT_TRUE(status.ok() || status.code() == StatusCode::kCancelled) << status.message();
      cancelled_runs += !status.ok();
      if (i % 5 != 0) continue;
      const Status again = (*session)->run(answers.inputs, &outputs);
      ASSERT_TRUE(again.ok()) << again.message();
      expect_answers(answers, outputs);
    }
    EXPECT_GT(cancelled_runs, 0);
  }
}

TEST(RealLanes, WithoutOpenCl) {
  PlatformOptions platform_options;
  platform_options.use_gpu = false;
  auto cpu_only = Platform::create(platform_options);
  ASSERT_TRUE(cpu_only.ok()) << cpu_only.status().message();
  Random random(79);
  const auto graph = std::make_shared<Graph>(testing::random_graph(random, 20));
  SessionOptions options = base_options();
  options.strategy = "gpu";
  const auto refused = Session::create(Model(graph), *cpu_only, options);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.status().code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(refused.status().message(), HasSubstr("needs a GPU lane"));
  options.strategy = "intra";
  auto session = Session::create(Model(graph), *cpu_only, options);
  ASSERT_TRUE(session.ok()) << session.status().message();
  const Answers answers = answers_for(*graph, random_inputs(random, *graph));
  std::vector<HostTensor> outputs;
  ASSERT_TRUE((*session)->run(answers.inputs, &outputs).ok());
  expect_answers(answers, outputs);
}

// The benchmark drives queues by itself, not through an executor: with every mechanism, runs end.
TEST(RealLanes, StartsCostSomething) {
  if (queue_lane() == kNone) GTEST_SKIP() << "no OpenCL lane";
  const std::shared_ptr<LaneCrew> crew = LaneCrew::of(platform()).value();
  const auto lease = LaneCrew::acquire(crew, Clock::now() + std::chrono::seconds(60));
  ASSERT_TRUE(lease.ok()) << lease.status().message();
  for (const SyncMechanism mechanism :
       {SyncMechanism::kSvm, SyncMechanism::kEvent, SyncMechanism::kFinish}) {
    SCOPED_TRACE(to_string(mechanism));
    const StatusOr<StartCosts> costs = bench_start(*crew, queue_lane(), mechanism);
    if (!costs.ok() && costs.status().code() == StatusCode::kUnsupported) continue;
    ASSERT_TRUE(costs.ok()) << costs.status().message();
    EXPECT_GT(costs->queue_us, 0);
    EXPECT_GE(costs->host_us, 0);
  }
}

TEST(RealLanes, CrossingsTakeMicroseconds) {
  if (queue_lane() == kNone) GTEST_SKIP() << "no OpenCL lane";
  SyncBenchOptions options;
  options.iterations = 400;
  const auto pairs = bench_sync(platform(), options);
  ASSERT_TRUE(pairs.ok()) << pairs.status().message();
  ASSERT_FALSE(pairs->empty());
  for (const LanePairTimes& pair : *pairs) {
    ASSERT_EQ(pair.mechanisms.size(), 4u);
    for (const MechanismTimes& entry : pair.mechanisms) {
      SCOPED_TRACE(to_string(entry.mechanism));
      if (!entry.times.available) {
        EXPECT_FALSE(entry.times.why_not.empty());
        EXPECT_TRUE(entry.mechanism == SyncMechanism::kSvm ||
                    entry.mechanism == SyncMechanism::kPinned);
        continue;
      }
      EXPECT_GT(entry.times.round_trip.median, 0);
    }
  }
}

}  // namespace
}  // namespace tandem
