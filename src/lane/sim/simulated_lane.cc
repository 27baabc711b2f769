#include <fmt/format.h>

#include <cstdlib>
#include <cstring>
#include <new>

#include "lane/sim/world.h"

namespace tandem::sim {
namespace {

class SimulatedTask : public Task {
 public:
  SimulatedTask(World& world, int lane, const Workload& work, int threads)
      : world_(world),
        lane_(lane),
        work_(work),
        threads_(threads),
        info_(slice_time(world.model(), lane, work, threads).implementation) {}

  Status launch() override {
    world_.run(lane_, work_, threads_, this);
    return {};
  }
  const ImplementationInfo& info() const override { return info_; }

 private:
  World& world_;
  const int lane_;
  const Workload work_;
  const int threads_;
  const ImplementationInfo info_;
};

class SimulatedProgram : public LaneProgram {
 public:
  SimulatedProgram(const Graph& graph, World& world, int lane, bool copies)
      : graph_(graph), world_(world), lane_(lane), copies_(copies) {}

  StatusOr<std::unique_ptr<Task>> bind(const Slice& slice, int threads) override {
    TANDEM_RETURN_IF_ERROR(check_slice(graph_, slice));
    return std::unique_ptr<Task>(
        std::make_unique<SimulatedTask>(world_, lane_, workload_of(graph_, slice), threads));
  }
  StatusOr<ImplementationInfo> implementation(const Slice& slice, int threads) const override {
    TANDEM_RETURN_IF_ERROR(check_slice(graph_, slice));
    return slice_time(world_.model(), lane_, workload_of(graph_, slice), threads).implementation;
  }
  size_t bytes() const override { return 0; }

  Status enqueue_upload(TensorId tensor, const Region& region) override {
    return copy(tensor, region);
  }
  Status enqueue_download(TensorId tensor, const Region& region) override {
    return copy(tensor, region);
  }

 private:
  Status copy(TensorId tensor, const Region& region) {
    if (!copies_) return {};
    auto bytes = static_cast<double>(element_size(graph_.tensor(tensor).type));
    for (const Range& range : region) bytes *= static_cast<double>(range.size());
    world_.copy(lane_, bytes);
    return {};
  }

  const Graph& graph_;
  World& world_;
  const int lane_;
  const bool copies_;
};

SharedMemoryKind kind_of(SharedMemory memory) {
  switch (memory) {
    case SharedMemory::kNone:
      return SharedMemoryKind::kNone;
    case SharedMemory::kCoarse:
      return SharedMemoryKind::kCoarse;
    case SharedMemory::kFine:
      return SharedMemoryKind::kFine;
    case SharedMemory::kFineAtomics:
      break;
  }
  return SharedMemoryKind::kFineAtomics;
}

std::string describe(const PlatformModel& model, const LaneSpec& spec) {
  if (spec.cores.empty()) return model.gpu.name;
  std::string text;
  for (const CoreGroup& group : spec.cores) {
    const Cluster& cluster = model.clusters[group.cluster];
    if (!text.empty()) text += " + ";
    text += fmt::format("{} x {} at {:.0f} MHz", group.cores, cluster.core, cluster.mhz);
  }
  return text;
}

LaneInfo info_of(const PlatformModel& model, int lane) {
  const LaneSpec& spec = model.lanes[lane];
  LaneInfo info;
  info.name = spec.name;
  info.kind = LaneKind::kSimulated;
  const std::string what = describe(model, spec);
  info.description =
      fmt::format("SIMULATED {} of {}, kernels of {}", what, model.name, model.runtime_name);
  info.fingerprint = fmt::format("simulated {} {} {}", model.digest, spec.name, what);
  info.device.vendor = "simulated " + what;
  if (spec.cores.empty()) {
    info.asynchronous = true;
    info.device.compute_units = model.gpu.compute_units;
    info.device.cache_bytes = static_cast<int64_t>(model.gpu.l2_kib * 1024);
    info.device.max_work_group = model.gpu.max_work_group;
  } else {
    info.max_threads = core_count(spec.cores);
    info.device.compute_units = info.max_threads;
    info.device.cache_bytes =
        static_cast<int64_t>(model.clusters[spec.cores[0].cluster].l2_kib * 1024);
  }
  return info;
}

class CpuLane final : public Lane, public SimulatedLane {
 public:
  CpuLane(std::shared_ptr<World> world, int lane)
      : world_(std::move(world)), index_(lane), info_(info_of(world_->model(), lane)) {}

