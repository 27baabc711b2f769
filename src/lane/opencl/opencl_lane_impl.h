// The OpenCL lane itself, with the traits of its device open to tests.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "lane/opencl/command_queue.h"
#include "lane/opencl/device_memory.h"
#include "lane/opencl/kernel_plan.h"
#include "lane/opencl/opencl_lane.h"
#include "lane/opencl/program_cache.h"

namespace tandem::opencl {

class LaneImpl final : public OpenClLane {
 public:
  static StatusOr<std::unique_ptr<LaneImpl>> create(const OpenClLaneOptions& options);

  const LaneInfo& info() const override { return info_; }
  Status enter() override;
  StatusOr<std::unique_ptr<LaneProgram>> load(const Graph& graph,
                                              const TensorBindings& bindings) override;
  Status drain(std::chrono::steady_clock::time_point deadline) override;

  SharedMemoryKind shared_memory() const override { return memory_; }
  StatusOr<std::shared_ptr<std::byte>> allocate(size_t bytes) override;
  Status enqueue_wait(const ProgressCounter* counter, uint32_t target, std::atomic<uint32_t>* abort,
                      std::chrono::duration<double> patience) override;
  Status enqueue_signal(ProgressCounter* counter, uint32_t value) override;
  StatusOr<std::shared_ptr<std::byte>> allocate_pinned(size_t bytes) override;
  StatusOr<std::unique_ptr<HostEvent>> enqueue_host_wait() override;
  StatusOr<std::unique_ptr<DeviceEvent>> enqueue_device_event() override;
  Status enqueue_nothing() override;
  Status finish() override;
  Status flush() override;
  Status start_recording() override;
  StatusOr<std::vector<CommandTimes>> stop_recording() override;
  size_t recorded() const override { return queue_.recorded(); }
  Status self_test() override;
  Status pinned_self_test() override;

  const std::vector<std::string>& warnings() const override;
  ProgramCacheStats cache_stats() const override { return programs_->stats(); }
  std::vector<std::string> worker_masks() const override;

  const DeviceTraits& traits() const { return traits_; }
  // Tests run the kernels for GPUs on whatever device there is.
  void set_traits(const DeviceTraits& traits) { traits_ = traits; }
  CommandQueue& queue() { return queue_; }
  cl_context context() const { return context_.get(); }
  // Where computes_on_own_memory().
  CopyMethod copy_method() const { return copy_method_; }
  // Memory for kernels with `content` in it, whatever kind of memory the device has.
  StatusOr<std::shared_ptr<std::byte>> upload(const std::vector<std::byte>& content);
  ProgramCache& programs() { return *programs_; }

  // True once for each kernel variant that a driver may specialise at its first launch.
  bool is_first_launch(const KernelPlan& kernel);

 private:
  explicit LaneImpl(Device device) : device_(std::move(device)) {}
  Status start(const OpenClLaneOptions& options);
  Status load_pass_on();

  // --- counters.cc ---
  // The kernels that poll and advance counters, for one kind of memory.
  struct CounterKernels {
    Kernel wait;  // null until load()
    Kernel signal;
    double polls_per_second = 0;  // of `wait`; 0: not measured yet
  };
  // A counter as the kernels take it: a piece of memory, and words from its start.
  struct CounterPlace {
    CounterKernels* kernels = nullptr;
    cl_mem buffer = nullptr;  // null: shared virtual memory at `base`
    const std::byte* base = nullptr;

    cl_long word(const void* address) const {
      return (static_cast<const std::byte*>(address) - base) /
             static_cast<cl_long>(sizeof(cl_uint));
    }
    Status set_base(cl_kernel kernel) const;
  };
  struct PinnedBlock {
    Buffer buffer;
    size_t bytes = 0;
  };
  CounterPlace place_of(const void* counter);
  Status load(CounterKernels* kernels);
  Status enqueue_bounded_wait(const ProgressCounter* counter, uint32_t target,
                              std::atomic<uint32_t>* abort, uint64_t max_polls);
  Status test_counters(CounterKernels* kernels);
  Status pass_messages(const CounterKernels* kernels);
  Status measure_polls(CounterKernels* kernels);
  StatusOr<std::shared_ptr<std::byte>> allocate_counters(const CounterKernels* kernels,
                                                         size_t bytes);

  Device device_;
  SharedMemoryKind memory_ = SharedMemoryKind::kNone;  // that is used
  CopyMethod copy_method_ = CopyMethod::kRectangles;
  DeviceTraits traits_;
  LaneInfo info_;
  Context context_;
  CommandQueue queue_;
  std::unique_ptr<ProgramCache> programs_;
  CounterKernels svm_;
  CounterKernels pinned_;
  Kernel pass_on_kernel_;               // null until load_pass_on()
  std::shared_ptr<std::byte> nothing_;  // for enqueue_nothing(); likewise
  std::mutex pinned_mutex_;
  std::map<const std::byte*, PinnedBlock> pinned_blocks_;  // guarded by pinned_mutex_
  std::set<std::string> launched_;
  std::string self_test_warning_;
  mutable std::vector<std::string> warnings_;
};

}  // namespace tandem::opencl
