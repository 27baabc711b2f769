#include "cli/flags.h"

#include <charconv>
#include <map>
#include <utility>

#include "fmt/format.h"
#include "fmt/ranges.h"
#include "platform/assign_cores.h"
#include "platform/simulated_platform.h"
#include "platform/topology.h"
#include "tandem/session.h"

namespace tandem::cli {

namespace {

constexpr char kLanes[] = "Lanes";
constexpr char kSimulation[] = "Simulated lanes (docs/platforms.md)";

}  // namespace

void PlatformFlags::add_to(CLI::App& app) {
  add_lanes(app);
  const std::vector<CLI::Option*> of_this_machine =
      app.get_options([](const CLI::Option* option) { return option->get_group() == kLanes; });
  add_simulation(app);
  CLI::Option* platform = app.get_option("--platform");
  for (CLI::Option* option : of_this_machine) option->excludes(platform);
  app.add_option("--cache-dir", cache_dir_,
                 "Where compiled programs and calibrations are kept; 'none': nowhere "
                 "(default: $XDG_CACHE_HOME/tandem)")
      ->group(kLanes);
}

// Those of this machine.
void PlatformFlags::add_lanes(CLI::App& app) {
  const std::string group = kLanes;
  app.add_option("--opencl-cores", opencl_cores_,
                 "Cores of the OpenCL lane where its device is the host CPU, such as 0-1 "
                 "(default: the lower half)")
      ->group(group);
  app.add_option("--cpu-cores", cpu_cores_,
                 "Cores of a CPU lane, such as 2-3; repeat it for several lanes, fastest first "
                 "(default: one lane per kind of the remaining cores)")
      ->allow_extra_args(false)
      ->group(group);
  app.add_option("--num_threads,--num-threads", num_threads_,
                 "Use this many of the first CPU lane's cores (default: all)")
      ->check(at_least(1))
      ->group(group);
  app.add_option("--opencl-device", opencl_device_,
                 "The OpenCL device whose name, platform or version contains this, such as pocl")
      ->group(group);
  app.add_flag("--opencl-own-memory", opencl_own_memory_,
               "Copy data to the OpenCL device and back even if it could share the host's memory")
      ->group(group);
  app.add_flag("--no-winograd", no_winograd_,
               "The OpenCL lane sums 3x3 convolutions directly: slower, rounding less on data of "
               "very uneven size")
      ->group(group);
  app.add_option_function<bool>(
         "--use_gpu,--use-gpu", [this](bool value) { use_gpu_ = value; },
         "false: CPU lanes only. true: the default strategy becomes gpu")
      ->expected(0, 1)
      ->default_str("true")
      ->group(group);
}

void PlatformFlags::add_simulation(CLI::App& app) {
  const std::string simulation = kSimulation;
  CLI::Option* platform =
      app.add_option(
             "--platform", simulated_,
             "Lanes of the model of this phone or board instead of this machine's: a built-in "
             "name such as pixel5, or a JSON file. Times are simulated, values not computed")
          ->group(simulation);
  app.add_option("--runtime", simulation_.runtime, "Whose kernels are simulated")
      ->group(simulation)
      ->needs(platform)
      ->capture_default_str();
  app.add_option("--lane", simulation_.lanes,
                 "Lanes instead of the platform's: cpu=prime:1+big:3, gpu=gpu")
      ->allow_extra_args(false)
      ->needs(platform)
      ->group(simulation);
  app.add_option("--simulation-seed", simulation_seed_, "Of the noise")
      ->check(at_least(0))
      ->group(simulation)
      ->needs(platform)
      ->capture_default_str();
  CLI::Option* throttle =
      app.add_option("--throttle-after", throttle_after_,
                     "The chip is too warm after so many inferences: clocks fall (default: never)")
          ->check(at_least(1))
          ->needs(platform)
          ->group(simulation);
  app.add_option("--cpu-clock", throttled_.cpu, "... of the CPU to this share of the highest")
      ->check(share_of_one(0.01))
      ->group(simulation)
      ->needs(throttle)
      ->capture_default_str();
  app.add_option("--gpu-clock", throttled_.gpu, "... of the GPU to this share of the highest")
      ->check(share_of_one(0.01))
      ->group(simulation)
      ->needs(throttle)
      ->capture_default_str();
}

StatusOr<std::shared_ptr<Platform>> PlatformFlags::simulated() const {
  if (simulated_.empty()) return std::shared_ptr<Platform>();
  TANDEM_ASSIGN_OR_RETURN(sim::PlatformModel model, load_platform(simulated_, simulation_));
  const auto platform = make_simulated_platform(std::move(model), simulation_seed_);
  if (throttle_after_ > 0) platform->world().throttle_after(throttle_after_, throttled_);
  return std::shared_ptr<Platform>(platform);
}

StatusOr<PlatformOptions> PlatformFlags::options() const {
  PlatformOptions options;
  options.use_gpu = use_gpu_.value_or(true);
  options.opencl_device = opencl_device_;
  options.opencl_own_memory = opencl_own_memory_;
  options.winograd = !no_winograd_;
  if (!cache_dir_.empty()) {
    options.program_cache_dir = cache_dir_ == "none" ? "none" : cache_dir_ + "/programs";
  }
  if (!opencl_cores_.empty()) {
    const StatusOr<std::vector<int>> cores = parse_processor_list(opencl_cores_);
    if (!cores.ok()) return cores.status().with_context("--opencl-cores");
    options.opencl_cores = *cores;
  }
  for (const std::string& text : cpu_cores_) {
    const StatusOr<std::vector<int>> cores = parse_processor_list(text);
    if (!cores.ok()) return cores.status().with_context("--cpu-cores");
    options.cpu_lanes.push_back(*cores);
  }
  if (num_threads_ > 0) {
    TANDEM_ASSIGN_OR_RETURN(const Topology topology, detect_topology());
    TANDEM_ASSIGN_OR_RETURN(const CoreAssignment assignment,
                            assign_cores(topology, options, options.use_gpu));
    options.cpu_lanes.clear();
    for (const CpuLaneCores& lane : assignment.cpu_lanes) options.cpu_lanes.push_back(lane.cores);
    std::vector<int>& cores = options.cpu_lanes.front();
    if (num_threads_ > static_cast<int>(cores.size())) {
      return invalid_argument(fmt::format(
          "--num_threads {}: lane {} has cores {} only; move cores with --cpu-cores and "
          "--opencl-cores, or give the CPU all of them with --use_gpu=false",
          num_threads_, assignment.cpu_lanes.front().name, to_processor_list(cores)));
    }
    cores.resize(num_threads_);
    // Or the OpenCL lane would take what the CPU lane leaves.
    if (options.opencl_cores.empty()) options.opencl_cores = assignment.opencl_cores;
  }
  return options;
}

std::string PlatformFlags::calibration_dir() const {
  if (cache_dir_.empty() || cache_dir_ == "none") return cache_dir_;
  return cache_dir_ + "/calibration";
}

void CostFlags::add_to(CLI::App& app) {
  const std::map<std::string, CostSource> sources = {{"auto", CostSource::kAuto},
                                                     {"predicted", CostSource::kPredicted},
                                                     {"calibrated", CostSource::kCalibrated}};
  app.add_option("--costs", source_,
                 "Where strategies have the times of operators from: predicted, by what tandem "
                 "train saved; calibrated, measured for some seconds and kept; auto, the first if "
                 "there is any (default)")
      ->transform(CLI::Transformer(sources).description("SOURCE"))
      ->type_name("");
  app.add_option("--predictors", predictors_,
                 "The predictors' file (default: this platform's, where tandem train puts it)");
}

void CostFlags::apply_to(SessionOptions* options) const {
  options->costs = source_;
  options->predictors = predictors_;
}

void SearchFlags::add_to(CLI::App& app) {
  CLI::Option_group* group = app.add_option_group("Search");
  group
      ->add_option("--evaluations", evaluations_,
                   "How many schedules strategy joint may look at (default: what is worth it)")
      ->check(at_least(1));
  group->add_option("--budget-ms", budget_ms_, "How long it may search (default: no limit)")
      ->check(positive());
  group
      ->add_option("--search-seed", seed_,
                   "With the same number of evaluations, the same seed finds the same schedule")
      ->check(at_least(0))
      ->capture_default_str();
  group
      ->add_option("--pin", pins_,
                   "OPERATOR=LANE or OPERATOR=LANE:SHARE: where an operator, or that share of its "
                   "output, goes; may be repeated")
      ->allow_extra_args(false);
}

void SearchFlags::apply_to(SessionOptions* options) const {
  options->search_evaluations = evaluations_;
  options->search_budget_ms = budget_ms_;
  options->search_seed = seed_;
  options->pins = pins_;
}

StatusOr<std::shared_ptr<Platform>> create_platform(const PlatformFlags& flags) {
  StatusOr<std::shared_ptr<Platform>> platform = flags.simulated();
  if (platform.ok() && !*platform) {
    TANDEM_ASSIGN_OR_RETURN(const PlatformOptions options, flags.options());
    platform = Platform::create(options);
  }
  if (platform.ok()) {
    for (const std::string& warning : (*platform)->warnings()) {
      fmt::print(stderr, "warning: {}\n", warning);
    }
  }
  return platform;
}

void LoadFlags::add_to(CLI::App& app) {
  app.add_option("--shape", shapes_,
                 "NAME=1,3,224,224: the shape of an input whose file leaves it open")
      ->allow_extra_args(false);
  app.add_flag("--no-optimize", no_optimize_,
               "Keep every node of the file as an operator of its own (to tell a failing pass from "
               "a failing kernel)");
}

StatusOr<Model> LoadFlags::load(const std::string& path) const {
  LoadOptions options;
  options.optimize = !no_optimize_;
  for (const std::string& text : shapes_) {
    auto shape = parse_shape(text);
    if (!shape.ok()) return shape.status();
    if (!options.shapes.insert(*std::move(shape)).second) {
      return invalid_argument("--shape is given twice for one input: " + text);
    }
  }
  return Model::load(path, options);
}

std::string parse_mechanism(const std::string& name) {
  std::vector<std::string> names;
  for (const SyncMechanism mechanism :
       {SyncMechanism::kAuto, SyncMechanism::kEvent, SyncMechanism::kFinish, SyncMechanism::kPinned,
        SyncMechanism::kSvm}) {
    if (name == to_string(mechanism)) return std::to_string(static_cast<int>(mechanism));
    names.emplace_back(to_string(mechanism));
  }
  throw CLI::ValidationError(
      fmt::format("there is no mechanism '{}'; there are: {}", name, fmt::join(names, ", ")));
}

StatusOr<std::pair<std::string, Dims>> parse_shape(const std::string& text) {
  const auto malformed = [&text] {
    return invalid_argument(fmt::format(
        "--shape {}: give an input's name and extents, such as input=1,3,224,224", text));
  };
  // Extents hold no '=', names may.
  const size_t equals = text.rfind('=');
  if (equals == std::string::npos || equals == 0) return malformed();
  Dims dims;
  const char* at = text.data() + equals + 1;
  const char* const end = text.data() + text.size();
  while (true) {
    int64_t extent = 0;
    const auto [after, error] = std::from_chars(at, end, extent);
    if (error != std::errc() || extent <= 0) return malformed();
    dims.push_back(extent);
    if (after == end) break;
    if (*after != ',') return malformed();
    at = after + 1;
  }
  return std::pair(text.substr(0, equals), std::move(dims));
}

}  // namespace tandem::cli
