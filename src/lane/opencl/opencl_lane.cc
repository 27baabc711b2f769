#include "lane/opencl/opencl_lane.h"

#include <algorithm>
#include <climits>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <thread>

#include "fmt/format.h"
#include "fmt/ranges.h"
#include "lane/opencl/embedded_kernels.h"
#include "lane/opencl/opencl_lane_impl.h"
#include "lane/opencl/opencl_program.h"
#include "support/clock.h"
#include "support/digest.h"

namespace tandem::opencl {
namespace {

// A point in the queue, waited for without spinning: OpenCL itself has no wait with a deadline.
class QueueEvent final : public DeviceEvent {
 public:
  static StatusOr<std::unique_ptr<DeviceEvent>> enqueue(CommandQueue& queue) {
    cl_event handle = nullptr;
    TANDEM_RETURN_IF_ERROR(check(clEnqueueMarkerWithWaitList(queue.get(), 0, nullptr, &handle),
                                 "clEnqueueMarkerWithWaitList"));
    auto event = std::make_unique<QueueEvent>();
    event->event_ = Event(handle);
    TANDEM_RETURN_IF_ERROR(queue.keep(handle));
    // The callback may come after this object is gone.
    auto* shared = new std::shared_ptr<State>(event->state_);
    const cl_int code = clSetEventCallback(handle, CL_COMPLETE, &QueueEvent::completed, shared);
    if (code != CL_SUCCESS) {
      delete shared;
      return check(code, "clSetEventCallback");
    }
    return std::unique_ptr<DeviceEvent>(std::move(event));
  }

  Status wait(std::chrono::steady_clock::time_point deadline) override {
    std::unique_lock<std::mutex> lock(state_->mutex);
    if (!state_->changed.wait_until(lock, deadline, [this] { return state_->passed; })) {
      return deadline_exceeded("the OpenCL queue did not get to the awaited point in time");
    }
    if (state_->result < 0) return check(state_->result, "a command in the OpenCL queue");
    return {};
  }

  // Asks the driver, which knows earlier than callbacks tell.
  StatusOr<bool> passed() const override {
    cl_int status = CL_QUEUED;
    TANDEM_RETURN_IF_ERROR(check(clGetEventInfo(event_.get(), CL_EVENT_COMMAND_EXECUTION_STATUS,
                                                sizeof(status), &status, nullptr),
                                 "clGetEventInfo"));
    if (status < 0) return check(status, "a command in the OpenCL queue");
    return status == CL_COMPLETE;
  }

 private:
  struct State {
    std::mutex mutex;
    std::condition_variable changed;
    bool passed = false;
    cl_int result = CL_COMPLETE;
  };

  static void CL_CALLBACK completed(cl_event, cl_int result, void* data) {
    const std::unique_ptr<std::shared_ptr<State>> state(static_cast<std::shared_ptr<State>*>(data));
    const std::lock_guard<std::mutex> lock((*state)->mutex);
    (*state)->passed = true;
    (*state)->result = result;
    (*state)->changed.notify_all();
  }

  Event event_;
  std::shared_ptr<State> state_ = std::make_shared<State>();
};

// A user event that a barrier in the queue waits for.
class UserEvent final : public HostEvent {
 public:
  static StatusOr<std::unique_ptr<HostEvent>> enqueue(cl_context context, CommandQueue& queue) {
    cl_int code = CL_SUCCESS;
    auto event = std::make_unique<UserEvent>();
    event->event_ = Event(clCreateUserEvent(context, &code));
    TANDEM_RETURN_IF_ERROR(check(code, "clCreateUserEvent"));
    const cl_event handle = event->event_.get();
    TANDEM_RETURN_IF_ERROR(
        check(clEnqueueBarrierWithWaitList(queue.get(), 1, &handle, queue.event()),
              "clEnqueueBarrierWithWaitList"));
    return std::unique_ptr<HostEvent>(std::move(event));
  }

  // A queue must not wait for ever for an event that nobody can set any more.
  ~UserEvent() override { abandon(); }

  Status set() override {
    if (done_.exchange(true)) return {};
    return check(clSetUserEventStatus(event_.get(), CL_COMPLETE), "clSetUserEventStatus");
  }

  // By completing it: what a driver does behind a failed event differs, down to queues that are of
  // no use afterwards. The kernels behind it run on whatever memory holds, and the run is
  // discarded.
  void abandon() override {
    if (event_.get() && !done_.exchange(true)) clSetUserEventStatus(event_.get(), CL_COMPLETE);
  }

 private:
  Event event_;
  std::atomic<bool> done_ = false;
};

std::vector<int> allowed_cores() {
  cpu_set_t mask;
  std::vector<int> cores;
  if (sched_getaffinity(0, sizeof(mask), &mask) != 0) return cores;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &mask)) cores.push_back(core);
  }
  return cores;
}

std::string kernels_digest() {
  std::string all;
  for (const auto& [name, source] : embedded_kernels()) all += source;
  return digest(all);
}

}  // namespace

