#include "runtime/executor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <set>

#include "schedule/single_lane.h"
#include "tests/runtime/fake_lane.h"
#include "tests/runtime/timeline_recorder.h"
#include "tests/schedule/random_graph.h"

namespace tandem {
namespace {

using namespace std::chrono_literals;  // NOLINT: literals only
using ::testing::AllOf;
using ::testing::AnyOf;
using testing::FakeCpuLane;
using testing::FakeQueueLane;
using ::testing::HasSubstr;
using testing::Random;
using testing::random_graph;
using testing::random_inputs;
using testing::random_schedule;
using testing::TimelineRecorder;

// Outputs computed one operator after another, with the fake lanes' own arithmetic.
std::vector<HostTensor> serial_outputs(const Graph& graph, const std::vector<HostTensor>& inputs) {
  const MemoryPlan plan = plan_memory(graph);
  const Arena arena = Arena::create(graph, plan, Arena::host_allocator()).value();
  for (size_t i = 0; i < inputs.size(); ++i) {
    copy_to_view(inputs[i], arena.bindings()[graph.inputs()[i]]);
  }
  for (size_t op = 0; op < graph.operators().size(); ++op) {
    if (!plan.placement.launched[op]) continue;
    testing::compute_slice(graph, arena.bindings(), Slice{.op = static_cast<OperatorId>(op)});
  }
  std::vector<HostTensor> outputs;
  for (TensorId id : graph.outputs()) {
    outputs.emplace_back(DataType::kFloat32, graph.tensor(id).dims);
    copy_from_view(arena.bindings()[id], outputs.back());
  }
  return outputs;
}

// Fake lanes, a schedule bound to them, and memory.
struct Bench {
  Bench(int cpu_lanes, int queue_lanes, Feeder feeder,
        SharedMemoryKind memory = SharedMemoryKind::kFineAtomics) {
    std::vector<Lane*> all;
    for (int i = 0; i < cpu_lanes; ++i) {
      cpus.push_back(std::make_unique<FakeCpuLane>("cpu" + std::to_string(i)));
      all.push_back(cpus.back().get());
    }
    for (int i = 0; i < queue_lanes; ++i) {
      queues.push_back(std::make_unique<FakeQueueLane>("gpu" + std::to_string(i), memory));
      all.push_back(queues.back().get());
    }
    crew = LaneCrew::create(all, feeder).value();
  }

  void prepare(const Graph& g, Schedule s, const ExecutorOptions& options) {
    graph = &g;
    schedule = std::move(s);
    const Status valid = check_schedule(g, schedule);
    ASSERT_TRUE(valid.ok()) << valid.message();
    plan = plan_memory(g, schedule);
    arena.emplace(Arena::create(g, plan, Arena::allocator_for(crew->lanes())).value());
    auto made = Executor::create(g, schedule, arena->bindings(), crew, options);
    ASSERT_TRUE(made.ok()) << made.status().message();
    executor = std::move(made).value();
  }

  Status run(const std::vector<HostTensor>& inputs, std::vector<HostTensor>* outputs) {
    outputs->clear();
    return executor->run(
        [&] {
          for (size_t i = 0; i < inputs.size(); ++i) {
            copy_to_view(inputs[i], arena->bindings()[graph->inputs()[i]]);
          }
        },
        [&] {
          for (TensorId id : graph->outputs()) {
            outputs->emplace_back(DataType::kFloat32, graph->tensor(id).dims);
            copy_from_view(arena->bindings()[id], outputs->back());
          }
        });
  }

  void expect_right(Random& random) {
    const std::vector<HostTensor> inputs = random_inputs(random, *graph);
    const std::vector<HostTensor> expected = serial_outputs(*graph, inputs);
    std::vector<HostTensor> outputs;
    const Status status = run(inputs, &outputs);
    ASSERT_TRUE(status.ok()) << status.message();
    ASSERT_EQ(outputs.size(), expected.size());
    for (size_t i = 0; i < outputs.size(); ++i) {
      ASSERT_TRUE(outputs[i].bytes == expected[i].bytes) << "output " << i << " is wrong";
    }
  }

