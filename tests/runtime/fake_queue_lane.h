// An asynchronous lane on a plain thread; see fake_lane.h.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include "lane/lane.h"
#include "support/clock.h"
#include "tests/runtime/fake_lane.h"

namespace tandem::testing {

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
  // Whether it has given up a wait since the last drain().
  bool gave_up() const { return gave_up_; }
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
  std::atomic<bool> gave_up_ = false;  // drain() resets it while the queue is empty
  std::thread thread_;
};

}  // namespace tandem::testing