StatusOr<std::unique_ptr<LaneImpl>> LaneImpl::create(const OpenClLaneOptions& options) {
  TANDEM_ASSIGN_OR_RETURN(Device device, open_device(options.device, options.cores));
  std::unique_ptr<LaneImpl> lane(new LaneImpl(std::move(device)));
  TANDEM_RETURN_IF_ERROR(lane->start(options));
  return lane;
}

Status LaneImpl::start(const OpenClLaneOptions& options) {
  const OpenClDeviceSummary& summary = device_.summary;
  if (summary.shared_memory == SharedMemoryKind::kNone) {
    return unsupported(fmt::format(
        "{} has no shared virtual memory, and Tandem needs at least the coarse-grained kind: "
        "choose another device, or run on CPU lanes",
        summary.device));
  }
  memory_ =
      options.memory == OpenClMemory::kCoarse ? SharedMemoryKind::kCoarse : summary.shared_memory;
  cl_int code = CL_SUCCESS;
  context_ = Context(clCreateContext(nullptr, 1, &device_.id, nullptr, nullptr, &code));
  TANDEM_RETURN_IF_ERROR(check(code, "clCreateContext"));
  TANDEM_ASSIGN_OR_RETURN(queue_, CommandQueue::create(context_.get(), device_.id));
  programs_ = std::make_unique<ProgramCache>(context_.get(), device_, options.program_cache_dir);

  info_.name = options.name;
  info_.kind = LaneKind::kOpenCl;
  info_.description =
      fmt::format("{}, {}, driver {}", summary.device, summary.version, summary.driver);
  info_.asynchronous = true;
  traits_.single_item_groups = summary.is_host_cpu;
  traits_.compute_units = summary.compute_units;
  traits_.local_bytes = device_.local_bytes;
  if (!options.winograd) traits_.winograd_outputs = 0;
  if (summary.is_host_cpu) {
    info_.cores = options.cores.empty() ? allowed_cores() : options.cores;
    info_.max_threads = std::min<int>(summary.compute_units, static_cast<int>(info_.cores.size()));
    traits_.compute_units = info_.max_threads;
  }
  info_.device = {.vendor = device_.vendor,
                  .compute_units = traits_.compute_units,
                  .local_bytes = static_cast<int64_t>(device_.local_bytes),
                  .cache_bytes = static_cast<int64_t>(device_.cache_bytes),
                  .max_work_group = static_cast<int64_t>(device_.max_work_group)};
  info_.fingerprint =
      fmt::format("{}; cores {}; kernels {}{}", device_.fingerprint(), fmt::join(info_.cores, ","),
                  kernels_digest(), options.winograd ? "" : "; no Winograd");
  if (computes_on_own_memory(*this)) {
    info_.fingerprint += "; own memory";
    TANDEM_RETURN_IF_ERROR(load_pass_on());
    TANDEM_ASSIGN_OR_RETURN(copy_method_,
                            choose_copy_method(context_.get(), queue_, pass_on_kernel_.get()));
    return {};
  }
  if (const Status tested = self_test(); !tested.ok()) {
    self_test_warning_ = fmt::format(
        "counters in shared memory cannot be used: {}; lanes "
        "synchronise by events instead",
        tested.message());
  }
  return {};
}

Status LaneImpl::enter() { return info_.cores.empty() ? Status() : pin_this_thread(info_.cores); }

StatusOr<std::unique_ptr<LaneProgram>> LaneImpl::load(const Graph& graph,
                                                      const TensorBindings& bindings) {
  // Kernels count elements in 32 bits.
  for (const TensorView& view : bindings.views) {
    if (element_count(view.dims) > INT_MAX) {
      return unsupported(fmt::format("a tensor of {} elements", element_count(view.dims)));
    }
  }
  return make_program(this, graph, bindings);
}

Status LaneImpl::drain(std::chrono::steady_clock::time_point deadline) {
  TANDEM_ASSIGN_OR_RETURN(const std::unique_ptr<DeviceEvent> end, enqueue_device_event());
  TANDEM_RETURN_IF_ERROR(flush());
  return end->wait(deadline).with_context(info_.name);
}

StatusOr<std::shared_ptr<std::byte>> LaneImpl::allocate(size_t bytes) {
  if (computes_on_own_memory(*this)) {
    return unsupported(fmt::format("{} computes on memory of its own", info_.name));
  }
  cl_svm_mem_flags flags = CL_MEM_READ_WRITE | CL_MEM_SVM_FINE_GRAIN_BUFFER;
  if (shared_memory() == SharedMemoryKind::kFineAtomics) flags |= CL_MEM_SVM_ATOMICS;
  const size_t whole = std::max<size_t>(64, bytes);
  if (device_.allocation_bytes > 0 && whole > device_.allocation_bytes) {
    return resource_exhausted(
        fmt::format("lane {} needs {} MB in one piece, and {} allocates at most {} MB", info_.name,
                    whole >> 20, device_.summary.device, device_.allocation_bytes >> 20));
  }
  void* memory = clSVMAlloc(context_.get(), flags, whole, 64);
  if (!memory) {
    return resource_exhausted(
        fmt::format("lane {} needs {} bytes in one piece, and {} has no such memory left to share",
                    info_.name, whole, device_.summary.device));
  }
  std::memset(memory, 0, whole);
  return std::shared_ptr<std::byte>(
      static_cast<std::byte*>(memory),
      [context = context_.get()](std::byte* p) { clSVMFree(context, p); });
}

