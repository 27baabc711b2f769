#include "lane/opencl/opencl_program.h"

#include <map>
#include <type_traits>
#include <utility>

#include "fmt/format.h"
#include "lane/opencl/packing.h"
#include "support/clock.h"

namespace tandem::opencl {
namespace {

struct Launch {
  Kernel kernel;
  std::array<size_t, 3> global;
  std::array<size_t, 3> local;

  Status enqueue(CommandQueue& queue) const {
    return check(clEnqueueNDRangeKernel(queue.get(), kernel.get(), 3, nullptr, global.data(),
                                        local.data(), 0, nullptr, queue.event()),
                 "clEnqueueNDRangeKernel");
  }
};

class OpenClTask final : public Task {
 public:
  OpenClTask(CommandQueue& queue, std::string op_name, ImplementationInfo info,
             std::vector<Launch> launches)
      : queue_(queue),
        op_name_(std::move(op_name)),
        info_(std::move(info)),
        launches_(std::move(launches)) {}

  Status launch() override {
    for (const Launch& launch : launches_) {
      if (const Status status = launch.enqueue(queue_); !status.ok()) {
        return status.with_context(fmt::format("launching {} ({})", op_name_, info_.name));
      }
    }
    return {};
  }

  const ImplementationInfo& info() const override { return info_; }

 private:
  CommandQueue& queue_;
  std::string op_name_;
  ImplementationInfo info_;
  std::vector<Launch> launches_;
};

class OpenClProgram final : public LaneProgram {
 public:
  // `mirror` is null where the device works on the host's memory.
  OpenClProgram(LaneImpl* lane, const Graph& graph, const TensorBindings& bindings,
                std::unique_ptr<DeviceMirror> mirror)
      : lane_(lane),
        graph_(graph),
        mirror_(std::move(mirror)),
        bindings_(mirror_ ? mirror_->bindings() : bindings) {}

  StatusOr<std::unique_ptr<Task>> bind(const Slice& slice, int) override {
    const Operator& op = graph_.op(slice.op);
    TANDEM_ASSIGN_OR_RETURN(const SlicePlan plan,
                            plan_slice(graph_, bindings_, slice, lane_->traits()));
    std::vector<Launch> launches;
    bool launched = false;
    for (const KernelPlan& kernel : plan.kernels) {
      StatusOr<Launch> launch = make_launch(op, kernel);
      if (!launch.ok()) return launch.status().with_context("while binding " + op.name);
      // Drivers finish compiling a kernel when it is first launched; better here than in a run.
      if (lane_->is_first_launch(kernel)) {
        const Clock::time_point begin = Clock::now();
        TANDEM_RETURN_IF_ERROR(launch->enqueue(lane_->queue()).with_context(op.name));
        preparation_.warm_us += microseconds(Clock::now() - begin);
        launched = true;
      }
      launches.push_back(std::move(launch).value());
    }
    if (launched) {
      const Clock::time_point begin = Clock::now();
      TANDEM_RETURN_IF_ERROR(
          check(clFinish(lane_->queue().get()), "the first launch of " + op.name));
      preparation_.warm_us += microseconds(Clock::now() - begin);
    }
    return std::unique_ptr<Task>(
        std::make_unique<OpenClTask>(lane_->queue(), op.name, plan.info(), std::move(launches)));
  }

  StatusOr<ImplementationInfo> implementation(const Slice& slice, int) const override {
    TANDEM_ASSIGN_OR_RETURN(const SlicePlan plan,
                            plan_slice(graph_, bindings_, slice, lane_->traits()));
    return plan.info();
  }

  size_t bytes() const override { return bytes_ + (mirror_ ? mirror_->bytes() : 0); }
  PreparationStats preparation() const override { return preparation_; }

  Status enqueue_upload(TensorId tensor, const Region& region) override {
    return mirror_ ? mirror_->enqueue_upload(tensor, region) : Status();
  }
  Status enqueue_download(TensorId tensor, const Region& region) override {
    return mirror_ ? mirror_->enqueue_download(tensor, region) : Status();
  }

