#include "schedule/evaluator.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "schedule/order_evaluator.h"
#include "tests/schedule/random_modes.h"

namespace tandem {
namespace {

using testing::Random;
using testing::RandomModes;

// What mode_problem.h says, word by word and without haste.
class Reference {
 public:
  Reference(const ModeProblem& problem, const ModeSchedule& schedule)
      : problem_(problem), schedule_(schedule) {}

  const Part& part(const PartRef& ref) const {
    return problem_.operators[ref.op].modes[schedule_.modes[ref.op]].parts[ref.part];
  }
  std::vector<PartRef> waited_for(const PartRef& ref) const {
    std::vector<PartRef> result;
    for (const ModeEdge& edge : problem_.edges) {
      if (edge.to != ref.op) continue;
      const PartMask mask = edge.waits[problem_.index(edge, schedule_.modes[edge.from],
                                                      schedule_.modes[edge.to], ref.part)];
      for (int q = 0; q < kMaxParts; ++q) {
        if (mask >> q & 1) result.push_back({edge.from, q});
      }
    }
    return result;
  }
  double duration(const PartRef& ref) const {
    const Part& me = part(ref);
    double us = me.us;
    std::set<int> others;
    for (const PartRef& q : waited_for(ref)) {
      if (part(q).lane != me.lane) others.insert(part(q).lane);
    }
    us += problem_.lanes[me.lane].receive_us * static_cast<double>(others.size());
    for (const ModeEdge& edge : problem_.edges) {
      if (edge.to != ref.op || edge.fetch_us.empty()) continue;
      us += edge.fetch_us[problem_.index(edge, schedule_.modes[edge.from], schedule_.modes[edge.to],
                                         ref.part)];
    }
    for (const auto& lane : schedule_.lanes) {
      for (const PartRef& reader : lane) {
        if (part(reader).lane == me.lane) continue;
        for (const PartRef& q : waited_for(reader)) {
          if (q == ref) return us + problem_.lanes[me.lane].send_us + me.leave_us;
        }
      }
    }
    return us;
  }
  double free_from(int lane) const {
    double us = problem_.lanes[lane].enqueue_us;
    for (size_t other = 0; other < problem_.lanes.size(); ++other) {
      if (problem_.lanes[other].fed_by != lane) continue;
      us += problem_.lanes[other].enqueue_us * static_cast<double>(schedule_.lanes[other].size());
    }
    return us;
  }
  double latency(const PartRef& from, const PartRef& to) const {
    const int a = part(from).lane;
    const int b = part(to).lane;
    return a == b ? 0 : problem_.latency_us[a][b];
  }
  // The least times that meet all constraints, by raising them until they do.
  std::map<PartRef, PartTime> times() const {
    std::map<PartRef, PartTime> times;
    for (bool changed = true; changed;) {
      changed = false;
      for (size_t lane = 0; lane < schedule_.lanes.size(); ++lane) {
        for (size_t i = 0; i < schedule_.lanes[lane].size(); ++i) {
          const PartRef ref = schedule_.lanes[lane][i];
          double start = free_from(static_cast<int>(lane));
          if (i > 0) start = std::max(start, times[schedule_.lanes[lane][i - 1]].end_us);
          for (const PartRef& q : waited_for(ref)) {
            start = std::max(start, times[q].end_us + latency(q, ref));
          }
          const PartTime now{start, start + duration(ref)};
          changed |= now != times[ref];
          times[ref] = now;
        }
      }
    }
    return times;
  }
  // Steps of `dt`: all that runs gets on a little.
  double makespan_with_contention(double dt) const {
    struct Lane {
      size_t next = 0;
      double done = 0;
    };
    std::vector<Lane> lanes(schedule_.lanes.size());
    std::map<PartRef, double> ended;
    double now = 0;
    while (true) {
      std::vector<bool> busy(lanes.size(), false);
      bool all_done = true;
      for (size_t l = 0; l < lanes.size(); ++l) {
        if (lanes[l].next == schedule_.lanes[l].size()) continue;
        all_done = false;
        const PartRef ref = schedule_.lanes[l][lanes[l].next];
        bool ready = now >= free_from(static_cast<int>(l));
        for (const PartRef& q : waited_for(ref)) {
          ready = ready && ended.contains(q) && now >= ended[q] + latency(q, ref);
        }
        busy[l] = ready;
      }
      if (all_done) return now;
      for (size_t l = 0; l < lanes.size(); ++l) {
        if (!busy[l]) continue;
        const PartRef ref = schedule_.lanes[l][lanes[l].next];
        double share = -1;
        for (size_t other = 0; other < lanes.size(); ++other) {
          if (other == l || !busy[other]) continue;
          const PartRef& theirs = schedule_.lanes[other][lanes[other].next];
          share = std::max(share, part(theirs).contention.memory_share);
        }
        const Contention& c = part(ref).contention;
        const double factor = share < 0 ? 1
                                        : 1 + (c.slowdown_compute - 1) * (1 - share) +
                                              (c.slowdown_memory - 1) * share;
        lanes[l].done += dt / factor;
      }
      now += dt;
      for (size_t l = 0; l < lanes.size(); ++l) {
        if (!busy[l]) continue;
        const PartRef ref = schedule_.lanes[l][lanes[l].next];
        if (lanes[l].done < duration(ref)) continue;
        ended[ref] = now;
        lanes[l] = {lanes[l].next + 1, 0};
      }
    }
  }

