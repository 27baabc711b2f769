// Lanes on plain threads that compute with the reference, so that the protocol can be tested
// without OpenCL, OpenMP, or numbers that depend on a library; and made to fail at will.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "lane/lane.h"
#include "support/clock.h"
#include "tests/runtime/fake_compute.h"

namespace tandem::testing {

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

}  // namespace tandem::testing
