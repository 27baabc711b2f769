#include "cli/adversary.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "fmt/format.h"
#include "schedule/mode_scheduler.h"
#include "schedule/random_problem.h"
#include "support/random_numbers.h"
#include "support/stopwatch.h"

namespace tandem::cli {
namespace {

// Of a change of the ratio, at the first and the last step of a start.
constexpr double kHot = 0.02;
constexpr double kCold = 0.001;

// Nothing if the optimum is not proven in time.
StatusOr<std::optional<Adversary>> judge(ModeProblem problem, double exact_ms) {
  const ModeTables tables(problem);
  TANDEM_ASSIGN_OR_RETURN(const std::unique_ptr<ModeScheduler> exact, make_mode_scheduler("exact"));
  SearchOptions limit;
  limit.budget_ms = exact_ms;
  const StatusOr<ModeSchedule> optimum = exact->schedule(tables, limit, nullptr);
  if (!optimum.ok()) {
    if (optimum.status().code() == StatusCode::kResourceExhausted) {
      return std::optional<Adversary>();
    }
    return optimum.status();
  }
  TANDEM_ASSIGN_OR_RETURN(const std::unique_ptr<ModeScheduler> joint, make_mode_scheduler("joint"));
  TANDEM_ASSIGN_OR_RETURN(const ModeSchedule found,
                          joint->schedule(tables, SearchOptions{}, nullptr));
  Adversary result;
  result.joint_us = evaluate(tables, found).makespan_us;
  result.optimum_us = evaluate(tables, *optimum).makespan_us;
  result.problem = std::move(problem);
  return std::optional<Adversary>(std::move(result));
}

class Mutations {
 public:
  explicit Mutations(RandomNumbers* random) : random_(*random) {}

  ModeProblem mutated(ModeProblem problem) {
    switch (random_.integer(0, 5)) {
      case 0:
        change_latency(&problem);
        break;
      case 1:
        add_edge(&problem);
        break;
      case 2:
        remove_edge(&problem);
        break;
      case 3:
        if (remove_mode(&problem)) break;
        [[fallthrough]];
      default:
        change_time(&problem);
    }
    return problem;
  }

 private:
  int below(size_t count) {
    return static_cast<int>(random_.integer(0, static_cast<int64_t>(count) - 1));
  }

  void change_time(ModeProblem* problem) {
    std::vector<Mode>& modes = problem->operators[below(problem->operators.size())].modes;
    std::vector<Part>& parts = modes[below(modes.size())].parts;
    Part& part = parts[below(parts.size())];
    part.us = std::max(problem->lanes[part.lane].enqueue_us, part.us * random_.ratio(0.4, 2.5));
  }

  void change_latency(ModeProblem* problem) {
    const int from = below(problem->lanes.size());
    const int to = below(problem->lanes.size());
    if (from != to) problem->latency_us[from][to] *= random_.ratio(0.4, 2.5);
  }

  // All parts of one wait for all of the other.
  void add_edge(ModeProblem* problem) {
    ModeEdge edge;
    edge.from = below(problem->operators.size());
    edge.to = below(problem->operators.size());
    if (edge.from > edge.to) std::swap(edge.from, edge.to);
    const bool is_there =
        edge.from == edge.to ||
        std::any_of(problem->edges.begin(), problem->edges.end(), [&](const ModeEdge& other) {
          return other.from == edge.from && other.to == edge.to;
        });
    if (is_there) return;
    edge.waits.assign(problem->index_size(edge), 0);
    const std::vector<Mode>& from_modes = problem->operators[edge.from].modes;
    const size_t stride = edge.waits.size() / from_modes.size();
    for (size_t i = 0; i < edge.waits.size(); ++i) {
      edge.waits[i] = static_cast<PartMask>((1u << from_modes[i / stride].parts.size()) - 1);
    }
    problem->edges.push_back(std::move(edge));
  }

  void remove_edge(ModeProblem* problem) {
    if (!problem->edges.empty()) {
      problem->edges.erase(problem->edges.begin() + below(problem->edges.size()));
    }
  }

