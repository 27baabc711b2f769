// A schedule on fake lanes, and what it must give.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/executor.h"
#include "tests/runtime/fake_lane.h"
#include "tests/runtime/fake_queue_lane.h"
#include "tests/schedule/random_graph.h"

namespace tandem::testing {

// Outputs computed one operator after another, with the fake lanes' own arithmetic.
inline std::vector<HostTensor> serial_outputs(const Graph& graph,
                                              const std::vector<HostTensor>& inputs) {
  const MemoryPlan plan = plan_memory(graph);
  const Arena arena = Arena::create(graph, plan, Arena::host_allocator()).value();
  for (size_t i = 0; i < inputs.size(); ++i) {
    copy_to_view(inputs[i], arena.bindings()[graph.inputs()[i]]);
  }
  for (size_t op = 0; op < graph.operators().size(); ++op) {
    if (!plan.placement.launched[op]) continue;
    compute_slice(graph, arena.bindings(), Slice{.op = static_cast<OperatorId>(op)});
  }
  std::vector<HostTensor> outputs;
  for (TensorId id : graph.outputs()) {
    outputs.emplace_back(DataType::kFloat32, graph.tensor(id).dims);
    copy_from_view(arena.bindings()[id], outputs.back());
  }
  return outputs;
}

// Fake lanes, a schedule bound to them, and memory.
struct FakeBench {
  FakeBench(int cpu_lanes, int queue_lanes, Feeder feeder,
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

}  // namespace tandem::testing
