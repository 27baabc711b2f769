#include "lane/cpu/cpu_lane.h"

#include <dnnl.h>
#include <omp.h>
#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <fstream>
#include <new>
#include <thread>
#include <utility>

#include "lane/cpu/kernel.h"
#include "lane/cpu/team_size.h"

namespace tandem {
namespace {

using cpu::Problem;

class CpuTask : public Task {
 public:
  CpuTask(std::unique_ptr<cpu::Kernel> kernel, ImplementationInfo info, int threads)
      : kernel_(std::move(kernel)), info_(std::move(info)), threads_(threads) {}

  Status launch() override {
    const cpu::TeamSize team(threads_);
    return kernel_->run();
  }
  const ImplementationInfo& info() const override { return info_; }

 private:
  std::unique_ptr<cpu::Kernel> kernel_;
  ImplementationInfo info_;
  int threads_;
};

// The result of `f`, a StatusOr. Memory for weights and scratch is what can run out on the way.
template <typename F>
auto without_exceptions(const std::string& what, F f) -> decltype(f()) {
  try {
    return f();
  } catch (const std::bad_alloc&) {
    return resource_exhausted("out of memory while " + what + "; use a smaller model or batch");
  } catch (const std::exception& error) {
    return internal_error("while " + what + ": " + error.what());
  }
}

class CpuProgram : public LaneProgram {
 public:
  CpuProgram(const Graph& graph, const TensorBindings& bindings, int max_threads,
             cpu::ShapeMemo& memo)
      : graph_(graph), bindings_(bindings), max_threads_(max_threads), memo_(memo) {}

  StatusOr<std::unique_ptr<Task>> bind(const Slice& slice, int threads) override {
    return without_exceptions(doing("preparing", slice), [&] { return prepare(slice, threads); });
  }

  StatusOr<ImplementationInfo> implementation(const Slice& slice, int threads) const override {
    return without_exceptions(doing("choosing an implementation of", slice),
                              [&] { return info_of(slice, threads); });
  }

  size_t bytes() const override { return resources_.bytes(); }

 private:
  // By number: the slice may name an operator that does not exist.
  std::string doing(const std::string& what, const Slice& slice) const {
    return what + " operator " + std::to_string(slice.op) + " of graph " + graph_.name;
  }

  StatusOr<std::unique_ptr<Task>> prepare(const Slice& slice, int threads) {
    TANDEM_ASSIGN_OR_RETURN(const Problem problem, problem_of(slice, threads));
    const cpu::TeamSize team(problem.threads);
    TANDEM_ASSIGN_OR_RETURN(const cpu::Implementation* implementation, choose(problem));
    StatusOr<std::unique_ptr<cpu::Kernel>> kernel = implementation->prepare(problem, resources_);
    if (!kernel.ok()) {
      return kernel.status().with_context("preparing " + to_string(graph_, slice) + " as " +
                                          implementation->name());
    }
    return std::unique_ptr<Task>(std::make_unique<CpuTask>(
        std::move(kernel).value(), describe(*implementation, problem), problem.threads));
  }

  StatusOr<ImplementationInfo> info_of(const Slice& slice, int threads) const {
    TANDEM_ASSIGN_OR_RETURN(const Problem problem, problem_of(slice, threads));
    const cpu::TeamSize team(problem.threads);
    TANDEM_ASSIGN_OR_RETURN(const cpu::Implementation* implementation, choose(problem));
    return describe(*implementation, problem);
  }

  StatusOr<Problem> problem_of(const Slice& slice, int threads) const {
    TANDEM_RETURN_IF_ERROR(check_slice(graph_, slice));
    Problem p;
    p.graph = &graph_;
    p.op = &graph_.op(slice.op);
    p.slice = slice;
    p.region = output_region(graph_, slice);
    p.threads = threads <= 0 ? max_threads_ : std::min(threads, max_threads_);
    p.memo = &memo_;
    for (const TensorId id : p.op->inputs) {
      TANDEM_ASSIGN_OR_RETURN(TensorView view, view_of_input(id));
      p.inputs.push_back(std::move(view));
    }
    p.output = bindings_[p.op->output];
    if (p.output.data == nullptr) {
      return failed_precondition(p.op->name + ": its output is not bound to memory; bind tensor " +
                                 graph_.tensor(p.op->output).name);
    }
    return p;
  }

  StatusOr<TensorView> view_of_input(TensorId id) const {
    const TensorView& bound = bindings_[id];
    if (bound.data != nullptr) return bound;
    const Tensor& tensor = graph_.tensor(id);
    if (tensor.kind != TensorKind::kConstant || tensor.value == nullptr) {
      return failed_precondition("tensor " + tensor.name + " is not bound to memory");
    }
    // Kernels write no input: the cast only fits the value into a view.
    auto* data = const_cast<std::byte*>(tensor.value->bytes.data());
    return TensorView{tensor.type, tensor.dims, strides_of(tensor.dims, {Order::kRowMajor, false}),
                      data};
  }