  // Not the whole ones: the baselines want those.
  bool remove_mode(ModeProblem* problem) {
    const int op = below(problem->operators.size());
    const int mode = below(problem->operators[op].modes.size());
    if (problem->operators[op].modes[mode].parts.size() == 1) return false;
    const ModeProblem before = *problem;
    problem->operators[op].modes.erase(problem->operators[op].modes.begin() + mode);
    for (ModeEdge& edge : problem->edges) {
      if (edge.from == op || edge.to == op) edge = without(before, *problem, edge, op, mode);
    }
    return true;
  }

  static ModeEdge without(const ModeProblem& before, const ModeProblem& after, const ModeEdge& edge,
                          int op, int removed) {
    ModeEdge result{edge.from, edge.to, {}, {}};
    result.waits.assign(after.index_size(result), 0);
    if (!edge.fetch_us.empty()) result.fetch_us.assign(result.waits.size(), 0);
    const auto old_mode = [&](int of, int mode) {
      return of == op && mode >= removed ? mode + 1 : mode;
    };
    const std::vector<Mode>& to_modes = after.operators[edge.to].modes;
    for (int f = 0; f < static_cast<int>(after.operators[edge.from].modes.size()); ++f) {
      for (int t = 0; t < static_cast<int>(to_modes.size()); ++t) {
        for (int p = 0; p < static_cast<int>(to_modes[t].parts.size()); ++p) {
          const size_t from = before.index(edge, old_mode(edge.from, f), old_mode(edge.to, t), p);
          const size_t to = after.index(result, f, t, p);
          result.waits[to] = edge.waits[from];
          if (!edge.fetch_us.empty()) result.fetch_us[to] = edge.fetch_us[from];
        }
      }
    }
    return result;
  }

  RandomNumbers& random_;
};

}  // namespace

StatusOr<std::vector<Adversary>> find_adversaries(const AdversaryOptions& options,
                                                  const std::function<void(double)>& progress) {
  const Stopwatch stopwatch;
  RandomNumbers random(options.seed);
  Mutations mutations(&random);
  std::vector<Adversary> worst;
  const auto used = [&] { return stopwatch.milliseconds() / (1000 * options.seconds); };
  for (uint64_t start = 0; used() < 1; ++start) {
    RandomProblemOptions shape;
    shape.family = graph_families()[start % graph_families().size()];
    shape.operators =
        static_cast<int>(random.integer(options.fewest_operators, options.most_operators));
    shape.lanes = static_cast<int>(random.integer(2, 4));
    shape.max_modes = static_cast<int>(random.integer(4, 8));
    shape.seed = options.seed * 100'000 + start;
    TANDEM_ASSIGN_OR_RETURN(std::optional<Adversary> current,
                            judge(random_problem(shape), options.exact_ms));
    if (!current) continue;
    Adversary best = *current;
    for (int step = 0; step < options.steps && used() < 1; ++step) {
      progress(std::min(1.0, used()));
      TANDEM_ASSIGN_OR_RETURN(std::optional<Adversary> next,
                              judge(mutations.mutated(current->problem), options.exact_ms));
      if (!next) continue;
      const double heat = kHot * std::pow(kCold / kHot, static_cast<double>(step) / options.steps);
      const double change = next->ratio() - current->ratio();
      if (change < 0 && random.real(0, 1) >= std::exp(change / heat)) continue;
      current = std::move(next);
      if (current->ratio() > best.ratio()) best = *current;
    }
    worst.push_back(std::move(best));
    std::stable_sort(worst.begin(), worst.end(),
                     [](const Adversary& a, const Adversary& b) { return a.ratio() > b.ratio(); });
    if (static_cast<int>(worst.size()) > options.keep) worst.resize(options.keep);
  }
  for (size_t i = 0; i < worst.size(); ++i) {
    worst[i].problem.name = fmt::format("adversary-{}", i);
  }
  return worst;
}

}  // namespace tandem::cli
