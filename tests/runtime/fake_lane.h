// Lanes on plain threads that compute with the reference, so that the protocol can be tested
// without OpenCL, OpenMP, or numbers that depend on a library; and made to fail at will.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <limits>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

#include "graph/reference.h"
#include "lane/lane.h"
#include "support/clock.h"
#include "support/cpu_relax.h"
#include "tandem/platform.h"

namespace tandem::testing {

inline float to_float(double value) { return static_cast<float>(value); }

// Calls f(flat index, element offset) for every element of the region.
template <typename F>
void for_each_element(const Region& region, const TensorView& view, const F& f) {
  if (is_empty(region)) return;
  Dims index;
  for (const Range& range : region) index.push_back(range.begin);
  while (true) {
    int64_t flat = 0;
    int64_t offset = 0;
    for (size_t d = 0; d < index.size(); ++d) {
      flat = flat * view.dims[d] + index[d];
      offset += index[d] * view.strides[d];
    }
    f(flat, offset);
    size_t d = index.size();
    while (d > 0 && ++index[d - 1] == region[d - 1].end) {
      index[d - 1] = region[d - 1].begin;
      --d;
    }
    if (d == 0) return;
  }
}

// Computes a slice from exactly the elements that the region rules say it reads (all others are
// NaN), and writes exactly the slice; operands of a concat that lie in its output are left alone.
inline void compute_slice(const Graph& graph, const TensorBindings& bindings, const Slice& slice) {
  const Operator& op = graph.op(slice.op);
  const Region region = output_region(graph, slice);
  const TensorView& output = bindings[op.output];
  std::vector<ReferenceTensor> inputs;
  std::vector<const ReferenceTensor*> pointers;
  std::vector<Region> in_place;
  int64_t concat_offset = 0;
  for (size_t i = 0; i < op.inputs.size(); ++i) {
    const Tensor& tensor = graph.tensor(op.inputs[i]);
    if (tensor.kind == TensorKind::kConstant) {
      inputs.push_back(to_reference(*tensor.value));
    } else {
      const TensorView& view = bindings[op.inputs[i]];
      ReferenceTensor input{tensor.dims,
                            std::vector<double>(element_count(tensor.dims),
                                                std::numeric_limits<double>::quiet_NaN())};
      bool skip = false;
      if (op.kind() == OperatorKind::kConcat) {
        const int axis = op.as<ConcatAttributes>().axis;
        Region place = whole_region(output.dims);
        place[axis] = {concat_offset, concat_offset + tensor.dims[axis]};
        skip = view.data == output.as<float>() + concat_offset * output.strides[axis];
        if (skip) in_place.push_back(place);
        concat_offset += tensor.dims[axis];
      }
      if (!skip) {
        for_each_element(input_region(graph, slice.op, static_cast<int>(i), region), view,
                         [&](int64_t flat, int64_t offset) {
                           input.values[flat] = static_cast<double>(view.as<float>()[offset]);
                         });
      }
      inputs.push_back(std::move(input));
    }
  }
  for (const ReferenceTensor& input : inputs) pointers.push_back(&input);
  const ReferenceTensor result = reference(graph, slice.op, pointers);
  for_each_element(region, output, [&](int64_t flat, int64_t offset) {
    for (const Region& place : in_place) {
      int64_t rest = flat;
      bool inside = true;
      for (size_t d = place.size(); d-- > 0; rest /= output.dims[d]) {
        const int64_t at = rest % output.dims[d];
        inside = inside && at >= place[d].begin && at < place[d].end;
      }
      if (inside) return;
    }
    output.as<float>()[offset] = to_float(result.values[flat]);
  });
}

// A lane's own copy of everything that bindings point at: NaN until something is copied or
// computed.
class FakeMirror {
 public:
  explicit FakeMirror(const Graph& graph, const TensorBindings& host) : host_(host) {
    auto* begin = reinterpret_cast<std::byte*>(std::numeric_limits<uintptr_t>::max());
    std::byte* end = nullptr;
    for (const TensorView& view : host.views) {
      if (!view.data) continue;
      begin = std::min(begin, view.as<std::byte>());
      int64_t last = 0;
      for (size_t d = 0; d < view.dims.size(); ++d) last += (view.dims[d] - 1) * view.strides[d];
      end = std::max(end, view.as<std::byte>() + (last + 1) * sizeof(float));
    }
    if (end) memory_.assign((end - begin) / sizeof(float), std::numeric_limits<float>::quiet_NaN());
    for (size_t t = 0; t < host.views.size(); ++t) {
      TensorView view = host.views[t];
      if (view.data) view.data = memory_.data() + (view.as<std::byte>() - begin) / sizeof(float);
      own_.views.push_back(view);
      const Tensor& tensor = graph.tensor(static_cast<TensorId>(t));
      if (view.data && tensor.value) copy_to_view(*tensor.value, view);
    }
  }
  const TensorBindings& bindings() const { return own_; }
  void upload(TensorId id, const Region& region) {
    for_each_element(region, host_[id], [&](int64_t, int64_t offset) {
      own_[id].as<float>()[offset] = host_[id].as<float>()[offset];
    });
  }
  void download(TensorId id, const Region& region) {
    for_each_element(region, host_[id], [&](int64_t, int64_t offset) {
      host_[id].as<float>()[offset] = own_[id].as<float>()[offset];
    });
  }

