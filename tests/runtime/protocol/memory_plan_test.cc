#include "runtime/memory_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "schedule/dependencies.h"
#include "tests/schedule/random_graph.h"

namespace tandem {
namespace {

using testing::Random;
using testing::random_graph;
using testing::random_schedule;

struct Bytes {
  int64_t begin, end;
  bool meets(const Bytes& other) const { return begin < other.end && other.begin < end; }
};

// Who is certain to have finished before whom starts, by brute force over orders and waits.
class HappensBefore {
 public:
  explicit HappensBefore(const Schedule& schedule) : schedule_(schedule) {}

  // All slices with a path to (lane, index), as counts per lane; not itself.
  std::vector<int> before(int lane, int index) const {
    std::vector<int> counts(schedule_.lanes.size(), 0);
    std::set<std::pair<int, int>> seen;
    std::vector<Position> open;
    const auto visit_predecessors = [&](Position p) {
      if (p.index > 0) open.push_back({p.lane, p.index - 1});
      for (const Wait& wait : schedule_.lanes[p.lane][p.index].waits) {
        open.push_back({wait.lane, wait.count - 1});
      }
    };
    visit_predecessors({lane, index});
    while (!open.empty()) {
      const Position p = open.back();
      open.pop_back();
      if (!seen.emplace(p.lane, p.index).second) continue;
      counts[p.lane] = std::max(counts[p.lane], p.index + 1);
      visit_predecessors(p);
    }
    return counts;
  }

