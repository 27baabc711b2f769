#include "runtime/planner.h"

#include <fmt/format.h>

#include <optional>

#include "platform/engine.h"
#include "platform/simulated_platform.h"
#include "profile/calibration.h"
#include "profile/lane_contention.h"
#include "profile/lane_traits.h"
#include "profile/predicted_costs.h"
#include "report/predicted_timeline.h"
#include "runtime/memory_plan.h"
#include "runtime/sync_bench.h"
#include "runtime/sync_choice.h"
#include "schedule/exact.h"
#include "schedule/scaled_costs.h"
#include "schedule/scheduler.h"
#include "support/log.h"
#include "support/stopwatch.h"

namespace tandem {
namespace {

// Contention takes some tenths of a second, whatever the graph: too much of shorter calibrations.
constexpr double kContentionWorthSeconds = 1;

// What it takes one host lane to see another's counter: a cache line that moves between cores.
constexpr double kHostCrossingUs = 0.5;

// What plans say of where costs came from.
constexpr char kCalibration[] = "calibration";
// An evaluation takes about a microsecond. Getting a session ready takes tens of milliseconds
// whatever the model, and half a millisecond an operator or more: of that, three percent. It is
// enough for two lanes, for which divisions of one operator after another are nearly best.
int64_t most_worthwhile(const Graph& graph) {
  constexpr int64_t kAtLeast = 2'000;
  constexpr int64_t kPerOperator = 15;
  return kAtLeast + kPerOperator * static_cast<int64_t>(graph.operators().size());
}

// What takes long should say so.
void announce_proof(const SearchOptions& search) {
  const int64_t nodes = search.evaluations > 0 ? search.evaluations : ExactScheduler::kMostNodes;
  std::string limits = fmt::format("{:.3g} million nodes", 1e-6 * static_cast<double>(nodes));
  if (search.budget_ms > 0) {
    limits += fmt::format(" and {:g} s", search.budget_ms / 1000);
  } else {
    limits += ", some tens of seconds; --budget-ms gives it less";
  }
  log().info("strategy exact: searching for the optimum and its proof, for at most {}", limits);
}

std::string source_of(const predict::PredictorFile& file) {
  return "predictors trained " + file.trained;
}

}  // namespace

Planner::Planner(std::shared_ptr<const Graph> graph, std::shared_ptr<Platform> platform,
                 std::shared_ptr<LaneCrew> crew, const SessionOptions& options)
    : graph_(std::move(graph)),
      platform_(std::move(platform)),
      crew_(std::move(crew)),
      options_(options) {}

Planner::~Planner() = default;

StatusOr<std::unique_ptr<Planner>> Planner::create(std::shared_ptr<const Graph> graph,
                                                   std::shared_ptr<Platform> platform,
                                                   std::shared_ptr<LaneCrew> crew,
                                                   const SessionOptions& options) {
  std::unique_ptr<Planner> planner(
      new Planner(std::move(graph), std::move(platform), std::move(crew), options));
  TANDEM_RETURN_IF_ERROR(planner->read_pins());
  TANDEM_RETURN_IF_ERROR(planner->choose_mechanism());
  return planner;
}

Status Planner::read_pins() {
  for (const std::string& text : options_.pins) {
    TANDEM_ASSIGN_OR_RETURN(const Pin pin, parse_pin(*graph_, problem().lanes, text));
    for (const Pin& other : pins_) {
      if (other.op != pin.op) continue;
      return invalid_argument(fmt::format("pin '{}': operator {} is pinned already; give one pin",
                                          text, graph_->op(pin.op).name));
    }
    pins_.push_back(pin);
  }
  return {};
}

Status Planner::choose_mechanism() {
  MechanismChoiceOptions choice;
  choice.asked = options_.sync;
  choice.calibration_dir = options_.calibration_dir;
  choice.fingerprint = platform_->fingerprint();
  TANDEM_ASSIGN_OR_RETURN(const MechanismChoice chosen, tandem::choose_mechanism(*crew_, choice));
  mechanism_ = chosen.mechanism;
  if (mechanism_ == SyncMechanism::kPinned) {
    log().warn("lanes synchronise by polling mapped memory, which OpenCL does not promise to work");
  }
  return {};
}

Problem Planner::problem() const {
  const CostModel* costs = corrected_costs_ ? corrected_costs_.get() : costs_.get();
  return {graph_.get(), traits_of(*crew_), costs};
}

StatusOr<Plan> Planner::make_plan() {
  if (!options_.plan.empty()) return load(options_.plan);
  if (!options_.schedule) return plan(options_.strategy);
  TANDEM_RETURN_IF_ERROR(check_schedule(*graph_, *options_.schedule));
  return Plan{origin(), *options_.schedule, {}};
}

StatusOr<Plan> Planner::plan(const std::string& strategy) {
  TANDEM_ASSIGN_OR_RETURN(ExplainedPlan result, plan(strategy, false));
  return std::move(result.plan);
}

StatusOr<Planner::ExplainedPlan> Planner::plan_and_explain(const std::string& strategy) {
  return plan(strategy, true);
}

StatusOr<Planner::ExplainedPlan> Planner::plan(const std::string& strategy, bool explain) {
  TANDEM_RETURN_IF_ERROR(make_scheduler(strategy).status());
  PlanOptions options;
  options.strategy = strategy;
  options.search = {options_.search_seed, options_.search_evaluations, options_.search_budget_ms};
  if (!options_.search_thoroughly && crew_->lanes().size() <= 2) {
    options.search.most_worthwhile = most_worthwhile(*graph_);
  }
  options.explain = explain;
  options.pins = pins_;
  // With a single lane there is nothing to choose.
  const bool needs_costs = strategy != "cpu" && strategy != "gpu";
  if (needs_costs) TANDEM_RETURN_IF_ERROR(prepare_costs());
  if (strategy == "exact") announce_proof(options.search);
  const Stopwatch stopwatch;
  StatusOr<PlannedSchedule> planned = tandem::plan(problem(), options);
  schedule_ms_ += stopwatch.milliseconds();
  if (planned.status().code() == StatusCode::kFailedPrecondition) {
    // No lane of the kind that the strategy wants: the platform may know why.
    std::string message = planned.status().message();
    for (const std::string& warning : platform_->warnings()) message += "; " + warning;
    return failed_precondition(message);
  }
  TANDEM_RETURN_IF_ERROR(planned.status());
  ExplainedPlan result{{}, std::move(planned).value()};
  result.plan.origin = origin();
  if (!needs_costs) result.plan.origin.costs = "none";
  result.plan.schedule = result.planned.schedule;
  if (has_costs()) {
    result.plan.prediction =
        predicted_timeline(problem(), result.plan.schedule, result.planned.evaluation);
  }
  return result;
}

void Planner::assume_slowdown(std::vector<double> factors) {
  corrected_costs_ = std::make_unique<ScaledCosts>(*costs_, std::move(factors));
}

StatusOr<Timeline> Planner::predict(const Schedule& schedule) const {
  TANDEM_ASSIGN_OR_RETURN(const Evaluation evaluation, evaluate_schedule(problem(), schedule));
  return predicted_timeline(problem(), schedule, evaluation);
}

StatusOr<Plan> Planner::load(const std::string& path) const {
  TANDEM_ASSIGN_OR_RETURN(Plan plan, load_plan(path, *graph_, origin()));
  TANDEM_RETURN_IF_ERROR(make_scheduler(plan.schedule.strategy).status().with_context(path));
  const std::vector<LaneTraits> lanes = problem().lanes;
  for (size_t lane = 0; lane < lanes.size(); ++lane) {
    for (size_t i = 0; i < plan.schedule.lanes[lane].size(); ++i) {
      const int threads = plan.schedule.lanes[lane][i].threads;
      if (threads <= lanes[lane].max_threads) continue;
      return invalid_argument(
          fmt::format("{}: lanes[{}].slices[{}].threads is {}, and lane {} has {}; plan again",
                      path, lane, i, threads, lanes[lane].name, lanes[lane].max_threads));
    }
  }
  return plan;
}

PlanOrigin Planner::origin() const {
  PlanOrigin origin;
  origin.model = graph_->name;
  origin.model_digest = model_digest(*graph_);
  origin.platform = platform_->fingerprint();
  origin.lanes = platform_->lane_names();
  origin.costs = fmt::format("{} with {}", cost_source(), to_string(mechanism_));
  origin.engine = engine_fingerprint();
  return origin;
}

std::string Planner::cost_source() const {
  if (!cost_source_.empty()) return cost_source_;
  if (options_.costs == CostSource::kCalibrated) return kCalibration;
  const auto file = load_predictor_file();
  return file.ok() ? source_of(*file) : kCalibration;
}

StatusOr<predict::PredictorFile> Planner::load_predictor_file() const {
  const std::string platform = platform_->fingerprint();
  const std::string path = options_.predictors.empty() ? predict::find_default_predictors(platform)
                                                       : options_.predictors;
  return predict::PredictorFile::load(path, {platform, engine_fingerprint()}, false);
}

Status Planner::prepare_costs() {
  if (costs_) return {};
  if (options_.costs == CostSource::kCalibrated) {
    TANDEM_RETURN_IF_ERROR(calibrate());
  } else if (const Status predicted = load_predictors(); !predicted.ok()) {
    // Without memory, measuring would fare no better.
    const bool hopeless = predicted.code() == StatusCode::kResourceExhausted;
    const bool asked_for =
        options_.costs == CostSource::kPredicted ||
        (predicted.code() == StatusCode::kNotFound && !options_.predictors.empty());
    if (asked_for || hopeless) return predicted;
    if (predicted.code() != StatusCode::kNotFound) {
      log().warn("{}; calibrating instead", predicted.message());
    }
    TANDEM_RETURN_IF_ERROR(calibrate());
  }
  return {};
}

namespace {

// Memory that is made when it is first asked for.
class MeasuringMemory {
 public:
  MeasuringMemory(const Graph& graph, const LaneCrew& crew) : graph_(graph), crew_(crew) {}
  StatusOr<const TensorBindings*> bindings() {
    if (!arena_) {
      TANDEM_ASSIGN_OR_RETURN(Arena made, Arena::create(graph_, plan_memory(graph_),
                                                        Arena::allocator_for(crew_.lanes())));
      arena_.emplace(std::move(made));
    }
    return &arena_->bindings();
  }