 private:
  TensorBindings host_;
  TensorBindings own_;
  std::vector<float> memory_;
};

// What goes wrong, and when. Shared by a lane and its test.
class Faults {
 public:
  // Called before each slice is computed. May throw, sleep, or return an error.
  using Hook = std::function<Status(const Slice&)>;
  void set(Hook hook) {
    std::lock_guard lock(mutex_);
    hook_ = std::move(hook);
  }
  Status before(const Slice& slice) {
    Hook hook;
    {
      std::lock_guard lock(mutex_);
      hook = hook_;
    }
    return hook ? hook(slice) : Status();
  }

 private:
  std::mutex mutex_;
  Hook hook_;
};

class FakeTask : public Task {
 public:
  explicit FakeTask(std::function<Status()> launch) : launch_(std::move(launch)) {}
  Status launch() override { return launch_(); }
  const ImplementationInfo& info() const override { return info_; }

 private:
  std::function<Status()> launch_;
  ImplementationInfo info_{.name = "reference"};
};

// `launch` gets the work of each launched slice: run it, or put it into a queue.
class FakeProgram : public LaneProgram {
 public:
  using Launch = std::function<Status(const Slice&, std::function<void()>)>;
  FakeProgram(const Graph& graph, TensorBindings bindings, Launch launch)
      : graph_(graph), bindings_(std::move(bindings)), launch_(std::move(launch)) {}
  StatusOr<std::unique_ptr<Task>> bind(const Slice& slice, int) override {
    TANDEM_RETURN_IF_ERROR(check_slice(graph_, slice));
    return std::unique_ptr<Task>(std::make_unique<FakeTask>([this, slice] {
      return launch_(slice, [this, slice] { compute_slice(graph_, bindings_, slice); });
    }));
  }
  StatusOr<ImplementationInfo> implementation(const Slice&, int) const override {
    return ImplementationInfo{.name = "reference"};
  }
  size_t bytes() const override { return 0; }

 private:
  const Graph& graph_;
  TensorBindings bindings_;
  Launch launch_;
};

class FakeCpuLane : public Lane {
 public:
  explicit FakeCpuLane(std::string name) {
    info_.name = std::move(name);
    info_.fingerprint = "fake";
  }
  const LaneInfo& info() const override { return info_; }
  Status enter() override { return {}; }
  StatusOr<std::unique_ptr<LaneProgram>> load(const Graph& graph,
                                              const TensorBindings& bindings) override {
    ++loads;
    return std::unique_ptr<LaneProgram>(std::make_unique<FakeProgram>(
        graph, bindings, [this](const Slice& slice, const std::function<void()>& compute) {
          TANDEM_RETURN_IF_ERROR(faults.before(slice));
          compute();
          return Status();
        }));
  }
  Status drain(Clock::time_point) override { return {}; }

  Faults faults;
  std::atomic<int> loads = 0;

 private:
  LaneInfo info_;
};

// A program of a queue that has its own memory.
class FakeMirrorProgram : public FakeProgram {
 public:
  using Enqueue = std::function<void(std::function<void()>)>;
  FakeMirrorProgram(const Graph& graph, std::unique_ptr<FakeMirror> mirror, Launch launch,
                    Enqueue enqueue)
      : FakeProgram(graph, mirror->bindings(), std::move(launch)),
        mirror_(std::move(mirror)),
        enqueue_(std::move(enqueue)) {}
  Status enqueue_upload(TensorId tensor, const Region& region) override {
    enqueue_([=, this] { mirror_->upload(tensor, region); });
    return {};
  }
  Status enqueue_download(TensorId tensor, const Region& region) override {
    enqueue_([=, this] { mirror_->download(tensor, region); });
    return {};
  }

