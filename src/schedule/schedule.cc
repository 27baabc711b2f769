#include "schedule/schedule.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "schedule/dependencies.h"

namespace tandem {
namespace {

// Per lane, how many of its slices are known to have finished.
using Progress = std::vector<int>;

void join(Progress* into, const Progress& other) {
  for (size_t lane = 0; lane < into->size(); ++lane) {
    (*into)[lane] = std::max((*into)[lane], other[lane]);
  }
}

std::string name_of(const Graph& graph, const Schedule& schedule, Position p) {
  return fmt::format("{} (lane {}, slice {})",
                     to_string(graph, schedule.lanes[p.lane][p.index].slice), p.lane, p.index);
}

Status cycle_error(const Graph& graph, const Schedule& schedule,
                   const std::vector<Position>& cycle) {
  std::vector<std::string> names;
  for (Position p : cycle) names.push_back(name_of(graph, schedule, p));
  names.push_back(names.front());
  return invalid_argument(
      fmt::format("the schedule contradicts itself: each of these slices has to finish before the "
                  "next one starts: {}",
                  fmt::join(names, " -> ")));
}

template <typename T>
std::vector<std::vector<T>> one_per_slice(const Schedule& schedule) {
  std::vector<std::vector<T>> result(schedule.lanes.size());
  for (size_t lane = 0; lane < result.size(); ++lane) {
    result[lane].resize(schedule.lanes[lane].size());
  }
  return result;
}

Predecessors dependencies_of(const Graph& graph, const Schedule& schedule) {
  const Dependencies dependencies(graph, schedule);
  Predecessors result = one_per_slice<std::vector<Position>>(schedule);
  for (size_t lane = 0; lane < schedule.lanes.size(); ++lane) {
    for (size_t i = 0; i < schedule.lanes[lane].size(); ++i) {
      result[lane][i] = dependencies.of(schedule.lanes[lane][i].slice);
    }
  }
  return result;
}

Predecessors waits_of(const Schedule& schedule) {
  Predecessors result = one_per_slice<std::vector<Position>>(schedule);
  for (size_t lane = 0; lane < schedule.lanes.size(); ++lane) {
    for (size_t i = 0; i < schedule.lanes[lane].size(); ++i) {
      for (const Wait& wait : schedule.lanes[lane][i].waits) {
        result[lane][i].push_back({wait.lane, wait.count - 1});
      }
    }
  }
  return result;
}

// What is known when the slice starts, given what is known after each of its predecessors.
Progress known_at_start(const std::vector<std::vector<Progress>>& finished, Position p,
                        const std::vector<Position>& waited_for) {
  Progress known = p.index > 0 ? finished[p.lane][p.index - 1] : Progress(finished.size(), 0);
  for (Position q : waited_for) join(&known, finished[q.lane][q.index]);
  return known;
}

// What finished_before() returns, for slices in `order` that wait for exactly `waits`.
std::vector<std::vector<Progress>> progress_of(const Schedule& schedule, const Predecessors& waits,
                                               const std::vector<Position>& order) {
  auto finished = one_per_slice<Progress>(schedule);
  for (Position p : order) {
    Progress known = known_at_start(finished, p, waits[p.lane][p.index]);
    known[p.lane] = p.index + 1;
    finished[p.lane][p.index] = std::move(known);
  }
  return finished;
}

// Of the slices needed, the last on each lane whose end is not known from `known`, nor from
// another one of the answer.
std::vector<Position> minimal_waits(const std::vector<std::vector<Progress>>& finished,
                                    const Progress& known, const std::vector<Position>& needed) {
  Progress count(known.size(), 0);
  for (Position q : needed) count[q.lane] = std::max(count[q.lane], q.index + 1);
  std::vector<Position> open;
  for (size_t lane = 0; lane < count.size(); ++lane) {
    if (count[lane] > known[lane]) open.push_back({static_cast<int>(lane), count[lane] - 1});
  }
  std::vector<Position> result;
  for (Position q : open) {
    const bool implied = std::any_of(open.begin(), open.end(), [&](Position other) {
      return other.lane != q.lane && finished[other.lane][other.index][q.lane] > q.index;
    });
    if (!implied) result.push_back(q);
  }
  return result;
}

Status check_slices(const Graph& graph, const Schedule& schedule, const Placement& placement) {
  std::vector<std::vector<Slice>> by_operator(graph.operators().size());
  for (size_t lane = 0; lane < schedule.lanes.size(); ++lane) {
    for (const ScheduledSlice& scheduled : schedule.lanes[lane]) {
      const Slice& slice = scheduled.slice;
      if (slice.op < 0 || slice.op >= static_cast<OperatorId>(by_operator.size())) {
        return invalid_argument(fmt::format(
            "lane {} has a slice of operator {}, which does not exist", lane, slice.op));
      }
      if (!placement.launched[slice.op]) {
        return invalid_argument(fmt::format(
            "{} is never launched: its output lies in the memory of other tensors, made by their "
            "producers",
            to_string(graph, slice)));
      }
      TANDEM_RETURN_IF_ERROR(check_slice(graph, slice));
      if (is_empty(output_region(graph, slice)) && element_count(graph.output_of(slice.op).dims)) {
        return invalid_argument(fmt::format("{} is empty", to_string(graph, slice)));
      }
      by_operator[slice.op].push_back(slice);
    }
  }
  for (size_t id = 0; id < by_operator.size(); ++id) {
    if (!placement.launched[id]) continue;
    const auto op = static_cast<OperatorId>(id);
    std::vector<Slice>& slices = by_operator[id];
    if (slices.empty()) {
      return invalid_argument(fmt::format("no lane runs {}", graph.op(op).name));
    }
    // Slabs along different axes always meet, so that a cover without overlap has one axis.
    std::sort(slices.begin(), slices.end(),
              [](const Slice& a, const Slice& b) { return a.begin < b.begin; });
    for (size_t i = 1; i < slices.size(); ++i) {
      if (intersects(output_region(graph, slices[i - 1]), output_region(graph, slices[i]))) {
        return invalid_argument(fmt::format("{} and {} overlap", to_string(graph, slices[i - 1]),
                                            to_string(graph, slices[i])));
      }
    }
    if (slices.front().whole()) continue;
    const int axis = slices.front().axis;
    int64_t covered = 0;
    for (const Slice& slice : slices) {
      if (slice.begin != covered) break;
      covered = slice.end;
    }
    const int64_t extent = graph.output_of(op).dims[axis];
    if (covered != extent) {
      return invalid_argument(fmt::format("no lane makes {} from {} on along axis {}",
                                          graph.op(op).name, covered, axis));
    }
  }
  return {};
}

Status check_waits(const Graph& graph, const Schedule& schedule) {
  for (size_t lane = 0; lane < schedule.lanes.size(); ++lane) {
    for (size_t i = 0; i < schedule.lanes[lane].size(); ++i) {
      int previous = -1;
      for (const Wait& wait : schedule.lanes[lane][i].waits) {
        const std::string who =
            name_of(graph, schedule, {static_cast<int>(lane), static_cast<int>(i)});
        if (wait.lane < 0 || wait.lane >= static_cast<int>(schedule.lanes.size()) ||
            wait.lane == static_cast<int>(lane)) {
          return invalid_argument(
              fmt::format("{} waits for lane {}, which is not another lane of "
                          "the schedule",
                          who, wait.lane));
        }
        if (wait.lane <= previous) {
          return invalid_argument(
              fmt::format("the waits of {} are not one per lane in ascending order", who));
        }
        previous = wait.lane;
        const auto slices = static_cast<int>(schedule.lanes[wait.lane].size());
        if (wait.count < 1 || wait.count > slices) {
          return invalid_argument(fmt::format("{} waits for {} slices of lane {}, which has {}",
                                              who, wait.count, wait.lane, slices));
        }
      }
    }
  }
  return {};
}

}  // namespace

Status derive_waits(const Graph& graph, Schedule* schedule) {
  TANDEM_RETURN_IF_ERROR(check_slices(graph, *schedule, analyse(graph)));
  const Predecessors needed = dependencies_of(graph, *schedule);
  const SliceOrder order = order_slices(needed);
  if (!order.cycle.empty()) return cycle_error(graph, *schedule, order.cycle);
  auto finished = one_per_slice<Progress>(*schedule);
  for (Position p : order.order) {
    ScheduledSlice& scheduled = schedule->lanes[p.lane][p.index];
    const std::vector<Position> waits =
        minimal_waits(finished, known_at_start(finished, p, {}), needed[p.lane][p.index]);
    scheduled.waits.clear();
    for (Position q : waits) scheduled.waits.push_back({q.lane, q.index + 1});
    Progress known = known_at_start(finished, p, waits);
    known[p.lane] = p.index + 1;
    finished[p.lane][p.index] = std::move(known);
  }
  return {};
}

Status check_schedule(const Graph& graph, const Schedule& schedule) {
  TANDEM_RETURN_IF_ERROR(check_slices(graph, schedule, analyse(graph)));
  TANDEM_RETURN_IF_ERROR(check_waits(graph, schedule));
  const Predecessors waits = waits_of(schedule);
  const SliceOrder order = order_slices(waits);
  if (!order.cycle.empty()) return cycle_error(graph, schedule, order.cycle);
  const auto finished = progress_of(schedule, waits, order.order);
  const Predecessors needed = dependencies_of(graph, schedule);
  for (Position p : order.order) {
    const Progress known = known_at_start(finished, p, waits[p.lane][p.index]);
    for (Position q : needed[p.lane][p.index]) {
      if (known[q.lane] <= q.index) {
        return invalid_argument(fmt::format("{} does not wait for {}, whose result it reads",
                                            name_of(graph, schedule, p),
                                            name_of(graph, schedule, q)));
      }
    }
  }
  return {};
}

std::vector<std::vector<std::vector<int>>> finished_before(const Schedule& schedule) {
  const Predecessors waits = waits_of(schedule);
  return progress_of(schedule, waits, order_slices(waits).order);
}

}  // namespace tandem
