// The OpenCL lane itself, with the traits of its device open to tests.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

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
                      uint64_t max_polls) override;
  Status enqueue_signal(ProgressCounter* counter, uint32_t value) override;
  double polls_per_second() const override { return polls_per_second_; }
  StatusOr<std::unique_ptr<HostEvent>> enqueue_host_wait() override;
  StatusOr<std::unique_ptr<DeviceEvent>> enqueue_device_event() override;
  Status flush() override;
  Status self_test() override;

  const std::vector<std::string>& warnings() const override;
  ProgramCacheStats cache_stats() const override { return programs_->stats(); }
  std::vector<std::string> worker_masks() const override;

  const DeviceTraits& traits() const { return traits_; }
  // Tests run the kernels for GPUs on whatever device there is.
  void set_traits(const DeviceTraits& traits) { traits_ = traits; }
  cl_command_queue queue() const { return queue_.get(); }
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
  Status load_sync_kernels();
  Status load_pass_on();
  Status pass_messages();
  Status measure_polls();

  Device device_;
  SharedMemoryKind memory_ = SharedMemoryKind::kNone;  // that is used
  CopyMethod copy_method_ = CopyMethod::kRectangles;
  DeviceTraits traits_;
  LaneInfo info_;
  Context context_;
  Queue queue_;
  std::unique_ptr<ProgramCache> programs_;
  // Null until load_sync_kernels() and load_pass_on().
  Kernel wait_kernel_;
  Kernel signal_kernel_;
  Kernel pass_on_kernel_;
  double polls_per_second_ = 0;
  std::set<std::string> launched_;
  std::string self_test_warning_;
  mutable std::vector<std::string> warnings_;
};

}  // namespace tandem::opencl
