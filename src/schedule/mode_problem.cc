#include "schedule/mode_problem.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <set>

namespace tandem {
namespace {

bool is_time(double us) { return std::isfinite(us) && us >= 0; }

Status check_lanes(const ModeProblem& problem) {
  const size_t lanes = problem.lanes.size();
  if (lanes == 0) return invalid_argument("the problem has no lanes");
  if (lanes > kMaxModeLanes) {
    return invalid_argument(
        fmt::format("{} lanes, and at most {} are handled", lanes, kMaxModeLanes));
  }
  for (const ModeLane& lane : problem.lanes) {
    if (!is_time(lane.enqueue_us) || !is_time(lane.send_us) || !is_time(lane.receive_us)) {
      return invalid_argument(fmt::format("lane {} has a time that is not one", lane.name));
    }
    if (lane.fed_by == kNone) continue;
    if (lane.fed_by < 0 || static_cast<size_t>(lane.fed_by) >= lanes ||
        problem.lanes[lane.fed_by].fed_by != kNone) {
      return invalid_argument(
          fmt::format("lane {} is fed by lane {}, which does not exist or is fed itself", lane.name,
                      lane.fed_by));
    }
  }
  if (problem.latency_us.size() != lanes) {
    return invalid_argument("latency_us does not have a row per lane");
  }
  for (const std::vector<double>& row : problem.latency_us) {
    if (row.size() != lanes || !std::all_of(row.begin(), row.end(), is_time)) {
      return invalid_argument("a row of latency_us is not one time per lane");
    }
  }
  return {};
}

Status check_operator(const ModeProblem& problem, const ModeOperator& op) {
  if (op.modes.empty()) return invalid_argument("operator " + op.name + " has no modes");
  for (const Mode& mode : op.modes) {
    if (mode.parts.empty() || mode.parts.size() > kMaxParts) {
      return invalid_argument(fmt::format("a mode of operator {} has {} parts, not 1 to {}",
                                          op.name, mode.parts.size(), kMaxParts));
    }
    for (const Part& part : mode.parts) {
      if (part.lane < 0 || static_cast<size_t>(part.lane) >= problem.lanes.size()) {
        return invalid_argument(
            fmt::format("operator {} has a part on lane {}, which does not "
                        "exist",
                        op.name, part.lane));
      }
      if (!is_time(part.us) || !is_time(part.leave_us) ||
          part.us < problem.lanes[part.lane].enqueue_us) {
        return invalid_argument(fmt::format(
            "operator {} has a part of {} us, which is no time or less than it takes to enqueue it",
            op.name, part.us));
      }
      const Contention& c = part.contention;
      if (!(c.memory_share >= 0 && c.memory_share <= 1) || !(c.slowdown_memory >= 1) ||
          !(c.slowdown_compute >= 1)) {
        return invalid_argument("operator " + op.name + " has a contention out of range");
      }
    }
  }
  return {};
}

Status check_edge(const ModeProblem& problem, const ModeEdge& edge) {
  const auto operators = static_cast<int>(problem.operators.size());
  if (edge.from < 0 || edge.from >= edge.to || edge.to >= operators) {
    return invalid_argument(fmt::format(
        "an edge goes from operator {} to {}: not from an earlier operator to a later one of {}",
        edge.from, edge.to, operators));
  }
  const std::string who = fmt::format("the edge from {} to {}", problem.operators[edge.from].name,
                                      problem.operators[edge.to].name);
  if (edge.waits.size() != problem.index_size(edge) ||
      (!edge.fetch_us.empty() && edge.fetch_us.size() != edge.waits.size())) {
    return invalid_argument(who + " does not have an entry per pair of modes and part");
  }
  if (!std::all_of(edge.fetch_us.begin(), edge.fetch_us.end(), is_time)) {
    return invalid_argument(who + " has a time that is not one");
  }
  const std::vector<Mode>& from_modes = problem.operators[edge.from].modes;
  const size_t per_mode = edge.waits.size() / from_modes.size();
  for (size_t i = 0; i < edge.waits.size(); ++i) {
    if (edge.waits[i] >> from_modes[i / per_mode].parts.size()) {
      return invalid_argument(who + " has a part wait for one that does not exist");
    }
  }
  return {};
}

// What is on a lane that should not be there, or not twice.
Status check_parts(const ModeProblem& problem, const ModeSchedule& schedule) {
  std::set<PartRef> seen;
  for (size_t lane = 0; lane < schedule.lanes.size(); ++lane) {
    for (const PartRef& ref : schedule.lanes[lane]) {
      if (ref.op < 0 || static_cast<size_t>(ref.op) >= problem.operators.size()) {
        return invalid_argument(
            fmt::format("lane {} has a part of operator {}, which does not "
                        "exist",
                        lane, ref.op));
      }
      const ModeOperator& op = problem.operators[ref.op];
      const Mode& mode = op.modes[schedule.modes[ref.op]];
      if (ref.part < 0 || static_cast<size_t>(ref.part) >= mode.parts.size()) {
        return invalid_argument(fmt::format("lane {} has part {} of {}, and its mode has {} parts",
                                            lane, ref.part, op.name, mode.parts.size()));
      }
      if (mode.parts[ref.part].lane != static_cast<int>(lane)) {
        return invalid_argument(fmt::format("part {} of {} belongs on lane {}, and is on lane {}",
                                            ref.part, op.name, mode.parts[ref.part].lane, lane));
      }
      if (!seen.insert(ref).second) {
        return invalid_argument(fmt::format("part {} of {} occurs twice", ref.part, op.name));
      }
    }
  }
  for (size_t op = 0; op < problem.operators.size(); ++op) {
    const auto parts =
        static_cast<int>(problem.operators[op].modes[schedule.modes[op]].parts.size());
    for (int part = 0; part < parts; ++part) {
      if (!seen.contains({static_cast<int>(op), part})) {
        return invalid_argument(
            fmt::format("no lane has part {} of {}", part, problem.operators[op].name));
      }
    }
  }
  return {};
}

// Runs lanes until none can go on.
Status check_order(const ModeProblem& problem, const ModeSchedule& schedule) {
  std::vector<std::vector<const ModeEdge*>> into(problem.operators.size());
  for (const ModeEdge& edge : problem.edges) into[edge.to].push_back(&edge);
  std::vector<PartMask> done(problem.operators.size(), 0);
  const auto is_ready = [&](const PartRef& ref) {
    return std::all_of(into[ref.op].begin(), into[ref.op].end(), [&](const ModeEdge* edge) {
      const PartMask needed = edge->waits[problem.index(*edge, schedule.modes[edge->from],
                                                        schedule.modes[ref.op], ref.part)];
      return (needed & ~done[edge->from]) == 0;
    });
  };
  std::vector<size_t> next(schedule.lanes.size(), 0);
  for (bool progress = true; progress;) {
    progress = false;
    for (size_t lane = 0; lane < next.size(); ++lane) {
      for (; next[lane] < schedule.lanes[lane].size(); ++next[lane]) {
        const PartRef& ref = schedule.lanes[lane][next[lane]];
        if (!is_ready(ref)) break;
        done[ref.op] = static_cast<PartMask>(done[ref.op] | (1u << ref.part));
        progress = true;
      }
    }
  }
  std::vector<std::string> stuck;
  for (size_t lane = 0; lane < next.size(); ++lane) {
    if (next[lane] == schedule.lanes[lane].size()) continue;
    const PartRef& ref = schedule.lanes[lane][next[lane]];
    stuck.push_back(fmt::format("part {} of {} on lane {}", ref.part,
                                problem.operators[ref.op].name, problem.lanes[lane].name));
  }
  if (stuck.empty()) return {};
  return invalid_argument(fmt::format(
      "the lanes wait for each other: none of these can start before another one has ended: {}",
      fmt::join(stuck, ", ")));
}

}  // namespace

int ModeProblem::max_parts(int op) const {
  size_t most = 0;
  for (const Mode& mode : operators[op].modes) most = std::max(most, mode.parts.size());
  return static_cast<int>(most);
}

Status ModeProblem::validate() const {
  TANDEM_RETURN_IF_ERROR(check_lanes(*this));
  for (const ModeOperator& op : operators) TANDEM_RETURN_IF_ERROR(check_operator(*this, op));
  std::set<std::pair<int, int>> seen;
  for (const ModeEdge& edge : edges) {
    TANDEM_RETURN_IF_ERROR(check_edge(*this, edge));
    if (!seen.insert({edge.from, edge.to}).second) {
      return invalid_argument(
          fmt::format("two edges go from operator {} to operator {}", edge.from, edge.to));
    }
  }
  return {};
}

Status check_mode_schedule(const ModeProblem& problem, const ModeSchedule& schedule) {
  if (schedule.modes.size() != problem.operators.size() ||
      schedule.lanes.size() != problem.lanes.size()) {
    return invalid_argument(fmt::format(
        "a schedule of {} operators on {} lanes, for a problem of {} operators and {} lanes",
        schedule.modes.size(), schedule.lanes.size(), problem.operators.size(),
        problem.lanes.size()));
  }
  for (size_t op = 0; op < schedule.modes.size(); ++op) {
    const int mode = schedule.modes[op];
    if (mode < 0 || static_cast<size_t>(mode) >= problem.operators[op].modes.size()) {
      return invalid_argument(
          fmt::format("operator {} has no mode {}", problem.operators[op].name, mode));
    }
  }
  TANDEM_RETURN_IF_ERROR(check_parts(problem, schedule));
  return check_order(problem, schedule);
}

}  // namespace tandem