  static StatusOr<const cpu::Implementation*> choose(const Problem& p) {
    std::string reasons;
    for (const cpu::Implementation* implementation : cpu::candidates(p)) {
      const Status status = implementation->supports(p);
      if (status.ok()) return implementation;
      reasons += std::string("\n  ") + implementation->name() + ": " + status.message();
    }
    return unsupported("the CPU lane has no implementation for " + to_string(*p.graph, p.slice) +
                       " (" + to_string(p.op->kind()) + "):" + reasons);
  }

  static ImplementationInfo describe(const cpu::Implementation& implementation, const Problem& p) {
    ImplementationInfo info;
    info.name = implementation.name();
    info.threads = p.threads;
    implementation.describe(p, info);
    return info;
  }

  const Graph& graph_;
  const TensorBindings bindings_;
  const int max_threads_;
  cpu::ShapeMemo& memo_;
  cpu::Resources resources_;
};

std::string processor_model() {
  std::ifstream cpuinfo("/proc/cpuinfo");
  for (std::string line; std::getline(cpuinfo, line);) {
    if (line.starts_with("model name") || line.starts_with("Model")) {
      const size_t colon = line.find(": ");
      if (colon != std::string::npos) return line.substr(colon + 2);
    }
  }
  return "unknown processor";
}

std::string library_versions() {
  const dnnl_version_t* v = dnnl_version();
  return "oneDNN " + std::to_string(v->major) + "." + std::to_string(v->minor) + "." +
         std::to_string(v->patch);
}

cpu_set_t set_of(const std::vector<int>& cores) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int core : cores) CPU_SET(core, &set);
  return set;
}

// Whether a thread of this process can run on `core`. Tried on a thread of its own, since the
// calling one may have been confined to other cores.
bool may_use(int core) {
  if (core < 0 || core >= CPU_SETSIZE) return false;
  bool usable = false;
  std::thread([&] {
    const cpu_set_t set = set_of({core});
    usable = pthread_setaffinity_np(pthread_self(), sizeof(set), &set) == 0;
  }).join();
  return usable;
}

class CpuLane : public Lane {
 public:
  explicit CpuLane(const CpuLaneOptions& options) {
    info_.name = options.name;
    info_.kind = LaneKind::kCpu;
    info_.cores = options.cores;
    info_.max_threads = static_cast<int>(options.cores.size());
    info_.description = processor_model() + ", " + std::to_string(options.cores.size()) +
                        " threads, " + library_versions();
    info_.fingerprint = info_.description;
  }

  const LaneInfo& info() const override { return info_; }

  // Workers of OpenMP inherit the mask of the thread that first calls for them; the first team is
  // made here, at full size, and each member then keeps to a core of its own.
  Status enter() override {
    if (Status status = pin(info_.cores); !status.ok()) return status;
    std::vector<int> failures(info_.max_threads, 0);
#pragma omp parallel num_threads(info_.max_threads)
    {
      const int index = omp_get_thread_num();
      failures[index] = !pin({info_.cores[index]}).ok();
    }
    if (std::count(failures.begin(), failures.end(), 0) == info_.max_threads) return {};
    return device_error("lane " + info_.name + ": its threads could not be pinned to its cores");
  }

  StatusOr<std::unique_ptr<LaneProgram>> load(const Graph& graph,
                                              const TensorBindings& bindings) override {
    if (bindings.views.size() != graph.tensors().size()) {
      return invalid_argument("graph " + graph.name + ": bindings for " +
                              std::to_string(bindings.views.size()) + " of its " +
                              std::to_string(graph.tensors().size()) + " tensors");
    }
    return std::unique_ptr<LaneProgram>(
        std::make_unique<CpuProgram>(graph, bindings, info_.max_threads, memo_));
  }

  Status drain(std::chrono::steady_clock::time_point) override { return {}; }

 private:
  Status pin(const std::vector<int>& cores) const {
    const cpu_set_t set = set_of(cores);
    const int error = pthread_setaffinity_np(pthread_self(), sizeof(set), &set);
    if (error == 0) return {};
    return device_error("lane " + info_.name + ": cannot pin a thread to its cores: " +
                        std::strerror(error) + "; give it cores that this process may use");
  }

  LaneInfo info_;
  cpu::ShapeMemo memo_;
};

}  // namespace

StatusOr<std::unique_ptr<Lane>> make_cpu_lane(const CpuLaneOptions& options) {
  if (options.cores.empty()) {
    return invalid_argument("lane " + options.name + ": no cores; give it at least one");
  }
  std::vector<int> sorted = options.cores;
  std::sort(sorted.begin(), sorted.end());
  if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end()) {
    return invalid_argument("lane " + options.name + ": a core is listed twice");
  }
  for (const int core : sorted) {
    if (!may_use(core)) {
      return invalid_argument("lane " + options.name + ": this process may not use processor " +
                              std::to_string(core) + "; see `taskset -p $$`");
    }
  }
  return std::unique_ptr<Lane>(std::make_unique<CpuLane>(options));
}

}  // namespace tandem