 private:
  const Graph& graph_;
  const LaneCrew& crew_;
  std::optional<Arena> arena_;
};

}  // namespace

Status Planner::load_predictors() {
  Stopwatch stopwatch;
  TANDEM_ASSIGN_OR_RETURN(const predict::PredictorFile file, load_predictor_file());
  predictors_ms_ += stopwatch.milliseconds();
  stopwatch = {};
  MeasuringMemory memory(*graph_, *crew_);
  CalibrationSources sources = transfer_sources();
  sources.memory = [&memory] { return memory.bindings(); };
  const CalibrationCache cache(options_.calibration_dir, platform_->fingerprint());
  CalibrationData data = cache.load();
  const CalibrationData before = data;
  const std::string mechanism = to_string(mechanism_);
  TANDEM_RETURN_IF_ERROR(measure_transfers(*graph_, *crew_, mechanism, sources, &data));
  TANDEM_RETURN_IF_ERROR(measure_enqueueing(*graph_, *crew_, sources, &data));
  if (data != before) cache.save(data);
  TransferCosts transfers = transfer_costs(*crew_, mechanism, data);
  TANDEM_RETURN_IF_ERROR(measure_starts(*crew_, sources, &transfers));
  calibrate_ms_ += stopwatch.milliseconds();
  stopwatch = {};
  TANDEM_ASSIGN_OR_RETURN(
      std::unique_ptr<PredictedCosts> costs,
      PredictedCosts::create(*graph_, crew_->lanes(), file, std::move(transfers)));
  predictors_ms_ += stopwatch.milliseconds();
  stopwatch = {};
  const auto lanes = static_cast<int>(crew_->lanes().size());
  // Whole operators: what is asked for in any case, and tells whether predictors know them all.
  TANDEM_RETURN_IF_ERROR(costs->prepare(usual_slices(*graph_, lanes, 1)));
  cost_source_ = source_of(file);
  schedule_ms_ += stopwatch.milliseconds();
  log().debug("{} slices predicted by {}", costs->answered(), cost_source_);
  costs_ = std::move(costs);
  return {};
}

Status Planner::calibrate() {
  const Stopwatch stopwatch;
  CalibrationOptions options;
  options.seconds = options_.calibration_seconds;
  options.dir = options_.calibration_dir;
  options.fingerprint = platform_->fingerprint();
  options.mechanism = to_string(mechanism_);
  MeasuringMemory memory(*graph_, *crew_);
  CalibrationSources sources = transfer_sources();
  sources.memory = [&]() -> StatusOr<const TensorBindings*> {
    const bool simulated = dynamic_cast<const SimulatedPlatform*>(platform_.get()) != nullptr;
    log().info("measuring {} on {} lanes, for about {} s{}", graph_->name,
               simulated ? "simulated" : "this machine's", options_.calibration_seconds,
               simulated ? " of their clock" : "");
    return memory.bindings();
  };
  if (options_.calibration_seconds >= kContentionWorthSeconds) {
    sources.contention = [this](CalibrationData* data) { return measure_contention(*crew_, data); };
  }
  TANDEM_ASSIGN_OR_RETURN(costs_, Calibration::create(*graph_, *crew_, options, sources));
  cost_source_ = kCalibration;
  calibrate_ms_ += stopwatch.milliseconds();
  return {};
}

CalibrationSources Planner::transfer_sources() {
  CalibrationSources sources;
  sources.crossing = [this](int from, int to) { return crossing_us(from, to); };
  // To networks, one start matters little.
  if (is_alone(analyse(*graph_))) {
    sources.start = [this](int lane) { return bench_start(*crew_, lane, mechanism_); };
  }
  return sources;
}

StatusOr<double> Planner::crossing_us(int from, int to) {
  const bool from_queue = crew_->queue_lane(from) != nullptr;
  const bool to_queue = crew_->queue_lane(to) != nullptr;
  if (!from_queue && !to_queue) return kHostCrossingUs;
  SyncBenchOptions options;
  options.iterations = mechanism_ == SyncMechanism::kSvm ? 1'000 : 200;
  if (from_queue && to_queue) {
    // There is no benchmark of two queues; a round trip over the host is what it is at most.
    for (size_t cpu = 0; cpu < crew_->lanes().size(); ++cpu) {
      if (crew_->queue_lane(static_cast<int>(cpu))) continue;
      TANDEM_ASSIGN_OR_RETURN(
          const CrossingTimes times,
          bench_crossing(*crew_, static_cast<int>(cpu), to, mechanism_, options));
      return times.round_trip.median;
    }
    return unsupported("costs of crossings between two queues, without a CPU lane");
  }
  TANDEM_ASSIGN_OR_RETURN(
      const CrossingTimes times,
      bench_crossing(*crew_, from_queue ? to : from, from_queue ? from : to, mechanism_, options));
  return from_queue ? times.gpu_to_cpu.median : times.cpu_to_gpu.median;
}

}  // namespace tandem
