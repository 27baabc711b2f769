#include "cli/lane_speeds.h"

#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <iterator>

#include "cli/baseline.h"
#include "cli/random_tensor.h"
#include "cli/single_operator.h"
#include "fmt/format.h"
#include "lane/cpu/kernel.h"
#include "lane/cpu/team_size.h"
#include "platform/topology.h"
#include "profile/graph_memory.h"
#include "support/clock.h"

namespace tandem::cli {
namespace {

// Runs `make`, which returns a Status, on the thread.
template <typename Make>
Status on_thread(WorkerThread& thread, Make make) {
  Status outcome;
  thread.run([&] { outcome = make(); });
  return outcome;
}

StatusOr<SpeedContender> lane_contender(const Site& site, const Graph& graph) {
  SpeedContender contender;
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

StatusOr<SpeedContender> baseline_contender(const Site& site, Role role, MakeBaseline make,
                                            const OperatorShape& shape) {
  SpeedContender contender;
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
  GraphMemory memory;
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
StatusOr<std::vector<SpeedContender>> implementation_contenders(const Site& site,
                                                                const Graph& graph) {
  std::vector<SpeedContender> contenders;
  const int threads = site.lane->info().max_threads;
  TANDEM_RETURN_IF_ERROR(on_thread(*site.lane_thread, [&]() -> Status {
    const cpu::TeamSize team(threads);
    TANDEM_ASSIGN_OR_RETURN(const GraphMemory memory,
                            GraphMemory::create(graph, {site.lane}, random_value));
    const cpu::Problem problem = cpu_problem(graph, memory.bindings(), threads);
    for (const cpu::Implementation* implementation : cpu::candidates(problem)) {
      if (!implementation->supports(problem).ok()) continue;
      auto made = std::make_shared<CpuImplementation>();
      made->memory = memory;
      TANDEM_ASSIGN_OR_RETURN(made->kernel, implementation->prepare(problem, made->resources));
      SpeedContender contender;
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

Status sample(SpeedContender& contender, bool keep) {
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
Status measure(std::vector<SpeedContender>& contenders, int samples) {
  for (SpeedContender& contender : contenders) {
    TANDEM_RETURN_IF_ERROR(sample(contender, false));  // cold
    TANDEM_RETURN_IF_ERROR(sample(contender, false));
  }
  for (int i = 0; i < samples; ++i) {
    for (SpeedContender& contender : contenders) TANDEM_RETURN_IF_ERROR(sample(contender, true));
  }
  return {};
}

}  // namespace

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

StatusOr<SpeedRow> measure_speeds(const std::vector<Site>& sites, const std::string& file,
                                  const CountedShape& shape, const Graph& graph,
                                  const SpeedOptions& options) {
  SpeedRow row;
  row.file = file;
  row.shape = shape;
  row.flops = work_of(graph, static_cast<OperatorId>(graph.operators().size()) - 1).flops;
  const auto add = [&row](StatusOr<SpeedContender> contender) -> Status {
    // A library without such an operator is no competitor.
    if (contender.status().code() == StatusCode::kUnsupported) return {};
    TANDEM_RETURN_IF_ERROR(contender.status());
    row.contenders.push_back(*std::move(contender));
    return {};
  };
  for (const Site& site : sites) {
    TANDEM_ASSIGN_OR_RETURN(SpeedContender lane, lane_contender(site, graph));
    row.contenders.push_back(std::move(lane));
    if (site.direct_thread) {
      TANDEM_RETURN_IF_ERROR(
          add(baseline_contender(site, Role::kOneDnn, make_onednn_baseline, shape.shape)));
      TANDEM_RETURN_IF_ERROR(
          add(baseline_contender(site, Role::kXnnpack, make_xnnpack_baseline, shape.shape)));
    }
    if (options.implementations && site.lane->info().kind == LaneKind::kCpu) {
      TANDEM_ASSIGN_OR_RETURN(std::vector<SpeedContender> all,
                              implementation_contenders(site, graph));
      std::move(all.begin(), all.end(), std::back_inserter(row.contenders));
    }
  }
  TANDEM_RETURN_IF_ERROR(measure(row.contenders, options.samples));
  // What they hold is not needed any more, and is much.
  for (SpeedContender& contender : row.contenders) {
    TANDEM_RETURN_IF_ERROR(on_thread(*contender.thread, [&]() -> Status {
      contender.run = nullptr;
      return {};
    }));
  }
  return row;
}

}  // namespace tandem::cli
