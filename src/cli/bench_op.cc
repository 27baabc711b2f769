// `tandem bench op`: the lanes' speed on operator shapes of real networks, beside oneDNN and
// XNNPACK called directly on the same cores.
#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "cli/baseline.h"
#include "cli/bench.h"
#include "cli/conditions.h"
#include "cli/probe.h"
#include "cli/progress.h"
#include "cli/samples.h"
#include "cli/shapes.h"
#include "cli/single_operator.h"
#include "fmt/format.h"
#include "lane/cpu/kernel.h"
#include "lane/cpu/team_size.h"
#include "platform/topology.h"
#include "profile/lane_crew.h"
#include "support/clock.h"
#include "support/statistics.h"

namespace tandem::cli {
namespace {

// --- what is compared ---

enum class Role : uint8_t {
  kLane,            // what the lane picks
  kImplementation,  // another one that it could pick
  kOneDnn,          // called directly
  kXnnpack,
};

const char* to_string(Role role) {
  switch (role) {
    case Role::kLane:
      return "lane";
    case Role::kImplementation:
      return "implementation";
    case Role::kOneDnn:
      return "oneDNN";
    case Role::kXnnpack:
      return "XNNPACK";
  }
  return "unknown";
}

// Something that computes the shape at hand on the cores of a lane.
struct Contender {
  Role role = Role::kLane;
  std::string lane;
  std::string detail;  // the implementation
  WorkerThread* thread = nullptr;
  std::function<Status(int repetitions)> run;
  int repetitions = 1;
  Samples samples_us;

