#include "schedule/dependencies.h"

#include <algorithm>

namespace tandem {
namespace {

// Follows unfinished predecessors from an unfinished slice until one comes round again.
std::vector<Position> find_cycle(const Predecessors& predecessors,
                                 const std::vector<std::vector<bool>>& done, Position start) {
  const auto unfinished_predecessor = [&](Position p) {
    if (p.index > 0 && !done[p.lane][p.index - 1]) return Position{p.lane, p.index - 1};
    const std::vector<Position>& all = predecessors[p.lane][p.index];
    return *std::find_if(all.begin(), all.end(),
                         [&](Position q) { return !done[q.lane][q.index]; });
  };
  std::vector<Position> path{start};
  while (true) {
    const Position next = unfinished_predecessor(path.back());
    const auto seen = std::find(path.begin(), path.end(), next);
    if (seen != path.end()) {
      // Backwards, so that each slice of the answer comes before the next.
      std::vector<Position> cycle(seen, path.end());
      std::reverse(cycle.begin(), cycle.end());
      return cycle;
    }
    path.push_back(next);
  }
}

// What a slice reads, where it lies.
std::vector<TensorRegion> read_by(const Graph& graph, const Placement& placement,
                                  const Slice& slice) {
  const Operator& op = graph.op(slice.op);
  const Region region = output_region(graph, slice);
  std::vector<TensorRegion> parts;
  for (size_t i = 0; i < op.inputs.size(); ++i) {
    resolve(graph, placement, op.inputs[i],
            input_region(graph, slice.op, static_cast<int>(i), region), &parts);
  }
  return parts;
}

}  // namespace

Dependencies::Dependencies(const Graph& graph)
    : graph_(graph), placement_(analyse(graph)), made_(graph.operators().size()) {}

Dependencies::Dependencies(const Graph& graph, const Schedule& schedule) : Dependencies(graph) {
  for (size_t lane = 0; lane < schedule.lanes.size(); ++lane) {
    for (size_t i = 0; i < schedule.lanes[lane].size(); ++i) {
      add({static_cast<int>(lane), static_cast<int>(i)}, schedule.lanes[lane][i].slice);
    }
  }
}

void Dependencies::add(Position position, const Slice& slice) {
  made_[slice.op].push_back({position, output_region(graph_, slice)});
}

std::vector<Position> Dependencies::of(const Slice& slice) const {
  std::vector<Position> result;
  for (const TensorRegion& part : read_by(graph_, placement_, slice)) {
    const OperatorId producer = graph_.tensor(part.tensor).producer;
    if (producer == kNone) continue;
    for (const Made& made : made_[producer]) {
      if (intersects(made.region, part.region)) result.push_back(made.position);
    }
  }
  return result;
}

std::vector<Need> Dependencies::needs_of(const Slice& slice) const {
  std::vector<Need> needs;
  for (const TensorRegion& part : read_by(graph_, placement_, slice)) add_needs(part, &needs);
  return needs;
}

std::vector<Need> Dependencies::needs_of(TensorId tensor) const {
  std::vector<TensorRegion> parts;
  resolve(graph_, placement_, tensor, whole_region(graph_.tensor(tensor).dims), &parts);
  std::vector<Need> needs;
  for (const TensorRegion& part : parts) add_needs(part, &needs);
  return needs;
}

void Dependencies::add_needs(const TensorRegion& wanted, std::vector<Need>* needs) const {
  const OperatorId producer = graph_.tensor(wanted.tensor).producer;
  if (producer == kNone) {
    needs->push_back({{kNone, 0}, wanted.tensor, kNone, wanted.region});
    return;
  }
  const Operator& op = graph_.op(producer);
  if (op.kind() != OperatorKind::kConcat) {
    add_made(producer, wanted.region, kNone, needs);
    return;
  }
  const int axis = op.as<ConcatAttributes>().axis;
  int64_t begin = 0;
  for (size_t i = 0; i < op.inputs.size(); ++i) {
    const int64_t end = begin + graph_.tensor(op.inputs[i]).dims[axis];
    Region part = wanted.region;
    part[axis] = {std::max(part[axis].begin, begin), std::min(part[axis].end, end)};
    begin = end;
    if (is_empty(part)) continue;
    if (placement_.tensors[op.inputs[i]].root != placement_.tensors[op.output].root) {
      add_made(producer, part, static_cast<int>(i), needs);
      continue;
    }
    std::vector<TensorRegion> in_place;
    resolve(graph_, placement_, op.inputs[i],
            input_region(graph_, producer, static_cast<int>(i), part), &in_place);
    for (const TensorRegion& deeper : in_place) add_needs(deeper, needs);
  }
}

void Dependencies::add_made(OperatorId op, const Region& region, int part,
                            std::vector<Need>* needs) const {
  for (const Made& made : made_[op]) {
    if (!intersects(made.region, region)) continue;
    Region both = region;
    for (size_t d = 0; d < both.size(); ++d) {
      both[d] = {std::max(region[d].begin, made.region[d].begin),
                 std::min(region[d].end, made.region[d].end)};
    }
    needs->push_back({made.position, graph_.op(op).output, part, std::move(both)});
  }
}

SliceOrder order_slices(const Predecessors& predecessors) {
  const size_t lanes = predecessors.size();
  std::vector<std::vector<bool>> done(lanes);
  size_t total = 0;
  for (size_t lane = 0; lane < lanes; ++lane) {
    done[lane].assign(predecessors[lane].size(), false);
    total += predecessors[lane].size();
  }
  SliceOrder result;
  std::vector<size_t> next(lanes, 0);
  // Every round advances each lane as far as it can get; a round without progress is a cycle.
  for (bool progress = true; progress;) {
    progress = false;
    for (size_t lane = 0; lane < lanes; ++lane) {
      while (next[lane] < predecessors[lane].size()) {
        const std::vector<Position>& before = predecessors[lane][next[lane]];
        if (!std::all_of(before.begin(), before.end(),
                         [&](Position p) { return done[p.lane][p.index]; })) {
          break;
        }
        done[lane][next[lane]] = true;
        result.order.push_back({static_cast<int>(lane), static_cast<int>(next[lane])});
        ++next[lane];
        progress = true;
      }
    }
  }
  if (result.order.size() == total) return result;
  for (size_t lane = 0; lane < lanes; ++lane) {
    if (next[lane] == predecessors[lane].size()) continue;
    result.cycle =
        find_cycle(predecessors, done, {static_cast<int>(lane), static_cast<int>(next[lane])});
    break;
  }
  return result;
}

}  // namespace tandem