 private:
  const Schedule& schedule_;
};

TEST(MemoryPlanProperty, NothingAliveIsOverwritten) {
  size_t with_reuse = 0;
  size_t without_reuse = 0;
  for (uint64_t seed = 0; seed < 60; ++seed) {
    Random random(seed);
    const Graph graph = random_graph(random, static_cast<int>(random.integer(5, 60)));
    const Schedule schedule =
        random_schedule(random, graph, static_cast<int>(random.integer(1, 3)));
    const MemoryPlan plan = plan_memory(graph, schedule);
    EXPECT_EQ(plan.memory.without_reuse, plan_memory(graph).memory.arena);
    EXPECT_LE(plan.memory.arena, plan.memory.without_reuse);
    with_reuse += plan.memory.arena;
    without_reuse += plan.memory.without_reuse;

    const auto bytes_of = [&](TensorId root) {
      const Tensor& tensor = graph.tensor(root);
      return Bytes{plan.offsets[root],
                   plan.offsets[root] + span_of(tensor.dims, tensor.layout) * 4};
    };
    // The slices that touch each tensor's memory.
    std::vector<std::vector<Position>> touching(graph.tensors().size());
    for (size_t lane = 0; lane < schedule.lanes.size(); ++lane) {
      for (size_t i = 0; i < schedule.lanes[lane].size(); ++i) {
        const Operator& op = graph.op(schedule.lanes[lane][i].slice.op);
        const Position p{static_cast<int>(lane), static_cast<int>(i)};
        touching[plan.placement.tensors[op.output].root].push_back(p);
        for (TensorId t : op.inputs) touching[plan.placement.tensors[t].root].push_back(p);
      }
    }
    const auto is_root_of = [&](TensorId root, const std::vector<TensorId>& tensors) {
      return std::any_of(tensors.begin(), tensors.end(),
                         [&](TensorId t) { return plan.placement.tensors[t].root == root; });
    };
    const HappensBefore order(schedule);
    const auto all_before = [&](TensorId a, TensorId b) {
      if (is_root_of(a, graph.outputs()) || is_root_of(b, graph.inputs())) return false;
      for (Position q : touching[b]) {
        const std::vector<int> before = order.before(q.lane, q.index);
        for (Position p : touching[a]) {
          if (before[p.lane] <= p.index) return false;
        }
      }
      return true;
    };
    for (size_t a = 0; a < graph.tensors().size(); ++a) {
      if (plan.offsets[a] == kNone) continue;
      EXPECT_EQ(plan.offsets[a] % 64, 0);
      for (size_t b = 0; b < a; ++b) {
        const auto ta = static_cast<TensorId>(a);
        const auto tb = static_cast<TensorId>(b);
        if (plan.offsets[b] == kNone || !bytes_of(ta).meets(bytes_of(tb))) continue;
        ASSERT_NE(graph.tensor(ta).kind, TensorKind::kConstant);
        ASSERT_NE(graph.tensor(tb).kind, TensorKind::kConstant);
        const bool a_first = all_before(ta, tb);
        ASSERT_TRUE(a_first || all_before(tb, ta))
            << "seed " << seed << ": " << graph.tensor(ta).name << " and " << graph.tensor(tb).name;
        EXPECT_FALSE(plan.survives[a_first ? a : b]);
      }
    }
  }
  EXPECT_LT(with_reuse, without_reuse * 3 / 4) << "hardly anything was reused";
}

// By the definition: at each slice, what was touched before or is touched now, and is touched now
// or later.
TEST(MemoryPlanProperty, OnOneLaneLeastIsTheMostInUseAtOnce) {
  size_t arena = 0;
  size_t least = 0;
  for (uint64_t seed = 0; seed < 60; ++seed) {
    Random random(seed);
    const Graph graph = random_graph(random, static_cast<int>(random.integer(5, 60)));
    const Schedule schedule = random_schedule(random, graph, 1);
    const MemoryPlan plan = plan_memory(graph, schedule);
    const auto slices = static_cast<int>(schedule.lanes[0].size());
    struct Use {
      int first, last;
    };
    std::map<TensorId, Use> uses;
    const auto use = [&](TensorId tensor, int at) {
      Use& of_root = uses.emplace(plan.placement.tensors[tensor].root, Use{at, at}).first->second;
      of_root.first = std::min(of_root.first, at);
      of_root.last = std::max(of_root.last, at);
    };
    for (int i = 0; i < slices; ++i) {
      const Operator& op = graph.op(schedule.lanes[0][i].slice.op);
      use(op.output, i);
      for (TensorId t : op.inputs) use(t, i);
    }
    for (TensorId t : graph.outputs()) use(t, slices - 1);
    for (TensorId t : graph.inputs()) {
      // One that nothing reads is not in use once the first slice runs.
      if (uses.contains(plan.placement.tensors[t].root)) use(t, 0);
    }
    int64_t most = 0;
    for (int i = 0; i < slices; ++i) {
      int64_t in_use = 0;
      for (size_t t = 0; t < graph.tensors().size(); ++t) {
        const auto id = static_cast<TensorId>(t);
        if (plan.offsets[t] == kNone) continue;
        const bool constant = graph.tensor(id).kind == TensorKind::kConstant;
        if (!constant && (!uses.contains(id) || i < uses[id].first || i > uses[id].last)) continue;
        in_use += (span_of(graph.tensor(id).dims, graph.tensor(id).layout) * 4 + 63) / 64 * 64;
      }
      most = std::max(most, in_use);
    }
    EXPECT_EQ(plan.memory.least, static_cast<size_t>(most)) << "seed " << seed;
    EXPECT_GE(plan.memory.arena, plan.memory.least);
    arena += plan.memory.arena;
    least += plan.memory.least;
  }
  EXPECT_LE(arena, least * 11 / 10) << "plans are far from what is possible";
}

TEST(MemoryPlan, AChainNeedsTwoBuffers) {
  Graph graph;
  TensorId x = graph.add_input("x", DataType::kFloat32, {16, 64});
  for (int i = 0; i < 10; ++i) x = graph.add("", UnaryAttributes{}, {x}).value();
  graph.mark_output(x);
  Schedule schedule;
  schedule.lanes.resize(1);
  for (int op = 0; op < 10; ++op) schedule.lanes[0].push_back({.slice = {.op = op}});
  ASSERT_TRUE(derive_waits(graph, &schedule).ok());
  const MemoryPlan plan = plan_memory(graph, schedule);
  EXPECT_EQ(plan.memory.arena, 2u * 16 * 64 * 4);
  EXPECT_EQ(plan.memory.without_reuse, 11u * 16 * 64 * 4);
  EXPECT_TRUE(plan.survives[x]);
  EXPECT_FALSE(plan.survives[graph.inputs()[0]]);
}

TEST(MemoryPlan, ConstantsHaveMemoryOnlyIfLanesDoNotPackThem) {
  Random random(1);
  Graph graph;
  const TensorId x = graph.add_input("x", DataType::kFloat32, {4, 20});
  const TensorId w = graph.add_constant("w", testing::random_tensor(random, {20, 20}));
  const TensorId c = graph.add_constant("c", testing::random_tensor(random, {4, 20}));
  const TensorId y = graph.add("", LinearAttributes{}, {x, w}).value();
  graph.mark_output(graph.add("", BinaryAttributes{}, {y, c}).value());
  const MemoryPlan plan = plan_memory(graph);
  EXPECT_EQ(plan.offsets[w], kNone);
  ASSERT_NE(plan.offsets[c], kNone);
  const auto arena = Arena::create(graph, plan, Arena::host_allocator());
  ASSERT_TRUE(arena.ok());
  EXPECT_EQ(arena->bindings()[w].data, nullptr);
  HostTensor back(DataType::kFloat32, {4, 20});
  copy_from_view(arena->bindings()[c], back);
  EXPECT_EQ(back.bytes, graph.tensor(c).value->bytes);
  // Rows are padded with zeros.
  EXPECT_EQ(arena->bindings()[c].as<float>()[20], 0.0f);
}

}  // namespace
}  // namespace tandem