  double median_us() const { return samples_us.summary().median; }
};

// A lane with the threads that its contenders run on.
struct Site {
  Lane* lane = nullptr;
  WorkerThread* lane_thread = nullptr;
  // Bound to the lane's cores, for libraries called directly; none where the lane is not on this
  // host.
  std::unique_ptr<WorkerThread> direct_thread;
};

StatusOr<Site> make_site(LaneCrew& crew, int lane) {
  Site site;
  site.lane = crew.lanes()[lane];
  site.lane_thread = &crew.thread(lane);
  const std::vector<int>& cores = site.lane->info().cores;
  if (cores.empty()) return site;
  site.direct_thread = std::make_unique<WorkerThread>();
  Status pinned;
  site.direct_thread->run([&] {
    cpu_set_t set;
    CPU_ZERO(&set);
    for (const int core : cores) CPU_SET(core, &set);
    if (sched_setaffinity(0, sizeof set, &set) != 0) {
      pinned = internal_error(fmt::format("cannot pin a thread to cores {}: {}",
                                          to_processor_list(cores), std::strerror(errno)));
    }
  });
  TANDEM_RETURN_IF_ERROR(pinned);
  return site;
}

// Runs `make`, which returns a Status, on the thread.
template <typename Make>
Status on_thread(WorkerThread& thread, Make make) {
  Status outcome;
  thread.run([&] { outcome = make(); });
  return outcome;
}

StatusOr<Contender> lane_contender(const Site& site, const Graph& graph) {
  Contender contender;
  contender.role = Role::kLane;
  contender.lane = site.lane->info().name;
  contender.thread = site.lane_thread;
  TANDEM_RETURN_IF_ERROR(on_thread(*site.lane_thread, [&]() -> Status {
    TANDEM_ASSIGN_OR_RETURN(std::unique_ptr<SingleOperator> made,
                            SingleOperator::create(graph, *site.lane));
    const std::shared_ptr<SingleOperator> op = std::move(made);
    contender.detail = op->info().name;
    contender.run = [op](int repetitions) { return op->run(repetitions); };
    return {};
  }));
  return contender;
}

using MakeBaseline = StatusOr<std::unique_ptr<Baseline>> (*)(const OperatorShape&, int);

StatusOr<Contender> baseline_contender(const Site& site, Role role, MakeBaseline make,
                                       const OperatorShape& shape) {
  Contender contender;
  contender.role = role;
  contender.lane = site.lane->info().name;
  contender.thread = site.direct_thread.get();
  const int threads = static_cast<int>(site.lane->info().cores.size());
  TANDEM_RETURN_IF_ERROR(on_thread(*site.direct_thread, [&]() -> Status {
    TANDEM_ASSIGN_OR_RETURN(std::unique_ptr<Baseline> made, make(shape, threads));
    const std::shared_ptr<Baseline> baseline = std::move(made);
    contender.detail = baseline->detail();
    contender.run = [baseline](int repetitions) -> Status {
      for (int i = 0; i < repetitions; ++i) TANDEM_RETURN_IF_ERROR(baseline->run());
      return {};
    };
    return {};
  }));
  return contender;
}

// One implementation of a CPU lane with all that its kernel uses.
struct CpuImplementation {
  OperatorMemory memory;
  cpu::Resources resources;
  std::unique_ptr<cpu::Kernel> kernel;
};

cpu::Problem cpu_problem(const Graph& graph, const TensorBindings& bindings, int threads) {
  cpu::Problem problem;
  problem.graph = &graph;
  problem.op = &graph.operators().back();
  problem.slice.op = static_cast<OperatorId>(graph.operators().size()) - 1;
  problem.region = output_region(graph, problem.slice);
  problem.threads = threads;
  for (const TensorId id : problem.op->inputs) {
    TensorView view = bindings[id];
    if (view.data == nullptr) {
      // A constant that lanes pack: dense, and never written.
      const HostTensor& value = *graph.tensor(id).value;
      view.dims = value.dims;
      view.strides = strides_of(value.dims, {Order::kRowMajor, false});
      view.data = const_cast<std::byte*>(value.bytes.data());
    }
    problem.inputs.push_back(std::move(view));
  }
  problem.output = bindings[problem.op->output];
  return problem;
}

// All that the CPU lane could pick for the shape.
StatusOr<std::vector<Contender>> implementation_contenders(const Site& site, const Graph& graph) {
  std::vector<Contender> contenders;
  const int threads = site.lane->info().max_threads;
  TANDEM_RETURN_IF_ERROR(on_thread(*site.lane_thread, [&]() -> Status {
    const cpu::TeamSize team(threads);
    TANDEM_ASSIGN_OR_RETURN(const OperatorMemory memory, OperatorMemory::create(graph, *site.lane));
    const cpu::Problem problem = cpu_problem(graph, memory.bindings(), threads);
    for (const cpu::Implementation* implementation : cpu::candidates(problem)) {
      if (!implementation->supports(problem).ok()) continue;
      auto made = std::make_shared<CpuImplementation>();
      made->memory = memory;
      TANDEM_ASSIGN_OR_RETURN(made->kernel, implementation->prepare(problem, made->resources));
      Contender contender;
      contender.role = Role::kImplementation;
      contender.lane = site.lane->info().name;
      contender.detail = implementation->name();
      contender.thread = site.lane_thread;
      contender.run = [made, threads](int repetitions) -> Status {
        const cpu::TeamSize team_of_run(threads);
        for (int i = 0; i < repetitions; ++i) TANDEM_RETURN_IF_ERROR(made->kernel->run());
        return {};
      };
      contenders.push_back(std::move(contender));
    }
    return {};
  }));
  return contenders;
}

// --- timing ---

Status sample(Contender& contender, bool keep) {
  double us = 0;
  const PreemptionWatch watch;
  TANDEM_RETURN_IF_ERROR(on_thread(*contender.thread, [&]() -> Status {
    const Clock::time_point begin = Clock::now();
    TANDEM_RETURN_IF_ERROR(contender.run(contender.repetitions));
    us = microseconds(Clock::now() - begin) / contender.repetitions;
    return {};
  }));
  if (keep) {
    contender.samples_us.add(us, watch.preempted());
  } else {
    // Long enough for the clock, and to warm caches as a network would not: the same for all.
    constexpr double kLeastSampleUs = 2000;
    contender.repetitions =
        static_cast<int>(std::clamp(std::ceil(kLeastSampleUs / std::max(us, 0.1)), 1.0, 1000.0));
  }
  return {};
}

// All in turn, so that disturbances hit all alike.
Status measure(std::vector<Contender>& contenders, int samples) {
  for (Contender& contender : contenders) {
    TANDEM_RETURN_IF_ERROR(sample(contender, false));  // cold
    TANDEM_RETURN_IF_ERROR(sample(contender, false));
  }
  for (int i = 0; i < samples; ++i) {
    for (Contender& contender : contenders) TANDEM_RETURN_IF_ERROR(sample(contender, true));
  }
  return {};
}

struct Row {
  std::string file;
  CountedShape shape;
  double flops = 0;
  std::vector<Contender> contenders;

