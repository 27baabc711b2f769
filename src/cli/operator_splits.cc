#include "cli/operator_splits.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>

#include "cli/continuous.h"
#include "cli/split_grid.h"
#include "runtime/planner.h"
#include "support/clock.h"

namespace tandem::cli {
namespace {

constexpr std::chrono::seconds kPatience{60};
// Until then, a round times each of the contenders several times.
constexpr double kShortUs = 1000;
constexpr int kRunsOfShort = 3;

std::vector<int> cores_of(const LaneCrew& crew) {
  std::vector<int> cores;
  for (const Lane* lane : crew.lanes()) {
    cores.insert(cores.end(), lane->info().cores.begin(), lane->info().cores.end());
  }
  return cores;
}

// The work of one turn.
Status turn(OperatorTrial& trial, bool* disturbed, std::vector<double>* us) {
  TANDEM_RETURN_IF_ERROR(OperatorTrials::warm_up(trial));
  for (int i = 0; i < kRunsOfShort; ++i) {
    const PreemptionWatch preemption;
    TANDEM_ASSIGN_OR_RETURN(const double run_us, OperatorTrials::run(trial));
    us->push_back(run_us);
    *disturbed = *disturbed || preemption.preempted();
    if (run_us > kShortUs) break;
  }
  return {};
}

// Between the first two lanes, along the axis that costs least, by their times alone.
std::vector<SplitPart> divided_by_speed(const Graph& graph,
                                        const std::vector<OperatorTrial>& lanes) {
  const std::vector<PartitionAxis> axes = partition_axes(graph, 0);
  if (axes.empty()) return {};
  const auto [axis, granularity] = axes.front();
  const int64_t extent = graph.output_of(0).dims[axis];
  const double first_us = lanes[0].us.summary().median;
  const double second_us = lanes[1].us.summary().median;
  const int64_t units = (extent + granularity - 1) / granularity;
  const int64_t at = std::clamp<int64_t>(
      std::llround(static_cast<double>(units) * second_us / (first_us + second_us)), 1, units - 1);
  return {{0, Slice{0, axis, 0, at * granularity}}, {1, Slice{0, axis, at * granularity, extent}}};
}

std::vector<OperatorTrial*> contenders_of(OperatorSplits& splits) {
  std::vector<OperatorTrial*> contenders;
  for (SplitTimes& times : splits.times) {
    for (OperatorTrial& lane : times.lanes) contenders.push_back(&lane);
    contenders.push_back(&times.chosen);
    contenders.push_back(&times.grid);
  }
  return contenders;
}

}  // namespace

const char* to_string(Bound bound) { return bound == Bound::kCompute ? "compute" : "memory"; }

double SplitTimes::best_lane_us() const {
  double best = lanes.front().us.summary().median;
  for (const OperatorTrial& lane : lanes) best = std::min(best, lane.us.summary().median);
  return best;
}

double SplitTimes::limit() const {
  double limit = 0;
  for (const OperatorTrial& lane : lanes) limit += best_lane_us() / lane.us.summary().median;
  return limit;
}

SplitBench::SplitBench(std::shared_ptr<Platform> platform, std::shared_ptr<LaneCrew> crew,
                       SplitBenchOptions options, std::vector<int> cores)
    : platform_(std::move(platform)),
      crew_(std::move(crew)),
      options_(std::move(options)),
      cores_(std::move(cores)),
      watch_(cores_) {}

StatusOr<std::unique_ptr<SplitBench>> SplitBench::create(std::shared_ptr<Platform> platform,
                                                         SplitBenchOptions options) {
  TANDEM_ASSIGN_OR_RETURN(std::shared_ptr<LaneCrew> crew, LaneCrew::of(platform));
  int queues = 0;
  for (size_t lane = 0; lane < crew->lanes().size(); ++lane) {
    if (crew->queue_lane(static_cast<int>(lane))) ++queues;
  }
  if (queues == 0 || queues == static_cast<int>(crew->lanes().size())) {
    return failed_precondition(
        "operators are divided between a CPU lane and an OpenCL lane, and this platform does not "
        "have both; see 'tandem devices'");
  }
  const std::vector<int> cores = cores_of(*crew);
  std::unique_ptr<SplitBench> bench(
      new SplitBench(std::move(platform), std::move(crew), std::move(options), cores));
  const Probe speeds = probe(cores);
  bench->gflops_ =
      std::accumulate(speeds.together.begin(), speeds.together.end(), 0.0,
                      [](double sum, const CoreSpeed& speed) { return sum + speed.gflops; });
  return bench;
}

// Whether it takes the cores longer to read the operator's bytes once, from whatever cache holds as
// many, than to do its multiply-adds.
Bound SplitBench::bound_of(const Work& work) const {
  const double compute_us = work.flops / gflops_ / 1e3;
  const double memory_us =
      work.bytes / read_speed_together(cores_, static_cast<size_t>(work.bytes)) / 1e3;
  return memory_us > compute_us ? Bound::kMemory : Bound::kCompute;
}

StatusOr<SplitTimes> SplitBench::prepare(const OperatorTrials& trials,
                                         std::shared_ptr<const Graph> graph,
                                         SyncMechanism mechanism) {
  SplitTimes times;
  Split choice;
  {
    TANDEM_ASSIGN_OR_RETURN(const LaneCrew::Lease lease,
                            LaneCrew::acquire(crew_, Clock::now() + kPatience));
    SessionOptions session = options_.session;
    session.sync = mechanism;
    TANDEM_ASSIGN_OR_RETURN(const std::unique_ptr<Planner> planner,
                            Planner::create(std::move(graph), platform_, crew_, session));
    TANDEM_RETURN_IF_ERROR(planner->prepare_costs());
    times.mechanism = planner->mechanism();
    times.costs = planner->origin().costs;
    choice = choose_split(planner->problem(), 0);
  }
  times.predicted_us = choice.end_us;
  for (size_t lane = 0; lane < crew_->lanes().size(); ++lane) {
    TANDEM_ASSIGN_OR_RETURN(
        OperatorTrial alone,
        trials.prepare({{static_cast<int>(lane), Slice{.op = 0}}}, times.mechanism));
    times.lanes.push_back(std::move(alone));
  }
  TANDEM_ASSIGN_OR_RETURN(times.chosen, trials.prepare(choice.parts, times.mechanism));
  TANDEM_ASSIGN_OR_RETURN(const std::vector<SplitPart> winner,
                          best_of_grid(trials, times.mechanism, choice.parts));
  TANDEM_ASSIGN_OR_RETURN(times.grid, trials.prepare(winner, times.mechanism));
  return times;
}

// All contenders in turn, so that disturbances hit all alike; rounds that began or ended on a
// disturbed machine, or in which a thread lost its core, are made again.
Status SplitBench::take_turns(OperatorSplits& splits) {
  const std::vector<OperatorTrial*> contenders = contenders_of(splits);
  const int most_rounds = 3 * options_.samples;
  bool disturbed_before = watch_.disturbed();
  int clean = 0;
  for (int round = 0; round < most_rounds && clean < options_.samples; ++round) {
    std::vector<std::vector<double>> us(contenders.size());
    bool disturbed = disturbed_before;
    for (size_t i = 0; i < contenders.size(); ++i) {
      const size_t at = (round + i) % contenders.size();
      TANDEM_RETURN_IF_ERROR(turn(*contenders[at], &disturbed, &us[at]));
    }
    disturbed_before = watch_.disturbed();
    disturbed = disturbed || disturbed_before;
    for (size_t i = 0; i < contenders.size(); ++i) {
      for (const double sample : us[i]) contenders[i]->us.add(sample, disturbed);
    }
    ++(disturbed ? splits.disturbed_rounds : clean);
  }
  return {};
}

StatusOr<OperatorSplits> SplitBench::measure(const CountedShape& shape) {
  TANDEM_ASSIGN_OR_RETURN(Graph made, graph_of(shape.shape));
  const auto graph = std::make_shared<const Graph>(std::move(made));
  OperatorSplits splits;
  splits.shape = shape;
  splits.work = work_of(*graph, 0);
  splits.bound = bound_of(splits.work);
  TANDEM_ASSIGN_OR_RETURN(const std::unique_ptr<OperatorTrials> trials,
                          OperatorTrials::create(graph, crew_));
  for (const SyncMechanism mechanism : options_.mechanisms) {
    TANDEM_ASSIGN_OR_RETURN(SplitTimes times, prepare(*trials, graph, mechanism));
    splits.times.push_back(std::move(times));
  }
  TANDEM_RETURN_IF_ERROR(take_turns(splits));

  const SplitTimes& first = splits.times.front();
  splits.chosen = describe(*graph, *crew_, first.chosen.parts);
  splits.grid = describe(*graph, *crew_, first.grid.parts);
  for (const std::vector<SplitPart>& parts :
       {first.grid.parts, first.chosen.parts, divided_by_speed(*graph, first.lanes)}) {
    if (parts.size() != 2) continue;
    const StatusOr<double> limit = corun_limit(*trials, parts, watch_);
    if (!limit.ok() && limit.status().code() != StatusCode::kUnsupported) return limit.status();
    if (limit.ok()) splits.corun_limit = *limit;
    break;
  }
  // What they hold is much, and not needed any more.
  for (OperatorTrial* trial : contenders_of(splits)) trial->executor.reset();
  return splits;
}

}  // namespace tandem::cli
