#include "simulate/simulated_run.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "lane/sim/world.h"
#include "platform/platform_file.h"
#include "schedule/placement.h"
#include "schedule/plan.h"
#include "schedule/single_lane.h"
#include "simulate/oracle_costs.h"

namespace tandem::simulate {
namespace {

sim::PlatformModel platform(const std::string& name) {
  StatusOr<sim::PlatformModel> model = load_platform(name);
  EXPECT_TRUE(model.ok()) << model.status().to_string();
  return *model;
}

constexpr Layout kImage{Order::kChannelsLast, true};

TensorId add_convolution(Graph* graph, const std::string& name, TensorId x) {
  const int64_t channels = graph->tensor(x).dims[1];
  const TensorId w =
      graph->add_constant("w", HostTensor(DataType::kFloat32, {channels, channels, 3, 3}));
  ConvAttributes attributes;
  attributes.kernel = {3, 3};
  attributes.pads = {1, 1, 1, 1};
  return *graph->add(name, attributes, {x, w}, {}, kImage);
}

// Two convolutions that do not depend on each other, and their sum.
Graph diamond(int64_t channels) {
  Graph graph;
  const TensorId x = graph.add_input("x", DataType::kFloat32, {1, channels, 28, 28}, kImage);
  const TensorId left = add_convolution(&graph, "left", x);
  const TensorId right = add_convolution(&graph, "right", x);
  graph.mark_output(*graph.add("sum", BinaryAttributes{}, {left, right}, {}, kImage));
  return graph;
}

// Two convolutions, one after the other; the output is what they make, or a view of it.
Graph chain(bool viewed) {
  Graph graph;
  const TensorId x = graph.add_input("x", DataType::kFloat32, {1, 64, 28, 28}, kImage);
  const TensorId y = add_convolution(&graph, "second", add_convolution(&graph, "first", x));
  const Dims merged = {1, 64, 1, 28 * 28};
  graph.mark_output(viewed ? *graph.add("view", ReshapeAttributes{}, {y}, merged, kImage) : y);
  return graph;
}

class OnPixel4 : public testing::Test {
 protected:
  sim::PlatformModel model_ = platform("pixel4");
  Graph graph_ = diamond(64);
  OracleCosts costs_{graph_, model_, Mechanism::kSvm};
  Problem problem_ = problem_of(graph_, model_, &costs_);
  static constexpr int kCpu = 0;
  static constexpr int kGpu = 2;