 private:
  std::unique_ptr<FakeMirror> mirror_;
  Enqueue enqueue_;
};

// An in-order queue served by a thread.
class FakeQueueLane : public QueueLane {
 public:
  explicit FakeQueueLane(std::string name, SharedMemoryKind memory = SharedMemoryKind::kFineAtomics)
      : memory_(memory) {
    info_.name = std::move(name);
    info_.kind = LaneKind::kSimulated;
    info_.fingerprint = "fake";
    info_.asynchronous = true;
    thread_ = std::thread([this] { serve(); });
  }
  ~FakeQueueLane() override {
    {
      std::lock_guard lock(mutex_);
      stop_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

  const LaneInfo& info() const override { return info_; }
  Status enter() override { return {}; }
  StatusOr<std::unique_ptr<LaneProgram>> load(const Graph& graph,
                                              const TensorBindings& bindings) override {
    ++loads;
    const auto launch = [this](const Slice& slice, std::function<void()> compute) -> Status {
      TANDEM_RETURN_IF_ERROR(launch_faults.before(slice));
      enqueue([this, slice, compute = std::move(compute)] {
        // What a device computes after it gave up a wait is thrown away. Here it computes
        // nothing, so that sanitizers see only races that matter.
        if (!gave_up_ && device_faults.before(slice).ok()) compute();
      });
      return Status();
    };
    if (!computes_on_own_memory(*this)) {
      return std::unique_ptr<LaneProgram>(std::make_unique<FakeProgram>(graph, bindings, launch));
    }
    return std::unique_ptr<LaneProgram>(
        std::make_unique<FakeMirrorProgram>(graph, std::make_unique<FakeMirror>(graph, bindings),
                                            launch, [this](std::function<void()> copy) {
                                              enqueue([this, copy = std::move(copy)] {
                                                if (!gave_up_) copy();
                                              });
                                            }));
  }
  // Nothing runs before flush(), as on a lazy driver.
  Status drain(Clock::time_point deadline) override {
    TANDEM_RETURN_IF_ERROR(flush());
    std::unique_lock lock(mutex_);
    if (!changed_.wait_until(lock, deadline, [this] { return queue_.empty() && !busy_; })) {
      return deadline_exceeded("the queue did not finish in time");
    }
    gave_up_ = false;
    return {};
  }

  SharedMemoryKind shared_memory() const override { return memory_; }
  StatusOr<std::shared_ptr<std::byte>> allocate(size_t bytes) override {
    if (computes_on_own_memory(*this)) return unsupported("memory of its own");
    return allocate_pinned(bytes);
  }
  StatusOr<std::shared_ptr<std::byte>> allocate_pinned(size_t bytes) override {
    const size_t rounded = (bytes + 63) / 64 * 64;
    auto* memory = static_cast<std::byte*>(std::aligned_alloc(64, rounded));
    std::memset(memory, 0, rounded);
    return std::shared_ptr<std::byte>(memory, [](std::byte* p) { std::free(p); });
  }
  Status enqueue_wait(const ProgressCounter* counter, uint32_t target, std::atomic<uint32_t>* abort,
                      std::chrono::duration<double> patience) override {
    enqueue([=, this] {
      const Clock::time_point start = Clock::now();
      while (!reached(counter->value.load(std::memory_order_acquire), target)) {
        if (Clock::now() - start > patience) abort->store(1, std::memory_order_relaxed);
        gave_up_ = gave_up_ || abort->load(std::memory_order_relaxed) != 0;
        if (gave_up_) return;
        std::this_thread::yield();
      }
    });
    ++waits;
    return {};
  }
  Status enqueue_doze(const ProgressCounter* counter, uint32_t target, std::atomic<uint32_t>*,
                      std::chrono::duration<double> patience) override {
    enqueue([=] {
      const Clock::time_point start = Clock::now();
      while (!reached(counter->value.load(std::memory_order_acquire), target)) {
        if (Clock::now() - start > patience) return;
        std::this_thread::yield();
      }
    });
    return {};
  }
  Status enqueue_signal(ProgressCounter* counter, uint32_t value) override {
    enqueue([=] { counter->value.store(value, std::memory_order_release); });
    ++signals;
    return {};
  }
  StatusOr<std::unique_ptr<HostEvent>> enqueue_host_wait() override {
    auto event = std::make_unique<FakeHostEvent>();
    enqueue([this, gate = event->gate] { gave_up_ = !gate->wait() || gave_up_; });
    return std::unique_ptr<HostEvent>(std::move(event));
  }
  StatusOr<std::unique_ptr<DeviceEvent>> enqueue_device_event() override {
    auto event = std::make_unique<FakeDeviceEvent>();
    enqueue([gate = event->gate] { gate->open(); });
    return std::unique_ptr<DeviceEvent>(std::move(event));
  }
  Status flush() override {
    {
      std::lock_guard lock(mutex_);
      flushed_ = queue_.size();
    }
    changed_.notify_all();
    return {};
  }
  Status enqueue_nothing() override {
    enqueue([] {});
    return {};
  }
  Status finish() override {
    std::unique_lock lock(mutex_);
    const size_t wanted = done_ + queue_.size() + (busy_ ? 1 : 0);
    flushed_ = queue_.size();
    changed_.notify_all();
    changed_.wait(lock, [&] { return done_ >= wanted; });
    return {};
  }
  Status start_recording() override {
    TANDEM_RETURN_IF_ERROR(recording_status);
    std::lock_guard lock(mutex_);
    recording_ = true;
    recorded_.clear();
    return {};
  }
  size_t recorded() const override {
    std::lock_guard lock(mutex_);
    return recorded_.size();
  }
  StatusOr<std::vector<CommandTimes>> stop_recording() override {
    std::lock_guard lock(mutex_);
    recording_ = false;
    return std::vector<CommandTimes>(recorded_.begin(), recorded_.end());
  }
  Status self_test() override { return {}; }
  Status pinned_self_test() override { return pinned_status; }

  Faults launch_faults;  // when a slice is enqueued
  Faults device_faults;  // when its turn comes
  Status pinned_status;  // what the self-test says
  Status recording_status;
  std::atomic<int> loads = 0;
  int waits = 0;
  int signals = 0;

 private:
  // Once opened, stays open.
  class Gate {
   public:
    void open(bool abandoned = false) {
      {
        std::lock_guard lock(mutex_);
        open_ = true;
        abandoned_ = abandoned;
      }
      opened_.notify_all();
    }
    // False if it was abandoned.
    bool wait() {
      std::unique_lock lock(mutex_);
      opened_.wait(lock, [this] { return open_; });
      return !abandoned_;
    }
    bool wait_until(Clock::time_point deadline) {
      std::unique_lock lock(mutex_);
      return opened_.wait_until(lock, deadline, [this] { return open_; });
    }

    bool is_open() {
      std::lock_guard lock(mutex_);
      return open_;
    }

   private:
    std::mutex mutex_;
    std::condition_variable opened_;
    bool open_ = false;
    bool abandoned_ = false;
  };
  struct FakeHostEvent : HostEvent {
    Status set() override {
      gate->open();
      return {};
    }
    void abandon() override { gate->open(/*abandoned=*/true); }
    std::shared_ptr<Gate> gate = std::make_shared<Gate>();
  };
  struct FakeDeviceEvent : DeviceEvent {
    Status wait(Clock::time_point deadline) override {
      return gate->wait_until(deadline) ? Status() : deadline_exceeded("the queue is late");
    }
    StatusOr<bool> passed() const override { return gate->is_open(); }
    std::shared_ptr<Gate> gate = std::make_shared<Gate>();
  };

  void enqueue(std::function<void()> work) {
    std::lock_guard lock(mutex_);
    if (!recording_) return queue_.push_back(std::move(work));
    CommandTimes& times = recorded_.emplace_back();
    times.queued = Clock::now();
    queue_.push_back([&times, work = std::move(work)] {
      times.begin = Clock::now();
      work();
      times.end = Clock::now();
    });
  }
  void serve() {
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [this] { return stop_ || flushed_ > 0; });
      if (flushed_ == 0) return;
      const std::function<void()> work = std::move(queue_.front());
      queue_.pop_front();
      --flushed_;
      busy_ = true;
      lock.unlock();
      work();
      lock.lock();
      busy_ = false;
      ++done_;
      changed_.notify_all();
    }
  }