  double gflops(const Contender& contender) const { return flops / contender.median_us() / 1e3; }
};

StatusOr<Row> measure_shape(const std::vector<Site>& sites, const std::string& file,
                            const CountedShape& shape, const Graph& graph,
                            const BenchOpFlags& flags) {
  Row row;
  row.file = file;
  row.shape = shape;
  row.flops = work_of(graph, static_cast<OperatorId>(graph.operators().size()) - 1).flops;
  const auto add = [&row](StatusOr<Contender> contender) -> Status {
    // A library without such an operator is no competitor.
    if (contender.status().code() == StatusCode::kUnsupported) return {};
    TANDEM_RETURN_IF_ERROR(contender.status());
    row.contenders.push_back(*std::move(contender));
    return {};
  };
  for (const Site& site : sites) {
    TANDEM_ASSIGN_OR_RETURN(Contender lane, lane_contender(site, graph));
    row.contenders.push_back(std::move(lane));
    if (site.direct_thread) {
      TANDEM_RETURN_IF_ERROR(
          add(baseline_contender(site, Role::kOneDnn, make_onednn_baseline, shape.shape)));
      TANDEM_RETURN_IF_ERROR(
          add(baseline_contender(site, Role::kXnnpack, make_xnnpack_baseline, shape.shape)));
    }
    if (flags.implementations && site.lane->info().kind == LaneKind::kCpu) {
      TANDEM_ASSIGN_OR_RETURN(std::vector<Contender> all, implementation_contenders(site, graph));
      std::move(all.begin(), all.end(), std::back_inserter(row.contenders));
    }
  }
  TANDEM_RETURN_IF_ERROR(measure(row.contenders, flags.samples));
  // What they hold is not needed any more, and is much.
  for (Contender& contender : row.contenders) {
    TANDEM_RETURN_IF_ERROR(on_thread(*contender.thread, [&]() -> Status {
      contender.run = nullptr;
      return {};
    }));
  }
  return row;
}

// --- the summary ---

// Shapes whose speed has the same limits.
enum class Class : uint8_t { kLargeGemm, kSmallGemm, kConv3x3, kConvOther, kDepthwise, kMatMul };

const char* to_string(Class c) {
  switch (c) {
    case Class::kLargeGemm:
      return "large GEMM-like";
    case Class::kSmallGemm:
      return "small GEMM-like";
    case Class::kConv3x3:
      return "3x3 convolution";
    case Class::kConvOther:
      return "other convolution";
    case Class::kDepthwise:
      return "depthwise";
    case Class::kMatMul:
      return "matmul";
  }
  return "unknown";
}

// Linear layers and 1x1 convolutions are GEMMs. Large: enough work for dispatch not to matter, and
// enough rows for weights to be reused; one-row layers are bound by memory.
Class class_of(const Row& row) {
  constexpr double kLargeFlops = 2e7;
  constexpr int64_t kLargeRows = 16;
  const OperatorShape& s = row.shape.shape;
  if (s.family == Family::kDepthwise) return Class::kDepthwise;
  if (s.family == Family::kMatMul) return Class::kMatMul;
  const bool gemm = s.family == Family::kLinear || (s.kernel == Size2{1, 1} && s.groups == 1);
  if (gemm) {
    const int64_t rows = s.n * (s.h / s.stride[0]) * (s.w / s.stride[1]);
    return row.flops >= kLargeFlops && rows >= kLargeRows ? Class::kLargeGemm : Class::kSmallGemm;
  }
  return s.kernel == Size2{3, 3} && s.groups == 1 ? Class::kConv3x3 : Class::kConvOther;
}

// The share of the yardstick's speed that a lane should reach: CPU lanes of the better library,
// OpenCL lanes of oneDNN.
std::optional<double> target_of(LaneKind lane, Class c) {
  if (lane == LaneKind::kCpu) return 0.85;
  if (c == Class::kLargeGemm) return 0.80;
  if (c == Class::kConv3x3) return 0.60;
  return std::nullopt;
}

const Contender* find(const Row& row, const std::string& lane, Role role) {
  for (const Contender& contender : row.contenders) {
    if (contender.lane == lane && contender.role == role) return &contender;
  }
  return nullptr;
}

// Time of what the lane is measured against; nothing if no library has the operator.
std::optional<double> yardstick_us(const Row& row, const LaneInfo& lane) {
  const Contender* onednn = find(row, lane.name, Role::kOneDnn);
  const Contender* xnnpack = find(row, lane.name, Role::kXnnpack);
  if (lane.kind == LaneKind::kOpenCl || xnnpack == nullptr) {
    if (onednn == nullptr) return std::nullopt;
    return onednn->median_us();
  }
  if (onednn == nullptr) return xnnpack->median_us();
  return std::min(onednn->median_us(), xnnpack->median_us());
}

// Over the shapes of one class, each counted as often as the networks have it.
struct ClassSummary {
  std::string lane;
  Class shape_class = Class::kLargeGemm;
  int shapes = 0;
  double share = 0;         // of the yardstick's speed, over the time of all
  double median_share = 0;  // of single shapes
  double worst_share = 0;
  double gflops = 0;
  std::string worst_shape;
  std::optional<double> target;
};

std::optional<ClassSummary> summarize_class(const std::vector<Row>& rows, const LaneInfo& lane,
                                            Class shape_class) {
  ClassSummary summary;
  summary.lane = lane.name;
  summary.shape_class = shape_class;
  summary.target = target_of(lane.kind, shape_class);
  std::vector<double> shares;
  double lane_us = 0;
  double base_us = 0;
  double flops = 0;
  for (const Row& row : rows) {
    if (class_of(row) != shape_class) continue;
    const std::optional<double> base = yardstick_us(row, lane);
    if (!base) continue;
    const double us = find(row, lane.name, Role::kLane)->median_us();
    lane_us += row.shape.count * us;
    base_us += row.shape.count * *base;
    flops += row.shape.count * row.flops;
    if (shares.empty() || *base / us < summary.worst_share) {
      summary.worst_share = *base / us;
      summary.worst_shape = to_string(row.shape.shape);
    }
    shares.push_back(*base / us);
  }
  if (shares.empty()) return std::nullopt;
  summary.shapes = static_cast<int>(shares.size());
  summary.share = base_us / lane_us;
  summary.median_share = summarize(shares).median;
  summary.gflops = flops / lane_us / 1e3;
  return summary;
}

std::vector<ClassSummary> summarize_all(const std::vector<Row>& rows,
                                        const std::vector<Site>& sites) {
  std::vector<ClassSummary> summaries;
  for (const Site& site : sites) {
    for (const Class c : {Class::kLargeGemm, Class::kSmallGemm, Class::kConv3x3, Class::kConvOther,
                          Class::kDepthwise, Class::kMatMul}) {
      const std::optional<ClassSummary> summary = summarize_class(rows, site.lane->info(), c);
      if (summary) summaries.push_back(*summary);
    }
  }
  return summaries;
}

// --- reports ---

nlohmann::json row_json(const Row& row) {
  nlohmann::json json = {{"file", row.file},
                         {"shape", to_string(row.shape.shape)},
                         {"class", to_string(class_of(row))},
                         {"count", row.shape.count},
                         {"gflop", row.flops / 1e9},
                         {"results", nlohmann::json::array()}};
  for (const Contender& contender : row.contenders) {
    const Summary time = contender.samples_us.summary();
    json["results"].push_back({{"lane", contender.lane},
                               {"role", to_string(contender.role)},
                               {"implementation", contender.detail},
                               {"gflops", row.gflops(contender)},
                               {"median_us", time.median},
                               {"p90_us", time.p90},
                               {"spread", time.spread},
                               {"samples", time.count},
                               {"dropped", contender.samples_us.dropped()}});
  }
  return json;
}

nlohmann::json summary_json(const ClassSummary& summary) {
  nlohmann::json json = {{"lane", summary.lane},
                         {"class", to_string(summary.shape_class)},
                         {"shapes", summary.shapes},
                         {"gflops", summary.gflops},
                         {"share", summary.share},
                         {"median_share", summary.median_share},
                         {"worst_share", summary.worst_share},
                         {"worst_shape", summary.worst_shape}};
  if (summary.target) {
    json["target"] = *summary.target;
    json["reached"] = summary.share >= *summary.target;
  }
  return json;
}

void print_row(const Row& row, const std::vector<Site>& sites) {
  fmt::print("{} (x{}, {:.3f} GFLOP)\n", to_string(row.shape.shape), row.shape.count,
             row.flops / 1e9);
  for (const Site& site : sites) {
    const LaneInfo& lane = site.lane->info();
    const std::optional<double> base = yardstick_us(row, lane);
    for (const Contender& contender : row.contenders) {
      if (contender.lane != lane.name) continue;
      std::string line =
          fmt::format("  {:8} {:14} {:7.1f} GFLOPS {:10.1f} us", contender.lane,
                      to_string(contender.role), row.gflops(contender), contender.median_us());
      if (base && (contender.role == Role::kLane || contender.role == Role::kImplementation)) {
        line += fmt::format("  {:5.2f}", *base / contender.median_us());
      } else {
        line += "       ";
      }
      fmt::print("{}  {}\n", line, contender.detail);
    }
  }
}

void print_summary(const std::vector<ClassSummary>& summaries) {
  fmt::print(
      "\nshare of the yardstick's speed (CPU lanes: the better of oneDNN and XNNPACK; OpenCL "
      "lanes: oneDNN; same cores):\n{:8} {:18} {:>6} {:>8} {:>7} {:>7} {:>7} {:>7}\n",
      "lane", "class", "shapes", "GFLOPS", "overall", "median", "worst", "target");
  for (const ClassSummary& s : summaries) {
    const std::string target =
        s.target ? fmt::format("{:.2f} {}", *s.target, s.share >= *s.target ? "ok" : "MISSED")
                 : "-";
    fmt::print("{:8} {:18} {:6} {:8.1f} {:7.2f} {:7.2f} {:7.2f} {:>7}   worst: {}\n", s.lane,
               to_string(s.shape_class), s.shapes, s.gflops, s.share, s.median_share, s.worst_share,
               target, s.worst_shape);
  }
}

StatusOr<std::vector<CountedShape>> read_shapes(const std::string& path) {
  if (std::filesystem::is_directory(path)) return not_found(path + " is a folder");
  std::ifstream file(path, std::ios::binary);
  if (!file) return not_found(fmt::format("cannot open {}: {}", path, std::strerror(errno)));
  const std::string text(std::istreambuf_iterator<char>(file), {});
  if (file.bad()) return not_found("cannot read " + path);
  return parse_csv(text, path);
}

}  // namespace

Status bench_op(const BenchOpFlags& flags) {
  const Conditions conditions;
  std::vector<std::pair<std::string, CountedShape>> shapes;
  for (const std::string& file : flags.files) {
    TANDEM_ASSIGN_OR_RETURN(const std::vector<CountedShape> found, read_shapes(file));
    for (const CountedShape& shape : found) shapes.emplace_back(file, shape);
  }

  TANDEM_ASSIGN_OR_RETURN(const std::shared_ptr<Platform> platform,
                          create_platform(flags.platform));
  TANDEM_ASSIGN_OR_RETURN(const std::shared_ptr<LaneCrew> crew, LaneCrew::of(platform));
  constexpr std::chrono::seconds kPatience{60};
  TANDEM_ASSIGN_OR_RETURN(const LaneCrew::Lease lease,
                          LaneCrew::acquire(crew, Clock::now() + kPatience));
  std::vector<Site> sites;
  std::vector<int> cores;
  for (size_t i = 0; i < crew->lanes().size(); ++i) {
    TANDEM_ASSIGN_OR_RETURN(Site site, make_site(*crew, static_cast<int>(i)));
    const std::vector<int>& of_lane = site.lane->info().cores;
    cores.insert(cores.end(), of_lane.begin(), of_lane.end());
    sites.push_back(std::move(site));
  }

  const Probe before = probe(cores);
  std::vector<Row> rows;
  {
    Progress progress("timing shapes", static_cast<int>(shapes.size()));
    for (const auto& [file, shape] : shapes) {
      TANDEM_ASSIGN_OR_RETURN(const Graph graph, graph_of(shape.shape));
      const double flops = work_of(graph, 0).flops;
      if (flops >= flags.least_gflop * 1e9) {
        StatusOr<Row> row = measure_shape(sites, file, shape, graph, flags);
        if (!row.ok()) return row.status().with_context(to_string(shape.shape));
        rows.push_back(*std::move(row));
      }
      progress.step();
    }
  }
  const Probe after = probe(cores);

  const std::vector<ClassSummary> summaries = summarize_all(rows, sites);
  if (flags.json) {
    nlohmann::json report = {{"conditions", conditions.to_json(*platform)},
                             {"probe_before", to_json(before)},
                             {"probe_after", to_json(after)},
                             {"shapes", nlohmann::json::array()},
                             {"summary", nlohmann::json::array()}};
    for (const Row& row : rows) report["shapes"].push_back(row_json(row));
    for (const ClassSummary& summary : summaries) {
      report["summary"].push_back(summary_json(summary));
    }
    fmt::print("{}\n", report.dump(2));
    return {};
  }
  for (const Row& row : rows) print_row(row, sites);
  print_summary(summaries);
  fmt::print("probe before: {}\nprobe after:  {}\n{}", to_text(before), to_text(after),
             conditions.to_text(*platform));
  return {};
}

}  // namespace tandem::cli
