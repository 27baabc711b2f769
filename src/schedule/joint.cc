#include "schedule/joint.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "schedule/beam.h"
#include "schedule/exact.h"
#include "schedule/inter.h"
#include "schedule/intra_modes.h"
#include "schedule/local_search.h"
#include "schedule/part_search.h"

namespace tandem {
namespace {

constexpr int kBeamWidth = 6;
// Rounds over all stages. Later ones see what became of the stages around.
constexpr int kRounds = 4;
// Of the evaluations, for changes to single parts once all stages have been searched.
constexpr double kForParts = 0.25;

// Problems this small are left to branch and bound in the end, which may look at so many nodes.
constexpr int kProvable = 12;
constexpr int64_t kNodes = 10'000;

struct Start {
  std::string strategy;
  ModeSchedule schedule;
};

// The problem with every part as slow as it is while the other lanes run what is usual.
ModeTables with_usual_contention(const ModeTables& tables) {
  const std::vector<ModeOperator>& operators = tables.problem.operators;
  double work = 0;
  double shared = 0;
  for (const ModeOperator& op : operators) {
    for (const Part& part : op.modes.front().parts) {
      work += part.us;
      shared += part.us * part.contention.memory_share;
    }
  }
  const double share = work > 0 ? shared / work : 0;
  std::vector<double> us = tables.us;
  size_t at = 0;
  for (const ModeOperator& op : operators) {
    for (const Mode& mode : op.modes) {
      for (size_t p = 0; p < mode.parts.size(); ++p) {
        const Contention& c = mode.parts[p].contention;
        us[at + p] *= 1 + (c.slowdown_compute - 1) * (1 - share) + (c.slowdown_memory - 1) * share;
      }
      at += tables.stride;
    }
  }
  return tables.with_times(std::move(us));
}

std::vector<int> order_by_rank(const ModeTables& tables) {
  const std::vector<double> ranks = upward_ranks(tables);
  std::vector<int> order(tables.operators);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return ranks[a] > ranks[b]; });
  // Operators that take no time may stand before what they read.
  std::vector<int> places(tables.operators);
  for (int place = 0; place < tables.operators; ++place) places[order[place]] = place;
  for (int op = 0; op < tables.operators; ++op) {
    for (int i = tables.in_begin[op]; i < tables.in_begin[op + 1]; ++i) {
      places[op] = std::max(places[op], places[tables.edges[i].from]);
    }
  }
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return places[a] < places[b]; });
  return order;
}

class Search {
 public:
  Search(const ModeTables& tables, const SearchOptions& options, SearchReport* report)
      : tables_(tables), options_(options), report_(*report), evaluator_(tables) {
    budget_.budget_ms = options.budget_ms;
    stages_ = stages_of(tables);
  }

  ModeSchedule run(const std::vector<Start>& starts) {
    std::vector<OrderedModes> solutions;
    for (const Start& start : starts) solutions.push_back(ordered(tables_, start.schedule));
    std::vector<int> problem_order(tables_.operators);
    std::iota(problem_order.begin(), problem_order.end(), 0);
    for (const auto& order : {problem_order, order_by_rank(tables_)}) {
      int64_t tried = 0;
      solutions.push_back(beam_search(tables_, order, kBeamWidth, &tried));
      report_.tried += tried;
    }
    put_together(solutions);
    budget_.evaluations = evaluations();
    const auto for_parts =
        static_cast<int64_t>(kForParts * static_cast<double>(budget_.evaluations));
    const int64_t all = budget_.evaluations - for_parts;
    for (int round = 0; round < kRounds; ++round) {
      for (size_t s = 0; s < stages_.size() && !budget_.is_used_up(); ++s) {
        // By the operators that there are in each.
        const int64_t share =
            all * stages_[s].size() / std::max(operators_in_stages(), 1) / kRounds;
        search_stage(stages_[s], share, options_.seed * 1000003 + round * 1009 + s);
      }
    }
    descend(tables_, &evaluator_, {0, tables_.operators}, &budget_);
    ModeSchedule found = schedule_of(tables_, evaluator_.solution());
    report_.evaluations += anneal_parts(tables_, std::max(budget_.evaluations, for_parts),
                                        options_.seed, &budget_, &found);
    prove(&found);
    report_.tried += budget_.tried;
    report_.kept += budget_.kept;
    report_.evaluations += evaluator_.evaluations();
    return found;
  }

 private:
  int64_t evaluations() const {
    if (options_.evaluations > 0) return options_.evaluations;
    const int64_t worthwhile = worthwhile_evaluations(tables_, evaluator_.makespan_us());
    return options_.most_worthwhile > 0 ? std::min(worthwhile, options_.most_worthwhile)
                                        : worthwhile;
  }

  // By branch and bound, where that may come to an end.
  void prove(ModeSchedule* found) {
    const int64_t nodes = options_.evaluations > 0 ? std::min(budget_.evaluations, kNodes) : kNodes;
    if (tables_.operators > kProvable || nodes <= 0) return;
    double left_ms = 0;
    if (budget_.budget_ms > 0) {
      left_ms = budget_.budget_ms - budget_.stopwatch.milliseconds();
      if (left_ms <= 0) return;
    }
    budget_.tried += branch_and_bound(tables_, nodes, left_ms, found);
  }

  int operators_in_stages() const {
    int sum = 0;
    for (const Window& stage : stages_) sum += stage.size();
    return sum;
  }