  LaneInfo info_;
  SharedMemoryKind memory_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool recording_ = false;
  std::deque<CommandTimes> recorded_;  // stay where they are
  std::deque<std::function<void()>> queue_;
  size_t flushed_ = 0;  // of the queue's front
  bool busy_ = false;
  size_t done_ = 0;  // pieces of work, ever
  bool stop_ = false;
  bool gave_up_ = false;  // of the queue's thread; drain() resets it while the queue is empty
  std::thread thread_;
};

// One CPU lane "cpu0" and one queue lane "gpu0", or only the former.
class FakePlatform : public Platform {
 public:
  explicit FakePlatform(bool with_queue = true) {
    lanes_.push_back(std::make_unique<FakeCpuLane>("cpu0"));
    if (with_queue) {
      lanes_.push_back(std::make_unique<FakeQueueLane>("gpu0"));
    } else {
      warnings_.push_back("no OpenCL lane: there is no device");
    }
  }
  const std::vector<std::unique_ptr<Lane>>& lanes() const override { return lanes_; }
  const std::vector<std::string>& warnings() const override { return warnings_; }
  std::string fingerprint() const override { return "fake platform"; }
  FakeCpuLane& cpu() { return static_cast<FakeCpuLane&>(*lanes_[0]); }
  FakeQueueLane& queue() { return static_cast<FakeQueueLane&>(*lanes_[1]); }

 private:
  std::vector<std::unique_ptr<Lane>> lanes_;
  std::vector<std::string> warnings_;
};

}  // namespace tandem::testing