  std::vector<std::unique_ptr<FakeCpuLane>> cpus;
  std::vector<std::unique_ptr<FakeQueueLane>> queues;
  std::shared_ptr<LaneCrew> crew;
  const Graph* graph = nullptr;
  Schedule schedule;
  MemoryPlan plan;
  std::optional<Arena> arena;
  std::unique_ptr<Executor> executor;
};

struct LaneSetup {
  std::string name;
  int cpu_lanes;
  int queue_lanes;
  Feeder feeder;
  SyncMechanism mechanism;
  SharedMemoryKind memory = SharedMemoryKind::kFineAtomics;
};

class ProtocolTest : public ::testing::TestWithParam<LaneSetup> {};

// Every number is right, bit for bit, whatever the graph, the partition, the order and the timing;
// memory is reused, and counters wrap around on the way.
TEST_P(ProtocolTest, RandomGraphsUnderRandomSchedules) {
  const LaneSetup& setup = GetParam();
  for (uint64_t seed = 0; seed < 12; ++seed) {
    Random random(seed);
    const Graph graph = random_graph(random, static_cast<int>(random.integer(2, 40)));
    Bench bench(setup.cpu_lanes, setup.queue_lanes, setup.feeder, setup.memory);
    ExecutorOptions options;
    options.sync.mechanism = setup.mechanism;
    options.sync.device_spin_limit = 60s;
    options.deadline = 60s;
    options.first_count = std::numeric_limits<uint32_t>::max() - 100;
    bench.prepare(graph, random_schedule(random, graph, setup.cpu_lanes + setup.queue_lanes),
                  options);
    for (int run = 0; run < 6; ++run) {
      SCOPED_TRACE("seed " + std::to_string(seed) + " run " + std::to_string(run));
      bench.expect_right(random);
      if (HasFatalFailure()) return;
    }
  }
}

// What is recorded never contradicts the schedule, whether a run is recorded does not show in its
// results, and runs that the tracer does not want are not.
TEST_P(ProtocolTest, TimelinesNeverViolateTheSchedule) {
  const LaneSetup& setup = GetParam();
  for (uint64_t seed = 100; seed < 104; ++seed) {
    Random random(seed);
    const Graph graph = random_graph(random, static_cast<int>(random.integer(2, 40)));
    Bench bench(setup.cpu_lanes, setup.queue_lanes, setup.feeder, setup.memory);
    const auto recorder = std::make_shared<TimelineRecorder>();
    ExecutorOptions options;
    options.sync.mechanism = setup.mechanism;
    options.sync.device_spin_limit = 60s;
    options.deadline = 60s;
    options.tracer = recorder;
    bench.prepare(graph, random_schedule(random, graph, setup.cpu_lanes + setup.queue_lanes),
                  options);
    for (int run = 0; run < 4; ++run) {
      SCOPED_TRACE("seed " + std::to_string(seed) + " run " + std::to_string(run));
      recorder->wanted = run != 1;
      bench.expect_right(random);
      if (HasFatalFailure()) return;
    }
    ASSERT_EQ(recorder->timelines.size(), 3U);
    for (const Timeline& timeline : recorder->timelines) {
      testing::expect_obeyed(graph, bench.schedule, timeline);
      if (HasFatalFailure()) return;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Lanes, ProtocolTest,
    ::testing::Values(
        LaneSetup{"OneCpu", 1, 0, Feeder::kAuto, SyncMechanism::kSvm},
        LaneSetup{"TwoCpus", 2, 0, Feeder::kAuto, SyncMechanism::kSvm},
        LaneSetup{"OneQueue", 0, 1, Feeder::kAuto, SyncMechanism::kSvm},
        LaneSetup{"OneQueueEvent", 0, 1, Feeder::kAuto, SyncMechanism::kEvent},
        LaneSetup{"CpuFeedsQueue", 1, 1, Feeder::kFirstCpuLane, SyncMechanism::kSvm},
        LaneSetup{"QueueWithFeeder", 1, 1, Feeder::kOwnThread, SyncMechanism::kSvm},
        LaneSetup{"CpuFeedsQueueEvent", 1, 1, Feeder::kFirstCpuLane, SyncMechanism::kEvent},
        LaneSetup{"QueueWithFeederEvent", 1, 1, Feeder::kOwnThread, SyncMechanism::kEvent},
        LaneSetup{"TwoCpusAndQueue", 2, 1, Feeder::kFirstCpuLane, SyncMechanism::kSvm},
        LaneSetup{"TwoCpusAndQueueEvent", 2, 1, Feeder::kOwnThread, SyncMechanism::kEvent},
        LaneSetup{"TwoQueues", 1, 2, Feeder::kOwnThread, SyncMechanism::kSvm},
        LaneSetup{"TwoQueuesEvent", 1, 2, Feeder::kOwnThread, SyncMechanism::kEvent},
        LaneSetup{"CpuFeedsTwoQueuesEvent", 2, 2, Feeder::kFirstCpuLane, SyncMechanism::kEvent},
        LaneSetup{"CpuFeedsQueuePinned", 1, 1, Feeder::kFirstCpuLane, SyncMechanism::kPinned},
        LaneSetup{"TwoCpusAndQueuePinned", 2, 1, Feeder::kOwnThread, SyncMechanism::kPinned},
        LaneSetup{"OneQueueFinish", 0, 1, Feeder::kAuto, SyncMechanism::kFinish},
        LaneSetup{"CpuFeedsQueueFinish", 1, 1, Feeder::kFirstCpuLane, SyncMechanism::kFinish},
        LaneSetup{"QueueWithFeederFinish", 1, 1, Feeder::kOwnThread, SyncMechanism::kFinish},
        LaneSetup{"TwoCpusAndTwoQueuesFinish", 2, 2, Feeder::kFirstCpuLane, SyncMechanism::kFinish},
        LaneSetup{"TwoQueuesWithFeedersFinish", 2, 2, Feeder::kOwnThread, SyncMechanism::kFinish},
        LaneSetup{"TwoCpusAndTwoQueuesFinishWithOwnMemory", 2, 2, Feeder::kFirstCpuLane,
                  SyncMechanism::kFinish, SharedMemoryKind::kCoarse},
        LaneSetup{"QueueWithOwnMemoryPinned", 1, 1, Feeder::kFirstCpuLane, SyncMechanism::kPinned,
                  SharedMemoryKind::kCoarse},
        LaneSetup{"QueueWithOwnMemory", 0, 1, Feeder::kAuto, SyncMechanism::kEvent,
                  SharedMemoryKind::kCoarse},
        LaneSetup{"CpuFeedsQueueWithOwnMemory", 1, 1, Feeder::kFirstCpuLane, SyncMechanism::kEvent,
                  SharedMemoryKind::kCoarse},
        LaneSetup{"TwoCpusAndQueueWithOwnMemory", 2, 1, Feeder::kFirstCpuLane,
                  SyncMechanism::kEvent, SharedMemoryKind::kNone},
        LaneSetup{"QueueWithOwnMemoryAndFeeder", 1, 1, Feeder::kOwnThread, SyncMechanism::kEvent,
                  SharedMemoryKind::kCoarse},
        LaneSetup{"TwoQueuesWithOwnMemory", 1, 2, Feeder::kFirstCpuLane, SyncMechanism::kEvent,
                  SharedMemoryKind::kCoarse},
        LaneSetup{"TwoQueuesWithOwnMemoryAndFeeders", 2, 2, Feeder::kOwnThread,
                  SyncMechanism::kEvent, SharedMemoryKind::kCoarse}),
    [](const auto& info) { return info.param.name; });

TEST(Executor, MappedMemoryOfTwoQueuesIsRefused) {
  Random random(3);
  const Graph graph = random_graph(random, 12);
  Bench bench(0, 2, Feeder::kOwnThread);
  const Schedule schedule = random_schedule(random, graph, 2);
  const MemoryPlan plan = plan_memory(graph, schedule);
  const Arena arena = Arena::create(graph, plan, Arena::host_allocator()).value();
  ExecutorOptions options;
  options.sync.mechanism = SyncMechanism::kPinned;
  const auto executor = Executor::create(graph, schedule, arena.bindings(), bench.crew, options);
  ASSERT_FALSE(executor.ok());
  EXPECT_EQ(executor.status().code(), StatusCode::kUnsupported);
}

TEST(Executor, SignalsOnlyWhatIsAwaited) {
  Graph graph;
  TensorId x = graph.add_input("x", DataType::kFloat32, {4, 32});
  for (int i = 0; i < 8; ++i) x = graph.add("", UnaryAttributes{}, {x}).value();
  graph.mark_output(x);
  Schedule schedule;
  schedule.lanes.resize(2);
  for (int op = 0; op < 8; ++op) schedule.lanes[op < 4 ? 1 : 0].push_back({.slice = {.op = op}});
  ASSERT_TRUE(derive_waits(graph, &schedule).ok());
  Bench bench(1, 1, Feeder::kFirstCpuLane);
  bench.prepare(graph, schedule, {});
  Random random(1);
  bench.expect_right(random);
  EXPECT_EQ(bench.queues[0]->signals, 1);
  EXPECT_EQ(bench.queues[0]->waits, 0);
  EXPECT_GT(bench.executor->makespan_us(), 0);
}

// A lane that waits shows a span for as long, with what it waits for.
TEST(Executor, TimelinesShowWaits) {
  Graph graph;
  TensorId x = graph.add_input("x", DataType::kFloat32, {4, 32});
  for (int i = 0; i < 3; ++i) x = graph.add("", UnaryAttributes{}, {x}).value();
  graph.mark_output(x);
  Schedule schedule;
  schedule.lanes.resize(2);
  for (int op = 0; op < 3; ++op) schedule.lanes[op % 2].push_back({.slice = {.op = op}});
  ASSERT_TRUE(derive_waits(graph, &schedule).ok());
  for (const SyncMechanism mechanism :
       {SyncMechanism::kSvm, SyncMechanism::kEvent, SyncMechanism::kFinish}) {
    SCOPED_TRACE(to_string(mechanism));
    Bench bench(1, 1, Feeder::kOwnThread);
    const auto slow = [](const Slice&) {
      std::this_thread::sleep_for(20ms);
      return Status();
    };
    bench.cpus[0]->faults.set(slow);
    bench.queues[0]->device_faults.set(slow);
    const auto recorder = std::make_shared<TimelineRecorder>();
    ExecutorOptions options;
    options.sync.mechanism = mechanism;
    options.sync.device_spin_limit = 60s;
    options.tracer = recorder;
    bench.prepare(graph, schedule, options);
    Random random(1);
    bench.expect_right(random);
    ASSERT_EQ(recorder->timelines.size(), 1U);
    const Timeline& timeline = recorder->timelines[0];
    for (int lane = 0; lane < 2; ++lane) {
      double waited = 0;
      for (const Span& span : timeline.lanes[lane]) {
        if (span.kind != SpanKind::kWait) continue;
        waited += span.us();
        EXPECT_EQ(span.slice, lane == 0 ? 1 : 0);
        EXPECT_EQ(span.wait, (Wait{1 - lane, 1}));
      }
      EXPECT_GT(waited, 10'000) << "lane " << lane;
    }
    EXPECT_EQ(crossings(schedule).size(), 2U);
    EXPECT_EQ(crossings(schedule)[0], (Crossing{1, 0, 0, 1}));
  }
}

// Two sessions' worth of executors on one crew, from two threads.
TEST(Executor, RunsOfTwoExecutorsTakeTurns) {
  Random random(5);
  const Graph graph = random_graph(random, 15);
  Bench bench(1, 1, Feeder::kFirstCpuLane);
  bench.prepare(graph, random_schedule(random, graph, 2), {});
  Bench other(0, 0, Feeder::kAuto);
  other.crew = bench.crew;
  other.prepare(graph, random_schedule(random, graph, 2), {});
  std::thread thread([&] {
    Random mine(6);
    for (int i = 0; i < 20; ++i) other.expect_right(mine);
  });
  for (int i = 0; i < 20; ++i) bench.expect_right(random);
  thread.join();
}

// ---- Faults -----------------------------------------------------------------------------------

class FaultTest : public ::testing::TestWithParam<SyncMechanism> {
 protected:
  FaultTest() : bench_(1, 1, Feeder::kFirstCpuLane) {
    // Operators alternate between the lanes, so that both have to wait all along.
    TensorId x = graph_.add_input("x", DataType::kFloat32, {4, 32});
    for (int i = 0; i < 10; ++i) {
      x = graph_.add("op" + std::to_string(i), UnaryAttributes{}, {x}).value();
    }
    graph_.mark_output(x);
    schedule_.lanes.resize(2);
    for (int op = 0; op < 10; ++op) schedule_.lanes[op % 2].push_back({.slice = {.op = op}});
    options_.sync.mechanism = GetParam();
    options_.sync.device_spin_limit = 60s;
  }
  void SetUp() override { ASSERT_TRUE(derive_waits(graph_, &schedule_).ok()); }
  void prepare() { bench_.prepare(graph_, schedule_, options_); }
  Status run() {
    std::vector<HostTensor> outputs;
    const std::vector<HostTensor> inputs = random_inputs(random_, graph_);
    return bench_.run(inputs, &outputs);
  }
  void expect_usable() {
    bench_.cpus[0]->faults.set({});
    bench_.queues[0]->launch_faults.set({});
    bench_.queues[0]->device_faults.set({});
    for (int i = 0; i < 3; ++i) bench_.expect_right(random_);
  }
  std::set<int> blamed() const {
    return {bench_.executor->blamed_lanes().begin(), bench_.executor->blamed_lanes().end()};
  }

  Graph graph_;
  Schedule schedule_;
  ExecutorOptions options_;
  Random random_{7};
  Bench bench_;
};

INSTANTIATE_TEST_SUITE_P(Mechanisms, FaultTest,
                         ::testing::Values(SyncMechanism::kSvm, SyncMechanism::kEvent,
                                           SyncMechanism::kPinned, SyncMechanism::kFinish),
                         [](const auto& info) { return std::string(to_string(info.param)); });

TEST_P(FaultTest, CpuLaneThrows) {
  prepare();
  bench_.cpus[0]->faults.set([](const Slice& slice) -> Status {
    if (slice.op == 4) throw std::runtime_error("out of luck");
    return {};
  });
  const Status status = run();
  EXPECT_EQ(status.code(), StatusCode::kInternal);
  EXPECT_THAT(status.message(),
              AllOf(HasSubstr("cpu0"), HasSubstr("op4"), HasSubstr("out of luck")));
  EXPECT_EQ(blamed(), std::set<int>{0});
  expect_usable();
}

TEST_P(FaultTest, CpuLaneReturnsAnError) {
  prepare();
  bench_.cpus[0]->faults.set([](const Slice& slice) {
    return slice.op == 6 ? resource_exhausted("no memory left") : Status();
  });
  const Status status = run();
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(status.message(),
              AllOf(HasSubstr("cpu0"), HasSubstr("op6"), HasSubstr("no memory left")));
  expect_usable();
}

TEST_P(FaultTest, QueueRefusesASlice) {
  prepare();
  bench_.queues[0]->launch_faults.set([](const Slice& slice) {
    return slice.op == 5 ? device_error("CL_OUT_OF_RESOURCES") : Status();
  });
  const Status status = run();
  EXPECT_EQ(status.code(), StatusCode::kDeviceError);
  EXPECT_THAT(status.message(),
              AllOf(HasSubstr("gpu0"), HasSubstr("op5"), HasSubstr("CL_OUT_OF_RESOURCES")));
  EXPECT_EQ(blamed(), std::set<int>{1});
  expect_usable();
}

TEST_P(FaultTest, CpuLaneStalls) {
  options_.deadline = 100ms;
  prepare();
  bench_.cpus[0]->faults.set([](const Slice& slice) {
    if (slice.op == 4) std::this_thread::sleep_for(400ms);
    return Status();
  });
  const Clock::time_point start = Clock::now();
  const Status status = run();
  EXPECT_LT(Clock::now() - start, 2s);
  EXPECT_EQ(status.code(), StatusCode::kDeadlineExceeded);
  EXPECT_THAT(status.message(), AllOf(HasSubstr("cpu0 is at op4"), HasSubstr("100 ms")));
  EXPECT_EQ(blamed(), std::set<int>{0});
  expect_usable();
}

TEST_P(FaultTest, QueueStalls) {
  options_.deadline = 100ms;
  prepare();
  bench_.queues[0]->device_faults.set([](const Slice& slice) {
    if (slice.op == 5) std::this_thread::sleep_for(400ms);
    return Status();
  });
  const Status status = run();
  EXPECT_EQ(status.code(), StatusCode::kDeadlineExceeded);
  EXPECT_THAT(status.message(), AllOf(HasSubstr("gpu0"), HasSubstr("op5"),
                                      HasSubstr("cpu0 waits "
                                                "before op6")));
  EXPECT_EQ(blamed(), std::set<int>{1});
  expect_usable();
}

// A lane that is slow, but not late, costs a second attempt: the device no longer polls, in this
// run and in all later ones.
TEST_P(FaultTest, ADeviceStopsPollingForASlowLane) {
  options_.sync.device_spin_limit = 20ms;
  prepare();
  int slow_slices = 0;
  bench_.cpus[0]->faults.set([&](const Slice& slice) {
    if (slice.op == 4) {
      ++slow_slices;
      std::this_thread::sleep_for(100ms);
    }
    return Status();
  });
  bench_.expect_right(random_);
  const bool polls = GetParam() == SyncMechanism::kSvm || GetParam() == SyncMechanism::kPinned;
  EXPECT_EQ(slow_slices, polls ? 2 : 1);
  EXPECT_EQ(bench_.executor->mechanism(), polls ? SyncMechanism::kEvent : GetParam());
  bench_.expect_right(random_);
  EXPECT_EQ(slow_slices, polls ? 3 : 2);
  expect_usable();
}

// The second attempt has what is left of the deadline, and can be cancelled.
TEST_P(FaultTest, ASecondAttemptCanBeCancelled) {
  options_.sync.device_spin_limit = 20ms;
  prepare();
  std::atomic<int> slow_slices = 0;
  bench_.cpus[0]->faults.set([&](const Slice& slice) {
    if (slice.op != 4) return Status();
    if (++slow_slices == 2) bench_.executor->cancel();
    std::this_thread::sleep_for(100ms);
    return Status();
  });
  const bool polls = GetParam() == SyncMechanism::kSvm || GetParam() == SyncMechanism::kPinned;
  EXPECT_EQ(run().code(), polls ? StatusCode::kCancelled : StatusCode::kOk);
  expect_usable();
}

TEST_P(FaultTest, RunReturnsEvenIfALaneNeverComesBack) {
  options_.deadline = 50ms;
  options_.drain_grace = 50ms;
  prepare();
  std::atomic<bool> release = false;
  bench_.cpus[0]->faults.set([&](const Slice& slice) {
    while (slice.op == 2 && !release) std::this_thread::sleep_for(1ms);
    return Status();
  });
  EXPECT_EQ(run().code(), StatusCode::kDeadlineExceeded);
  // The lane is still at it, and memory is still in its hands.
  const Status again = run();
  EXPECT_EQ(again.code(), StatusCode::kDeadlineExceeded);
  EXPECT_THAT(again.message(), AllOf(HasSubstr("still busy"), HasSubstr("op2")));
  release = true;
  options_.deadline = 10s;
  std::this_thread::sleep_for(20ms);
  bench_.cpus[0]->faults.set({});
  EXPECT_TRUE(run().ok());
  expect_usable();
}

TEST_P(FaultTest, CancelFromAnotherThread) {
  options_.deadline = 30s;
  prepare();
  for (const int where : {2, 3}) {  // while the CPU lane computes, and while the queue does
    std::atomic<bool> reached = false;
    const auto slow = [&](const Slice& slice) {
      if (slice.op == where) {
        reached = true;
        std::this_thread::sleep_for(100ms);
      }
      return Status();
    };
    bench_.cpus[0]->faults.set(slow);
    bench_.queues[0]->device_faults.set(slow);
    std::thread canceller([&] {
      while (!reached) std::this_thread::yield();
      bench_.executor->cancel();
    });
    const Status status = run();
    canceller.join();
    EXPECT_EQ(status.code(), StatusCode::kCancelled) << status.message();
    EXPECT_TRUE(blamed().empty());
    expect_usable();
  }
  bench_.executor->cancel();  // nothing runs: nothing happens
  expect_usable();
}

// Aborts at every moment of a run, again and again.
TEST_P(FaultTest, CancelAtAnyTime) {
  prepare();
  int cancelled_runs = 0;
  for (int i = 0; i < 150; ++i) {
    std::thread canceller([&] {
      std::this_thread::sleep_for(std::chrono::microseconds(i * 3));
      bench_.executor->cancel();
    });
    const Status status = run();
    canceller.join();
    ASSERT_TRUE(status.ok() || status.code() == StatusCode::kCancelled) << status.message();
    cancelled_runs += !status.ok();
    if (i % 10 == 0) bench_.expect_right(random_);
  }
  EXPECT_GT(cancelled_runs, 0);
  expect_usable();
}

TEST_P(FaultTest, LanesInUseByOthers) {
  options_.deadline = 50ms;
  prepare();
  {
    const auto lease = LaneCrew::acquire(bench_.crew, Clock::now());
    ASSERT_TRUE(lease.ok());
    const Status status = run();
    EXPECT_EQ(status.code(), StatusCode::kDeadlineExceeded);
    EXPECT_THAT(status.message(), HasSubstr("busy"));
  }
  expect_usable();
}

}  // namespace
}  // namespace tandem
