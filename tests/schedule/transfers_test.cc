#include "schedule/transfers.h"

#include <gtest/gtest.h>

#include <map>
#include <numeric>

#include "tests/schedule/random_graph.h"

namespace tandem {
namespace {

using testing::Random;
using testing::random_graph;
using testing::random_schedule;

template <typename F>
void for_each_index(const Region& region, const F& f) {
  if (is_empty(region)) return;
  Dims index;
  for (const Range& range : region) index.push_back(range.begin);
  while (true) {
    f(index);
    size_t d = index.size();
    while (d > 0 && ++index[d - 1] == region[d - 1].end) {
      index[d - 1] = region[d - 1].begin;
      --d;
    }
    if (d == 0) return;
  }
}

// Which elements of each tensor's memory have a value, in one memory.
class Memory {
 public:
  Memory(const Graph& graph, const Placement& placement) : graph_(graph), placement_(placement) {}

  // False if some element has been written before.
  bool write(TensorId tensor, const Region& region) {
    bool first = true;
    each(tensor, region, [&](bool& valid) {
      first = first && !valid;
      valid = true;
    });
    return first;
  }
  bool has(TensorId tensor, const Region& region) {
    bool all = true;
    each(tensor, region, [&](bool& valid) { all = all && valid; });
    return all;
  }

 private:
  template <typename F>
  void each(TensorId tensor, const Region& region, const F& f) {
    const TensorPlace& place = placement_.tensors[tensor];
    for_each_index(region, [&](const Dims& index) {
      f(valid_[{place.root, std::inner_product(index.begin(), index.end(), place.strides.begin(),
                                               place.offset)}]);
    });
  }

