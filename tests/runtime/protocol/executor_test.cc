#include "runtime/executor.h"

#include <gtest/gtest.h>

#include <limits>

#include "tests/runtime/protocol/fake_bench.h"
#include "tests/runtime/protocol/lane_setups.h"
#include "tests/schedule/random_graph.h"

namespace tandem {
namespace {

using namespace std::chrono_literals;  // NOLINT: literals only
using testing::FakeBench;
using testing::LaneSetup;
using testing::Random;
using testing::random_graph;
using testing::random_schedule;

class ProtocolTest : public ::testing::TestWithParam<LaneSetup> {};

// Every number is right, bit for bit, whatever the graph, the partition, the order and the timing;
// memory is reused, and counters wrap around on the way.
TEST_P(ProtocolTest, RandomGraphsUnderRandomSchedules) {
  const LaneSetup& setup = GetParam();
  for (uint64_t seed = 0; seed < 12; ++seed) {
    Random random(seed);
    const Graph graph = random_graph(random, static_cast<int>(random.integer(2, 40)));
    FakeBench bench(setup.cpu_lanes, setup.queue_lanes, setup.feeder, setup.memory);
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

INSTANTIATE_TEST_SUITE_P(Lanes, ProtocolTest, ::testing::ValuesIn(testing::kLaneSetups),
                         [](const auto& info) { return info.param.name; });

TEST(Executor, MappedMemoryOfTwoQueuesIsRefused) {
  Random random(3);
  const Graph graph = random_graph(random, 12);
  FakeBench bench(0, 2, Feeder::kOwnThread);
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
  FakeBench bench(1, 1, Feeder::kFirstCpuLane);
  bench.prepare(graph, schedule, {});
  Random random(1);
  bench.expect_right(random);
  EXPECT_EQ(bench.queues[0]->signals, 1);
  EXPECT_EQ(bench.queues[0]->waits, 0);
  EXPECT_GT(bench.executor->makespan_us(), 0);
}

// Two sessions' worth of executors on one crew, from two threads.
TEST(Executor, RunsOfTwoExecutorsTakeTurns) {
  Random random(5);
  const Graph graph = random_graph(random, 15);
  FakeBench bench(1, 1, Feeder::kFirstCpuLane);
  bench.prepare(graph, random_schedule(random, graph, 2), {});
  FakeBench other(0, 0, Feeder::kAuto);
  other.crew = bench.crew;
  other.prepare(graph, random_schedule(random, graph, 2), {});
  std::thread thread([&] {
    Random mine(6);
    for (int i = 0; i < 20; ++i) other.expect_right(mine);
  });
  for (int i = 0; i < 20; ++i) bench.expect_right(random);
  thread.join();
}

}  // namespace
}  // namespace tandem