  const LaneInfo& info() const override { return info_; }
  Status enter() override { return {}; }
  StatusOr<std::unique_ptr<LaneProgram>> load(const Graph& graph,
                                              const TensorBindings& /*bindings*/) override {
    return std::unique_ptr<LaneProgram>(
        std::make_unique<SimulatedProgram>(graph, *world_, index_, false));
  }
  Status drain(std::chrono::steady_clock::time_point /*deadline*/) override { return {}; }
  World& world() const override { return *world_; }
  int index() const override { return index_; }

 private:
  const std::shared_ptr<World> world_;
  const int index_;
  const LaneInfo info_;
};

class GpuLane final : public QueueLane, public SimulatedLane {
 public:
  GpuLane(std::shared_ptr<World> world, int lane)
      : world_(std::move(world)), index_(lane), info_(info_of(world_->model(), lane)) {}

  const LaneInfo& info() const override { return info_; }
  Status enter() override { return {}; }
  StatusOr<std::unique_ptr<LaneProgram>> load(const Graph& graph,
                                              const TensorBindings& /*bindings*/) override {
    return std::unique_ptr<LaneProgram>(
        std::make_unique<SimulatedProgram>(graph, *world_, index_, computes_on_own_memory(*this)));
  }
  Status drain(std::chrono::steady_clock::time_point /*deadline*/) override { return {}; }
  World& world() const override { return *world_; }
  int index() const override { return index_; }

  SharedMemoryKind shared_memory() const override {
    return kind_of(world_->model().sync.shared_memory);
  }
  StatusOr<std::shared_ptr<std::byte>> allocate(size_t bytes) override {
    if (computes_on_own_memory(*this)) {
      return unsupported(info_.name + " computes on memory of its own");
    }
    return allocate_pinned(bytes);
  }
  StatusOr<std::shared_ptr<std::byte>> allocate_pinned(size_t bytes) override {
    constexpr std::align_val_t kLine{64};
    auto* memory = static_cast<std::byte*>(::operator new(bytes, kLine, std::nothrow));
    if (!memory) return resource_exhausted(fmt::format("no {} bytes of memory are left", bytes));
    std::memset(memory, 0, bytes);
    return std::shared_ptr<std::byte>(memory,
                                      [](std::byte* freed) { ::operator delete(freed, kLine); });
  }
  Status enqueue_wait(const ProgressCounter* /*counter*/, uint32_t /*target*/,
                      std::atomic<uint32_t>* /*abort*/,
                      std::chrono::duration<double> /*patience*/) override {
    return no_commands();
  }
  Status enqueue_signal(ProgressCounter* /*counter*/, uint32_t /*value*/) override {
    return no_commands();
  }
  StatusOr<std::unique_ptr<HostEvent>> enqueue_host_wait() override { return no_commands(); }
  StatusOr<std::unique_ptr<DeviceEvent>> enqueue_device_event() override { return no_commands(); }
  Status finish() override { return {}; }
  Status enqueue_nothing() override { return {}; }
  Status flush() override { return {}; }
  Status self_test() override {
    if (shared_memory() == SharedMemoryKind::kFineAtomics) return {};
    return unsupported(fmt::format("it has {}", to_string(shared_memory())));
  }
  Status pinned_self_test() override {
    return unsupported("mapped memory is not polled on simulated platforms");
  }

 private:
  Status no_commands() const {
    return unsupported("the queue of lane " + info_.name + " is simulated");
  }

  const std::shared_ptr<World> world_;
  const int index_;
  const LaneInfo info_;
};

}  // namespace

SimulatedLane* as_simulated(Lane* lane) { return dynamic_cast<SimulatedLane*>(lane); }

std::unique_ptr<Lane> make_simulated_lane(std::shared_ptr<World> world, int lane) {
  if (world->model().lanes[lane].cores.empty()) {
    return std::make_unique<GpuLane>(std::move(world), lane);
  }
  return std::make_unique<CpuLane>(std::move(world), lane);
}

}  // namespace tandem::sim