 private:
  StatusOr<cl_program> program_of(const KernelPlan& plan) {
    const ProgramCacheStats before = lane_->cache_stats();
    const Clock::time_point begin = Clock::now();
    StatusOr<cl_program> program = lane_->programs().program(plan.files, plan.options);
    preparation_.compile_us += microseconds(Clock::now() - begin);
    preparation_.programs_compiled += lane_->cache_stats().misses - before.misses;
    preparation_.programs_cached += lane_->cache_stats().hits - before.hits;
    return program;
  }

  StatusOr<Launch> make_launch(const Operator& op, const KernelPlan& plan) {
    TANDEM_ASSIGN_OR_RETURN(const cl_program program, program_of(plan));
    Launch launch;
    TANDEM_ASSIGN_OR_RETURN(launch.kernel, make_kernel(program, plan.kernel));
    for (size_t i = 0; i < plan.arguments.size(); ++i) {
      TANDEM_RETURN_IF_ERROR(
          set_argument(launch.kernel.get(), static_cast<cl_uint>(i), plan.arguments[i], op)
              .with_context(plan.kernel));
    }
    launch.local = plan.local;
    for (size_t d = 0; d < 3; ++d) launch.global[d] = plan.groups[d] * plan.local[d];
    return launch;
  }

  Status set_argument(cl_kernel kernel, cl_uint index, const Argument& argument,
                      const Operator& op) {
    const auto set = [&](const auto& a) -> Status {
      using T = std::decay_t<decltype(a)>;
      const std::string what = fmt::format("argument {}", index);
      if constexpr (std::is_same_v<T, SharedArgument>) {
        return set_pointer(kernel, index, a.data);
      } else if constexpr (std::is_same_v<T, PackedArgument>) {
        TANDEM_ASSIGN_OR_RETURN(std::byte* const packed, packed_data(op, a.kind));
        return set_pointer(kernel, index, packed + a.offset * 4);
      } else if constexpr (std::is_same_v<T, LocalArgument>) {
        return check(clSetKernelArg(kernel, index, a.bytes, nullptr), what);
      } else {
        return check(clSetKernelArg(kernel, index, a.bytes.size(), a.bytes.data()), what);
      }
    };
    return std::visit(set, argument);
  }

  static Status set_pointer(cl_kernel kernel, cl_uint index, void* pointer) {
    // A null pointer is for kernels that do not look at it.
    return check(pointer ? clSetKernelArgSVMPointer(kernel, index, pointer)
                         : clSetKernelArg(kernel, index, sizeof(cl_mem), nullptr),
                 fmt::format("argument {}", index));
  }

  StatusOr<std::byte*> packed_data(const Operator& op, PackedKind kind) {
    std::shared_ptr<std::byte>& data = packed_[{&op, kind}];
    if (!data) {
      const std::vector<std::byte> content = pack(graph_, op, kind);
      TANDEM_ASSIGN_OR_RETURN(data, lane_->upload(content));
      bytes_ += content.size();
    }
    return data.get();
  }

  LaneImpl* lane_;
  const Graph& graph_;
  const std::unique_ptr<DeviceMirror> mirror_;
  const TensorBindings bindings_;  // as kernels see them
  std::map<std::pair<const Operator*, PackedKind>, std::shared_ptr<std::byte>> packed_;
  size_t bytes_ = 0;
  PreparationStats preparation_;
};

}  // namespace

StatusOr<std::unique_ptr<LaneProgram>> make_program(LaneImpl* lane, const Graph& graph,
                                                    const TensorBindings& bindings) {
  std::unique_ptr<DeviceMirror> mirror;
  if (computes_on_own_memory(*lane)) {
    TANDEM_ASSIGN_OR_RETURN(mirror, DeviceMirror::create(lane->context(), lane->queue(),
                                                         lane->copy_method(), graph, bindings));
  }
  return std::unique_ptr<LaneProgram>(
      std::make_unique<OpenClProgram>(lane, graph, bindings, std::move(mirror)));
}

}  // namespace tandem::opencl
