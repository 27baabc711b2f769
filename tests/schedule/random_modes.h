// Random problems of modes, without any graph behind them, and random schedules for them.
#pragma once

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "schedule/mode_problem.h"
#include "tests/support/random.h"

namespace tandem::testing {

struct RandomModes {
  int operators = 6;
  int lanes = 2;
  int most_modes = 4;
  int most_parts = 3;
  int most_inputs = 2;
  bool feeding = true;
  bool copies = true;
  bool contention = false;
};

inline Part random_part(Random& random, const RandomModes& shape, const ModeProblem& problem) {
  Part part;
  part.lane = static_cast<int>(random.integer(0, shape.lanes - 1));
  part.us = std::max(problem.lanes[part.lane].enqueue_us, random.real(0, 20));
  if (shape.copies && random.coin()) part.leave_us = random.real(0, 3);
  if (shape.contention) {
    part.contention = {random.real(0, 1), random.real(1, 2), random.real(1, 1.3)};
  }
  return part;
}

inline ModeProblem random_modes(Random& random, const RandomModes& shape) {
  ModeProblem problem;
  problem.name = "random";
  for (int lane = 0; lane < shape.lanes; ++lane) {
    ModeLane& added = problem.lanes.emplace_back();
    added.name = "lane" + std::to_string(lane);
    if (random.coin()) added.send_us = random.real(0, 2);
    if (random.coin()) added.receive_us = random.real(0, 2);
    if (shape.feeding && lane > 0 && random.coin()) {
      added.enqueue_us = random.real(0, 2);
      if (random.coin()) added.fed_by = 0;
    }
    problem.latency_us.emplace_back();
    for (int to = 0; to < shape.lanes; ++to) {
      problem.latency_us.back().push_back(to == lane || random.coin() ? 0 : random.real(0, 5));
    }
  }
  for (int op = 0; op < shape.operators; ++op) {
    ModeOperator& added = problem.operators.emplace_back();
    added.name = "op" + std::to_string(op);
    for (int64_t m = random.integer(1, shape.most_modes); m > 0; --m) {
      Mode& mode = added.modes.emplace_back();
      for (int64_t p = random.integer(1, shape.most_parts); p > 0; --p) {
        mode.parts.push_back(random_part(random, shape, problem));
      }
    }
    std::set<int> inputs;
    for (int64_t i = random.integer(0, shape.most_inputs); i > 0 && op > 0; --i) {
      inputs.insert(static_cast<int>(random.integer(std::max(0, op - 4), op - 1)));
    }
    for (const int from : inputs) {
      ModeEdge edge{from, op, {}, {}};
      edge.waits.resize(problem.index_size(edge));
      if (shape.copies && random.coin()) edge.fetch_us.resize(edge.waits.size());
      for (size_t f = 0; f < problem.operators[from].modes.size(); ++f) {
        const size_t parts = problem.operators[from].modes[f].parts.size();
        for (size_t t = 0; t < added.modes.size(); ++t) {
          for (size_t p = 0; p < added.modes[t].parts.size(); ++p) {
            const size_t at =
                problem.index(edge, static_cast<int>(f), static_cast<int>(t), static_cast<int>(p));
            edge.waits[at] = static_cast<PartMask>(random.integer(0, (1 << parts) - 1));
            if (!edge.fetch_us.empty()) edge.fetch_us[at] = random.real(0, 3);
          }
        }
      }
      problem.edges.push_back(std::move(edge));
    }
  }
  return problem;
}

// Random modes, in a random order that does not contradict what parts wait for.
inline ModeSchedule random_mode_schedule(Random& random, const ModeProblem& problem) {
  ModeSchedule schedule;
  std::vector<PartRef> waiting;
  for (size_t op = 0; op < problem.operators.size(); ++op) {
    const std::vector<Mode>& modes = problem.operators[op].modes;
    const auto mode = static_cast<int>(random.integer(0, static_cast<int64_t>(modes.size()) - 1));
    schedule.modes.push_back(mode);
    for (size_t p = 0; p < modes[mode].parts.size(); ++p) {
      waiting.push_back({static_cast<int>(op), static_cast<int>(p)});
    }
  }
  schedule.lanes.resize(problem.lanes.size());
  std::set<PartRef> done;
  const auto is_ready = [&](const PartRef& ref) {
    for (const ModeEdge& edge : problem.edges) {
      if (edge.to != ref.op) continue;
      const PartMask mask = edge.waits[problem.index(edge, schedule.modes[edge.from],
                                                     schedule.modes[ref.op], ref.part)];
      for (int q = 0; q < kMaxParts; ++q) {
        if ((mask >> q & 1) && !done.contains({edge.from, q})) return false;
      }
    }
    return true;
  };
  while (!waiting.empty()) {
    const auto at = random.integer(0, static_cast<int64_t>(waiting.size()) - 1);
    const PartRef ref = waiting[at];
    if (!is_ready(ref)) continue;
    waiting.erase(waiting.begin() + at);
    done.insert(ref);
    const int lane = problem.operators[ref.op].modes[schedule.modes[ref.op]].parts[ref.part].lane;
    schedule.lanes[lane].push_back(ref);
  }
  return schedule;
}

}  // namespace tandem::testing
