// What schedules cost to evaluate and to search for, on generated problems: random layered graphs
// over two lanes and three.
#include <fmt/format.h>

#include <algorithm>

#include "schedule/joint.h"
#include "schedule/order_evaluator.h"
#include "support/stopwatch.h"
#include "tests/schedule/random_modes.h"

namespace tandem {
namespace {

using testing::Random;

// The least of several times, in microseconds each.
template <typename F>
double time_us(int times, const F& f) {
  double least = 1e30;
  for (int round = 0; round < 5; ++round) {
    const Stopwatch stopwatch;
    for (int i = 0; i < times; ++i) f(i);
    least = std::min(least, stopwatch.milliseconds() * 1000 / times);
  }
  return least;
}

void bench(int operators, int lanes) {
  Random random(operators + lanes);
  const ModeProblem problem = random_modes(
      random, {.operators = operators, .lanes = lanes, .most_modes = 12, .feeding = false,
               .copies = false, .contention = true});
  const ModeTables tables(problem);
  const ModeSchedule schedule = random_mode_schedule(random, problem);
  double sum = 0;
  const double full = time_us(20, [&](int) { sum += evaluate(tables, schedule).makespan_us; });
  const double contended =
      time_us(20, [&](int) { sum += evaluate_with_contention(tables, schedule).makespan_us; });
  OrderEvaluator evaluator(tables);
  evaluator.reset(ordered(tables, schedule));
  const double change = time_us(1000, [&](int i) {
    Change change;
    const int op = i * 7919 % operators;
    change.mode_count = 1;
    change.modes[0] = {op, static_cast<int>(random.integer(0, tables.mode_count(op) - 1))};
    sum += evaluator.try_change(change, evaluator.makespan_us());
  });
  SearchReport report;
  const auto found = JointScheduler().schedule(tables, {}, &report);
  if (!found.ok()) fmt::print(stderr, "{}\n", found.status().to_string());
  fmt::print("{:9} {:5} {:12.1f} {:12.1f} {:12.2f} {:12} {:10.1f}\n", operators, lanes, full,
             contended, change, report.evaluations, report.ms);
}

}  // namespace
}  // namespace tandem

int main() {
  fmt::print("{:>9} {:>5} {:>12} {:>12} {:>12} {:>12} {:>10}\n", "operators", "lanes",
             "evaluate us", "contended us", "change us", "evaluations", "joint ms");
  for (const int operators : {30, 100, 300, 1000}) {
    for (const int lanes : {2, 3}) tandem::bench(operators, lanes);
  }
}