 private:
  const ModeProblem& problem_;
  const ModeSchedule& schedule_;
};

RandomModes shape_of(int seed) {
  return {.operators = 2 + seed % 9, .lanes = 1 + seed % 4, .contention = seed % 3 == 0};
}

TEST(Evaluate, IsWhatTheDefinitionSays) {
  for (int seed = 0; seed < 300; ++seed) {
    Random random(seed);
    const ModeProblem problem = random_modes(random, shape_of(seed));
    const ModeSchedule schedule = random_mode_schedule(random, problem);
    const ModeTables tables(problem);
    const Evaluation evaluation = evaluate(tables, schedule);
    const auto times = Reference(problem, schedule).times();
    double makespan = 0;
    for (size_t lane = 0; lane < schedule.lanes.size(); ++lane) {
      for (size_t i = 0; i < schedule.lanes[lane].size(); ++i) {
        const PartTime& expected = times.at(schedule.lanes[lane][i]);
        EXPECT_NEAR(evaluation.lanes[lane][i].start_us, expected.start_us, 1e-9);
        EXPECT_NEAR(evaluation.lanes[lane][i].end_us, expected.end_us, 1e-9);
        makespan = std::max(makespan, expected.end_us);
      }
    }
    EXPECT_NEAR(evaluation.makespan_us, makespan, 1e-9) << "seed " << seed;
    EXPECT_LE(lower_bound_us(tables), makespan + 1e-9) << "seed " << seed;
  }
}

TEST(EvaluateWithContention, IsTheSameWithout) {
  for (int seed = 0; seed < 200; ++seed) {
    Random random(seed);
    RandomModes shape = shape_of(seed);
    shape.contention = false;
    const ModeProblem problem = random_modes(random, shape);
    const ModeSchedule schedule = random_mode_schedule(random, problem);
    const ModeTables tables(problem);
    const Evaluation alone = evaluate(tables, schedule);
    const Evaluation contended = evaluate_with_contention(tables, schedule);
    EXPECT_NEAR(contended.makespan_us, alone.makespan_us, 1e-9) << "seed " << seed;
    for (size_t lane = 0; lane < alone.lanes.size(); ++lane) {
      for (size_t i = 0; i < alone.lanes[lane].size(); ++i) {
        EXPECT_NEAR(contended.lanes[lane][i].end_us, alone.lanes[lane][i].end_us, 1e-9);
      }
    }
  }
}

TEST(EvaluateWithContention, IsWhatSmallStepsComeTo) {
  for (int seed = 0; seed < 60; ++seed) {
    Random random(seed);
    RandomModes shape = shape_of(seed);
    shape.contention = true;
    shape.operators = 2 + seed % 5;
    const ModeProblem problem = random_modes(random, shape);
    const ModeSchedule schedule = random_mode_schedule(random, problem);
    const ModeTables tables(problem);
    constexpr double kStep = 0.002;
    // Every part of a chain of dependencies is late by up to a step at either end.
    const double allowed = kStep * 4 * (2.0 * shape.operators * shape.most_parts);
    EXPECT_NEAR(evaluate_with_contention(tables, schedule).makespan_us,
                Reference(problem, schedule).makespan_with_contention(kStep), allowed)
        << "seed " << seed;
  }
}

// A change that the current solution allows.
Change random_change(Random& random, const ModeTables& tables, const OrderEvaluator& evaluator) {
  Change change;
  const auto any = [&] { return static_cast<int>(random.integer(0, tables.operators - 1)); };
  change.mode_count = static_cast<int>(random.integer(0, 2));
  for (int i = 0; i < change.mode_count; ++i) {
    const int op = any();
    change.modes[i] = {op, static_cast<int>(random.integer(0, tables.mode_count(op) - 1))};
  }
  if (change.mode_count == 0 || random.coin()) {
    change.moved = any();
    const auto [first, last] = evaluator.range_of(change.moved);
    change.place = static_cast<int>(random.integer(first, last));
  }
  return change;
}

OrderedModes changed(OrderedModes solution, const Change& change) {
  for (int i = 0; i < change.mode_count; ++i) {
    solution.modes[change.modes[i].op] = change.modes[i].mode;
  }
  if (change.moved != kNone) {
    std::erase(solution.order, change.moved);
    solution.order.insert(solution.order.begin() + change.place, change.moved);
  }
  return solution;
}

TEST(OrderEvaluator, ChangesCostWhatAFullEvaluationSays) {
  int accepted = 0;
  int beyond = 0;
  int64_t steps = 0;
  int64_t all_steps = 0;
  for (int seed = 0; seed < 150; ++seed) {
    Random random(seed);
    RandomModes shape = shape_of(seed);
    shape.operators = 2 + seed % 40;
    // Some without what makes a change reach far.
    shape.feeding = seed % 2 == 0;
    shape.copies = seed % 5 == 0;
    const ModeProblem problem = random_modes(random, shape);
    const ModeTables tables(problem);
    OrderEvaluator evaluator(tables);
    evaluator.reset(ordered(tables, random_mode_schedule(random, problem)));
    for (int round = 0; round < 60; ++round) {
      const Change change = random_change(random, tables, evaluator);
      const OrderedModes solution = changed(evaluator.solution(), change);
      const double expected = evaluate(tables, schedule_of(tables, solution)).makespan_us;
      const bool limited = random.coin();
      const double limit =
          limited ? evaluator.makespan_us() * random.real(0.95, 1.05) : OrderEvaluator::kNever;
      const OrderedModes before = evaluator.solution();
      const double found = evaluator.try_change(change, limit);
      EXPECT_EQ(evaluator.solution(), before);
      if (found == OrderEvaluator::kNever) {
        EXPECT_GT(expected, limit - 1e-9);
        ++beyond;
        continue;
      }
      EXPECT_NEAR(found, expected, 1e-9) << "seed " << seed << ", round " << round;
      if (random.coin()) continue;
      evaluator.accept();
      ++accepted;
      EXPECT_EQ(evaluator.solution(), solution);
      EXPECT_NEAR(evaluator.makespan_us(), expected, 1e-9);
      const ModeSchedule schedule = schedule_of(tables, solution);
      const Evaluation evaluation = evaluate(tables, schedule);
      for (size_t lane = 0; lane < schedule.lanes.size(); ++lane) {
        for (size_t i = 0; i < schedule.lanes[lane].size(); ++i) {
          const PartRef& ref = schedule.lanes[lane][i];
          EXPECT_NEAR(evaluator.end_us(ref.op, ref.part), evaluation.lanes[lane][i].end_us, 1e-9);
        }
      }
    }
    steps += evaluator.steps();
    all_steps += evaluator.evaluations() * tables.operators;
  }
  EXPECT_GT(accepted, 1000);
  EXPECT_GT(beyond, 1000);
  EXPECT_LT(steps, all_steps * 2 / 3);  // it does save work
}

TEST(OrderEvaluator, CriticalPathsHaveNoGaps) {
  for (int seed = 0; seed < 100; ++seed) {
    Random random(seed);
    RandomModes shape = shape_of(seed);
    shape.operators = 20;
    const ModeProblem problem = random_modes(random, shape);
    const ModeTables tables(problem);
    OrderEvaluator evaluator(tables);
    evaluator.reset(ordered(tables, random_mode_schedule(random, problem)));
    const ModeSchedule schedule = schedule_of(tables, evaluator.solution());
    const Reference reference(problem, schedule);
    const auto path = evaluator.critical_path();
    ASSERT_FALSE(path.empty());
    double left = evaluator.makespan_us();
    for (size_t i = 0; i < path.size(); ++i) {
      left -= reference.duration(path[i].part);
      if (i + 1 < path.size() && !path[i].by_lane) {
        left -= reference.latency(path[i + 1].part, path[i].part);
      }
    }
    EXPECT_NEAR(left, reference.free_from(reference.part(path.back().part).lane), 1e-9);
  }
}

// Where operators have one part each, every order of lanes is one of operators.
TEST(Ordered, KeepsSchedulesOfWholeOperators) {
  for (int seed = 0; seed < 100; ++seed) {
    Random random(seed);
    RandomModes shape = shape_of(seed);
    shape.most_parts = 1;
    ModeProblem problem = random_modes(random, shape);
    for (ModeEdge& edge : problem.edges) std::fill(edge.waits.begin(), edge.waits.end(), 1);
    const ModeTables tables(problem);
    const ModeSchedule schedule = random_mode_schedule(random, problem);
    const ModeSchedule again = schedule_of(tables, ordered(tables, schedule));
    EXPECT_TRUE(check_mode_schedule(problem, again).ok());
    EXPECT_NEAR(evaluate(tables, again).makespan_us, evaluate(tables, schedule).makespan_us, 1e-9);
  }
}

}  // namespace
}  // namespace tandem