StatusOr<std::shared_ptr<std::byte>> LaneImpl::upload(const std::vector<std::byte>& content) {
  if (!computes_on_own_memory(*this)) {
    TANDEM_ASSIGN_OR_RETURN(std::shared_ptr<std::byte> memory, allocate(content.size()));
    std::memcpy(memory.get(), content.data(), content.size());
    return memory;
  }
  TANDEM_ASSIGN_OR_RETURN(
      const DeviceBlock block,
      DeviceBlock::create(context_.get(), queue_, content.size(), CopyMethod::kRows));
  const auto bytes = static_cast<int64_t>(content.size());
  TANDEM_RETURN_IF_ERROR(block.enqueue_upload(queue_, content.data(), 0,
                                              {.bytes = bytes, .count = 1, .pitch = bytes}));
  TANDEM_RETURN_IF_ERROR(check(clFinish(queue_.get()), "clFinish after a copy to the device"));
  return block.memory();
}

Status LaneImpl::load_pass_on() {
  if (pass_on_kernel_.get()) return {};
  TANDEM_ASSIGN_OR_RETURN(const cl_program program, programs_->program({"pass_on.cl"}, ""));
  // For enqueue_nothing(), since not all drivers take null pointers, even where nothing is read.
  // Nothing here may wait for the queue.
  constexpr size_t kLittle = 64;
  void* memory = clSVMAlloc(context_.get(), CL_MEM_READ_WRITE, kLittle, 0);
  if (!memory) return resource_exhausted(info_.name + " has no memory left");
  nothing_ = std::shared_ptr<std::byte>(
      static_cast<std::byte*>(memory),
      [context = context_.get()](std::byte* p) { clSVMFree(context, p); });
  TANDEM_ASSIGN_OR_RETURN(pass_on_kernel_, make_kernel(program, "pass_on"));
  return {};
}

StatusOr<std::unique_ptr<HostEvent>> LaneImpl::enqueue_host_wait() {
  return UserEvent::enqueue(context_.get(), queue_);
}

StatusOr<std::unique_ptr<DeviceEvent>> LaneImpl::enqueue_device_event() {
  return QueueEvent::enqueue(queue_);
}

Status LaneImpl::enqueue_nothing() {
  TANDEM_RETURN_IF_ERROR(load_pass_on());
  const cl_kernel kernel = pass_on_kernel_.get();
  const cl_int none = 0;
  for (cl_uint pointer : {0, 1}) {
    TANDEM_RETURN_IF_ERROR(
        check(clSetKernelArgSVMPointer(kernel, pointer, nothing_.get()), "pass_on"));
  }
  TANDEM_RETURN_IF_ERROR(check(clSetKernelArg(kernel, 2, sizeof(none), &none), "pass_on"));
  return enqueue_single(queue_, kernel, "pass_on");
}

Status LaneImpl::finish() { return check(clFinish(queue_.get()), "clFinish"); }

Status LaneImpl::flush() { return check(clFlush(queue_.get()), "clFlush"); }

Status LaneImpl::start_recording() { return queue_.start_recording().with_context(info_.name); }

StatusOr<std::vector<CommandTimes>> LaneImpl::stop_recording() { return queue_.stop_recording(); }

const std::vector<std::string>& LaneImpl::warnings() const {
  warnings_ = programs_->warnings();
  if (!self_test_warning_.empty()) warnings_.push_back(self_test_warning_);
  return warnings_;
}

std::vector<std::string> LaneImpl::worker_masks() const {
  return device_.summary.is_host_cpu ? opencl::worker_masks() : std::vector<std::string>();
}

bool LaneImpl::is_first_launch(const KernelPlan& kernel) {
  // PoCL has a variant of its own for grids below 2^16 groups in every dimension.
  const bool small = *std::max_element(kernel.groups.begin(), kernel.groups.end()) < (1u << 16);
  return launched_
      .insert(fmt::format("{} {} {} {}", kernel.files.back(), kernel.kernel, kernel.options, small))
      .second;
}

}  // namespace tandem::opencl

namespace tandem {

StatusOr<std::unique_ptr<OpenClLane>> make_opencl_lane(const OpenClLaneOptions& options) {
  TANDEM_ASSIGN_OR_RETURN(std::unique_ptr<opencl::LaneImpl> lane,
                          opencl::LaneImpl::create(options));
  return std::unique_ptr<OpenClLane>(std::move(lane));
}

}  // namespace tandem