  const Graph& graph_;
  const Placement& placement_;
  std::map<std::pair<TensorId, int64_t>, bool> valid_;
};

// The part of a slice's output that it writes: operands of a concat that are in place are left
// alone.
std::vector<Region> written_by(const Graph& graph, const Placement& placement, const Slice& slice) {
  const Operator& op = graph.op(slice.op);
  const Region region = output_region(graph, slice);
  if (op.kind() != OperatorKind::kConcat) return {region};
  const int axis = op.as<ConcatAttributes>().axis;
  std::vector<Region> written;
  int64_t begin = 0;
  for (TensorId input : op.inputs) {
    const int64_t end = begin + graph.tensor(input).dims[axis];
    Region part = region;
    part[axis] = {std::max(part[axis].begin, begin), std::min(part[axis].end, end)};
    begin = end;
    if (placement.tensors[input].root == placement.tensors[op.output].root) continue;
    if (!is_empty(part)) written.push_back(part);
  }
  return written;
}

// Runs a schedule on memories that only know what is valid. Every element that a slice reads is
// there, every element that is copied has a value, and nothing is written twice.
void expect_complete(const Graph& graph, const Schedule& schedule,
                     const std::vector<bool>& own_memory, bool everything) {
  const Transfers transfers = plan_transfers(graph, schedule, own_memory, everything);
  const Placement placement = analyse(graph);
  std::vector<Memory> memories(schedule.lanes.size() + 1, Memory(graph, placement));
  Memory& host = memories.back();
  for (size_t t = 0; t < graph.tensors().size(); ++t) {
    const auto id = static_cast<TensorId>(t);
    const TensorKind kind = graph.tensor(id).kind;
    for (Memory& memory : memories) {
      const bool there = kind == TensorKind::kConstant || &memory == &host;
      if (there && kind != TensorKind::kActivation) {
        memory.write(id, whole_region(graph.tensor(id).dims));
      }
    }
  }
  Predecessors predecessors(schedule.lanes.size());
  for (size_t lane = 0; lane < schedule.lanes.size(); ++lane) {
    for (const ScheduledSlice& scheduled : schedule.lanes[lane]) {
      predecessors[lane].emplace_back();
      for (const Wait& wait : scheduled.waits) {
        predecessors[lane].back().push_back({wait.lane, wait.count - 1});
      }
    }
  }
  for (const Position p : order_slices(predecessors).order) {
    const Slice& slice = schedule.lanes[p.lane][p.index].slice;
    SCOPED_TRACE(to_string(graph, slice));
    Memory& mine = own_memory[p.lane] ? memories[p.lane] : host;
    const auto& lane_transfers = transfers.lanes[p.lane];
    ASSERT_EQ(lane_transfers.empty(), !own_memory[p.lane] || schedule.lanes[p.lane].empty());
    if (own_memory[p.lane]) {
      for (const TensorRegion& part : lane_transfers[p.index].before) {
        ASSERT_TRUE(host.has(part.tensor, part.region)) << "copies what is not there";
        ASSERT_TRUE(mine.write(part.tensor, part.region)) << "overwrites";
      }
    }
    const Operator& op = graph.op(slice.op);
    for (size_t i = 0; i < op.inputs.size(); ++i) {
      ASSERT_TRUE(mine.has(op.inputs[i], input_region(graph, slice.op, static_cast<int>(i),
                                                      output_region(graph, slice))))
          << "input " << i << " is not there";
    }
    for (const Region& region : written_by(graph, placement, slice)) {
      ASSERT_TRUE(mine.write(op.output, region)) << "overwrites a copy";
    }
    if (own_memory[p.lane]) {
      for (const TensorRegion& part : lane_transfers[p.index].after) {
        ASSERT_TRUE(mine.has(part.tensor, part.region)) << "copies what is not there";
        ASSERT_TRUE(host.write(part.tensor, part.region)) << "overwrites";
      }
    }
  }
  for (size_t t = 0; t < graph.tensors().size(); ++t) {
    const auto id = static_cast<TensorId>(t);
    if (!everything && !graph.is_output(id)) continue;
    EXPECT_TRUE(host.has(id, whole_region(graph.tensor(id).dims))) << graph.tensor(id).name;
  }
}

TEST(TransfersProperty, EverythingReadIsThereAndNothingIsWrittenTwice) {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    Random random(seed);
    const Graph graph = random_graph(random, static_cast<int>(random.integer(2, 40)));
    const int lanes = static_cast<int>(random.integer(1, 4));
    const Schedule schedule = random_schedule(random, graph, lanes);
    std::vector<bool> own_memory;
    for (int lane = 0; lane < lanes; ++lane) own_memory.push_back(random.coin());
    SCOPED_TRACE("seed " + std::to_string(seed));
    expect_complete(graph, schedule, own_memory, random.integer(0, 3) == 0);
    if (HasFatalFailure()) return;
  }
}

// Of a slice of rows, the next lane needs the halo only.
TEST(Transfers, CopyOnlyWhatIsRead) {
  Graph graph;
  const Layout image{Order::kChannelsLast, true};
  const TensorId x = graph.add_input("x", DataType::kFloat32, {1, 16, 8, 5}, image);
  const TensorId y = graph.add("", UnaryAttributes{}, {x}, {}, image).value();
  PoolAttributes pool;
  pool.kernel = {3, 3};
  pool.pads = {1, 1, 1, 1};
  const TensorId z = graph.add("", pool, {y}, {}, image).value();
  graph.mark_output(z);
  Schedule schedule;
  schedule.lanes.resize(2);
  for (int op = 0; op < 2; ++op) {
    schedule.lanes[0].push_back({.slice = {op, 2, 0, 4}});
    schedule.lanes[1].push_back({.slice = {op, 2, 4, 8}});
  }
  ASSERT_TRUE(derive_waits(graph, &schedule).ok());
  const Transfers transfers = plan_transfers(graph, schedule, {false, true});
  const auto rows = [](int64_t begin, int64_t end) {
    return Region{{0, 1}, {0, 16}, {begin, end}, {0, 5}};
  };
  const std::vector<Transfers::Around>& lane = transfers.lanes[1];
  ASSERT_EQ(lane.size(), 2u);
  ASSERT_EQ(lane[0].before.size(), 1u);
  EXPECT_EQ(lane[0].before[0].tensor, x);
  EXPECT_EQ(lane[0].before[0].region, rows(4, 8));
  ASSERT_EQ(lane[0].after.size(), 1u);
  EXPECT_EQ(lane[0].after[0].region, rows(4, 5));
  ASSERT_EQ(lane[1].before.size(), 1u);
  EXPECT_EQ(lane[1].before[0].region, rows(3, 4));
  ASSERT_EQ(lane[1].after.size(), 1u);
  EXPECT_EQ(lane[1].after[0].tensor, z);
  EXPECT_EQ(lane[1].after[0].region, rows(4, 8));
}

}  // namespace
}  // namespace tandem