  // left on the GPU, the others on the CPU.
  Schedule spread() const {
    Schedule schedule;
    schedule.lanes.resize(3);
    schedule.lanes[kGpu].push_back({Slice{.op = 0}});
    schedule.lanes[kCpu].push_back({Slice{.op = 1}});
    schedule.lanes[kCpu].push_back({Slice{.op = 2}});
    EXPECT_TRUE(derive_waits(graph_, &schedule).ok());
    return schedule;
  }
};

TEST_F(OnPixel4, ASingleLaneTakesTheSumOfItsSlices) {
  for (const int lane : {kCpu, kGpu}) {
    const Schedule schedule = single_lane_schedule(problem_, lane);
    double sum = 0;
    for (const ScheduledSlice& slice : schedule.lanes[lane]) {
      sum += costs_.slice_us(lane, slice.slice, slice.threads);
    }
    const SimulatedRun run = simulate_run(problem_, model_, schedule, {});
    // The queue's first slice has to be enqueued first.
    EXPECT_NEAR(run.timeline.makespan_us, sum + costs_.enqueue_us(lane), 1e-6 * sum);
    EXPECT_NEAR(run.busy_us[lane], sum, 1e-6 * sum);
  }
}

TEST_F(OnPixel4, LanesOverlapAndWordTakesItsTimeFromWhereItWasSent) {
  const double cpu = costs_.slice_us(kCpu, Slice{.op = 1});
  const double sum = costs_.slice_us(kCpu, Slice{.op = 2});
  for (const Mechanism mechanism : {Mechanism::kSvm, Mechanism::kEvent, Mechanism::kFinish}) {
    // From word that is there long before the CPU asks to word that it waits for.
    for (const double crossing : {0.0, 0.5 * cpu, 3 * cpu}) {
      sim::PlatformModel model = model_;
      model.sync.svm.gpu_to_cpu = model.sync.event.gpu_to_cpu = crossing;
      model.sync.finish.gpu_to_cpu = crossing;
      const OracleCosts costs(graph_, model, mechanism);
      const Problem problem = problem_of(graph_, model, &costs);
      const double gpu = costs.slice_us(kGpu, Slice{.op = 0}) + costs.enqueue_us(kGpu);
      const double least = std::max(gpu + crossing, cpu) + sum;
      const SimulatedRun run = simulate_run(problem, model, spread(), {});
      EXPECT_GE(run.timeline.makespan_us, least - 1e-6);
      // Both at once share the memory bus, which slows them by little here.
      EXPECT_LE(run.timeline.makespan_us, 1.1 * least) << crossing;
      const std::vector<Span>& spans = run.timeline.lanes[kCpu];
      const bool waits = gpu + crossing > 1.1 * cpu;
      ASSERT_EQ(spans.size(), waits ? 3u : 2u) << crossing;
      if (waits) {
        EXPECT_EQ(spans[1].kind, SpanKind::kWait);
        EXPECT_EQ(spans[1].begin_us, spans[0].end_us);
        EXPECT_EQ(spans[2].begin_us, spans[1].end_us);
        EXPECT_NEAR(spans[1].end_us - run.timeline.lanes[kGpu].back().end_us, crossing, 1e-6);
      }
    }
  }
}

TEST_F(OnPixel4, IsDeterministicForASeed) {
  RunOptions options;
  options.seed = 5;
  const double us = simulate_run(problem_, model_, spread(), options).timeline.makespan_us;
  EXPECT_EQ(simulate_run(problem_, model_, spread(), options).timeline.makespan_us, us);
  options.seed = 6;
  EXPECT_NE(simulate_run(problem_, model_, spread(), options).timeline.makespan_us, us);
}

TEST_F(OnPixel4, PlansAreNotSlowerThanTheBestLane) {
  double best = 1e30;
  for (const int lane : {0, 1, 2}) best = std::min(best, single_lane_us(problem_, lane));
  for (const char* strategy : {"inter", "intra", "joint"}) {
    PlanOptions options;
    options.strategy = strategy;
    const StatusOr<PlannedSchedule> planned = plan(problem_, options);
    ASSERT_TRUE(planned.ok()) << planned.status().to_string();
    EXPECT_TRUE(check_schedule(graph_, planned->schedule).ok());
    const SimulatedRun run = simulate_run(problem_, model_, planned->schedule, {});
    EXPECT_LE(run.timeline.makespan_us, 1.05 * (best + costs_.enqueue_us(kGpu))) << strategy;
    // The evaluator's makespan is a prediction of this run.
    EXPECT_NEAR(run.timeline.makespan_us / planned->evaluation.makespan_us, 1, 0.15) << strategy;
  }
}

// Two definitions of the same makespan: the evaluator's, by modes and their costs, and this one, by
// waits and regions to be copied.
TEST(SimulatedRun, TakesAsLongAsTheEvaluatorSaysWhereNothingSlowsLanesDown) {
  const Graph graph = chain(false);
  const Graph viewed = chain(true);
  ASSERT_FALSE(analyse(viewed).launched.back());
  for (const char* name : {"pixel4", "rk3588", "moto_edge_2022"}) {
    const sim::PlatformModel model = platform(name);
    for (const Graph* each : {&graph, &viewed}) {
      const OracleCosts costs(*each, model, best_mechanism(model));
      const Problem problem = problem_of(*each, model, &costs);
      for (int lane = 0; lane < static_cast<int>(problem.lanes.size()); ++lane) {
        const Schedule schedule = single_lane_schedule(problem, lane);
        const StatusOr<Evaluation> predicted = evaluate_schedule(problem, schedule);
        ASSERT_TRUE(predicted.ok()) << predicted.status().to_string();
        EXPECT_NEAR(simulate_run(problem, model, schedule, {}).timeline.makespan_us,
                    predicted->makespan_us, 1e-6 * predicted->makespan_us)
            << name << " " << problem.lanes[lane].name;
      }
    }
  }
}

TEST_F(OnPixel4, EnergyIsPowerTimesTime) {
  const SimulatedRun run = simulate_run(problem_, model_, single_lane_schedule(problem_, kGpu), {});
  double idle = model_.gpu.idle_mw;
  for (const sim::Cluster& cluster : model_.clusters) idle += cluster.idle_mw;
  const double expected =
      (model_.gpu.active_mw * run.busy_us[kGpu] + idle * run.timeline.makespan_us) * 1e-6;
  EXPECT_NEAR(run.energy_mj, expected, 1e-9 * expected);
}

TEST_F(OnPixel4, AWarmChipSlowsDownAndStaysNearItsLimit) {
  const std::vector<ThrottledRun> runs =
      run_until_warm(problem_, model_, single_lane_schedule(problem_, kCpu), 60);
  ASSERT_GT(runs.size(), 10u);
  EXPECT_EQ(runs.front().cpu_clock, 1);
  EXPECT_GE(runs.back().us, runs.front().us);
  for (const ThrottledRun& run : runs) {
    EXPECT_LE(run.temperature_c, model_.thermal.limit_c + 1);
    EXPECT_GE(run.temperature_c, model_.thermal.ambient_c);
  }
}

TEST(Mechanisms, FollowTheDriver) {
  EXPECT_EQ(best_mechanism(platform("pixel4")), Mechanism::kSvm);
  EXPECT_NE(best_mechanism(platform("rk3588")), Mechanism::kSvm);
  EXPECT_FALSE(parse_mechanism(platform("rk3588"), "svm").ok());
  EXPECT_FALSE(parse_mechanism(platform("pixel4"), "smoke").ok());
  EXPECT_EQ(*parse_mechanism(platform("pixel4"), "event"), Mechanism::kEvent);
}

TEST(World, TasksPassTimeOnTheirOwnLane) {
  const auto world = std::make_shared<sim::World>(platform("pixel5"), 3);
  const std::unique_ptr<Lane> lane = sim::make_simulated_lane(world, 0);
  EXPECT_EQ(lane->info().kind, LaneKind::kSimulated);
  EXPECT_NE(lane->info().description.find("SIMULATED"), std::string::npos);
  const Graph graph = diamond(32);
  const auto program = lane->load(graph, TensorBindings{});
  ASSERT_TRUE(program.ok());
  const auto task = (*program)->bind(Slice{.op = 0}, 1);
  ASSERT_TRUE(task.ok());
  EXPECT_EQ((*task)->info().threads, 1);
  ASSERT_TRUE((*task)->launch().ok());
  EXPECT_GT(world->now_us(0), 0);
  EXPECT_EQ(world->now_us(1), 0);
  EXPECT_FALSE((*program)->bind(Slice{0, 1, 3, 5}, 1).ok());  // not on the granularity
}

TEST(World, OtherLanesWorkSlowsWhatReadsMemory) {
  const auto model = platform("pixel4");
  const sim::Workload work = *sim::parse_workload("linear:1:4096:1:4096:1:1:1");
  const auto time = [&](sim::OtherWork others) {
    sim::World world(model, 1);
    world.set_other_work(2, others);
    return world.run(2, work, 0, nullptr);
  };
  EXPECT_GT(time(sim::OtherWork::kMemory), 1.1 * time(sim::OtherWork::kNone));
  EXPECT_LT(time(sim::OtherWork::kCompute), time(sim::OtherWork::kMemory));
}

}  // namespace
}  // namespace tandem::simulate