  // The best solution, and for each stage of it whichever other one's is better there.
  void put_together(std::vector<OrderedModes> solutions) {
    OrderedModes best;
    double best_us = OrderEvaluator::kNever;
    for (const OrderedModes& solution : solutions) {
      evaluator_.reset(solution);
      if (evaluator_.makespan_us() >= best_us) continue;
      best = solution;
      best_us = evaluator_.makespan_us();
    }
    for (const Window& stage : stages_) {
      for (const OrderedModes& other : solutions) {
        OrderedModes mixed = best;
        if (!take_over(other, stage, &mixed)) continue;
        evaluator_.reset(mixed);
        if (evaluator_.makespan_us() >= best_us) continue;
        best = std::move(mixed);
        best_us = evaluator_.makespan_us();
      }
    }
    evaluator_.reset(std::move(best));
  }

  // False if the other one does not have the same operators there, or does not differ.
  static bool take_over(const OrderedModes& other, const Window& stage, OrderedModes* into) {
    const auto begin = into->order.begin() + stage.first;
    const auto end = into->order.begin() + stage.last;
    const auto theirs = other.order.begin() + stage.first;
    if (!std::is_permutation(begin, end, theirs)) return false;
    bool differs = !std::equal(begin, end, theirs);
    std::copy_n(theirs, stage.size(), begin);
    for (auto op = begin; op != end; ++op) {
      differs |= into->modes[*op] != other.modes[*op];
      into->modes[*op] = other.modes[*op];
    }
    return differs;
  }

  void search_stage(const Window& stage, int64_t share, uint64_t seed) {
    StageReport stage_report{stage.first, stage.last};
    stage_report.before_us = evaluator_.makespan_us();
    const int64_t tried = budget_.tried;
    const int64_t kept = budget_.kept;
    const int64_t left = budget_.evaluations;
    descend(tables_, &evaluator_, stage, &budget_);
    anneal(tables_, &evaluator_, stage, share - (left - budget_.evaluations), seed, &budget_);
    stage_report.tried = budget_.tried - tried;
    stage_report.kept = budget_.kept - kept;
    stage_report.after_us = evaluator_.makespan_us();
    report_.stages.push_back(stage_report);
  }

  const ModeTables& tables_;
  const SearchOptions& options_;
  SearchReport& report_;
  SearchBudget budget_;
  OrderEvaluator evaluator_;
  std::vector<Window> stages_;
};

}  // namespace

int64_t worthwhile_evaluations(const ModeTables& tables, double makespan_us) {
  constexpr double kPerOperator = 8'000;
  constexpr double kLeastPerOperator = 8;
  constexpr double kMost = 60'000;
  // What these take is short in any case.
  constexpr int kSmall = 20;
  constexpr double kLeastOfSmall = 30'000;
  const double bound = lower_bound_us(tables);
  const double gap = bound > 0 ? makespan_us / bound - 1 : 1;
  // The further above the bound, the more there may be to gain, and the more likely there is.
  double evaluations = tables.operators * std::max(kLeastPerOperator, kPerOperator * gap * gap);
  if (tables.operators <= kSmall) evaluations = std::max(evaluations, kLeastOfSmall);
  return static_cast<int64_t>(std::min(evaluations, kMost));
}

StatusOr<ModeSchedule> JointScheduler::schedule(const ModeTables& tables,
                                                const SearchOptions& options,
                                                SearchReport* report) const {
  return schedule(tables, options, {}, report);
}

StatusOr<ModeSchedule> JointScheduler::schedule(
    const ModeTables& tables, const SearchOptions& options,
    const std::vector<std::pair<std::string, ModeSchedule>>& more, SearchReport* report) const {
  const Stopwatch stopwatch;
  SearchReport unused;
  if (!report) report = &unused;
  if (tables.operators == 0) return schedule_of(tables, {}, {});
  std::vector<Start> starts;
  for (int lane = 0; lane < tables.lanes; ++lane) {
    starts.push_back({tables.problem.lanes[lane].name, single_lane_modes(tables, lane)});
  }
  for (const char* strategy : {"inter_heft", "inter_lookahead", "intra", "chain"}) {
    TANDEM_ASSIGN_OR_RETURN(const auto scheduler, make_mode_scheduler(strategy));
    TANDEM_ASSIGN_OR_RETURN(ModeSchedule start, scheduler->schedule(tables, options, nullptr));
    starts.push_back({strategy, std::move(start)});
  }
  for (const auto& [strategy, schedule] : more) starts.push_back({strategy, schedule});

  ModeSchedule best;
  double best_us = OrderEvaluator::kNever;
  const auto offer = [&](const ModeSchedule& schedule, double us) {
    if (us >= best_us) return;
    best = schedule;
    best_us = us;
  };
  for (const Start& start : starts) {
    const double us = predicted_makespan_us(tables, start.schedule);
    report->starts.push_back({start.strategy, us});
    offer(start.schedule, us);
  }
  ModeSchedule found;
  if (tables.has_contention) {
    const ModeTables usual = with_usual_contention(tables);
    found = Search(usual, options, report).run(starts);
  } else {
    found = Search(tables, options, report).run(starts);
  }
  offer(found, predicted_makespan_us(tables, found));
  report->ms = stopwatch.milliseconds();
  return best;
}

}  // namespace tandem
