// Runs in which lanes fail, stall, or are cancelled: on plain threads.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "tests/runtime/protocol/fake_bench.h"
#include "tests/schedule/random_graph.h"

namespace tandem {
namespace {

using namespace std::chrono_literals;  // NOLINT: literals only
using ::testing::AllOf;
using testing::FakeBench;
using ::testing::HasSubstr;
using testing::Random;
using testing::random_inputs;

// How long devices poll, where they must give up: others are not to be that late.
constexpr std::chrono::milliseconds kSpinLimit = 150ms;

class FaultTest : public ::testing::TestWithParam<SyncMechanism> {
 protected:
  FaultTest() : bench_(1, 1, Feeder::kFirstCpuLane) {
    // Operators alternate between the lanes, so that both have to wait all along.
    TensorId x = graph_.add_input("x", DataType::kFloat32, {4, 32});
    for (int i = 0; i < 10; ++i) {
      x = graph_.add("op" + std::to_string(i), UnaryAttributes{}, {x}).value();
    }
    graph_.mark_output(x);
    schedule_.lanes.resize(2);
    for (int op = 0; op < 10; ++op) schedule_.lanes[op % 2].push_back({.slice = {.op = op}});
    options_.sync.mechanism = GetParam();
    options_.sync.device_spin_limit = 60s;
  }
  void SetUp() override { ASSERT_TRUE(derive_waits(graph_, &schedule_).ok()); }
  void prepare() { bench_.prepare(graph_, schedule_, options_); }
  Status run() {
    std::vector<HostTensor> outputs;
    const std::vector<HostTensor> inputs = random_inputs(random_, graph_);
    return bench_.run(inputs, &outputs);
  }
  void expect_usable() {
    bench_.cpus[0]->faults.set({});
    bench_.queues[0]->launch_faults.set({});
    bench_.queues[0]->device_faults.set({});
    for (int i = 0; i < 3; ++i) bench_.expect_right(random_);
  }
  bool polls() const {
    return GetParam() == SyncMechanism::kSvm || GetParam() == SyncMechanism::kPinned;
  }
  // Until the device has given up polling, if it polls; else for longer than it would.
  void outlast_polling() {
    std::this_thread::sleep_for(kSpinLimit);
    while (polls() && !bench_.queues[0]->gave_up()) std::this_thread::sleep_for(1ms);
  }
  std::set<int> blamed() const {
    return {bench_.executor->blamed_lanes().begin(), bench_.executor->blamed_lanes().end()};
  }

  Graph graph_;
  Schedule schedule_;
  ExecutorOptions options_;
  Random random_{7};
  FakeBench bench_;
};

INSTANTIATE_TEST_SUITE_P(Mechanisms, FaultTest,
                         ::testing::Values(SyncMechanism::kSvm, SyncMechanism::kEvent,
                                           SyncMechanism::kPinned, SyncMechanism::kFinish),
                         [](const auto& info) { return std::string(to_string(info.param)); });

TEST_P(FaultTest, CpuLaneThrows) {
  prepare();
  bench_.cpus[0]->faults.set([](const Slice& slice) -> Status {
    if (slice.op == 4) throw std::runtime_error("out of luck");
    return {};
  });
  const Status status = run();
  EXPECT_EQ(status.code(), StatusCode::kInternal);
  EXPECT_THAT(status.message(),
              AllOf(HasSubstr("cpu0"), HasSubstr("op4"), HasSubstr("out of luck")));
  EXPECT_EQ(blamed(), std::set<int>{0});
  expect_usable();
}

TEST_P(FaultTest, CpuLaneReturnsAnError) {
  prepare();
  bench_.cpus[0]->faults.set([](const Slice& slice) {
    return slice.op == 6 ? resource_exhausted("no memory left") : Status();
  });
  const Status status = run();
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(status.message(),
              AllOf(HasSubstr("cpu0"), HasSubstr("op6"), HasSubstr("no memory left")));
  expect_usable();
}

TEST_P(FaultTest, QueueRefusesASlice) {
  prepare();
  bench_.queues[0]->launch_faults.set([](const Slice& slice) {
    return slice.op == 5 ? device_error("CL_OUT_OF_RESOURCES") : Status();
  });
  const Status status = run();
  EXPECT_EQ(status.code(), StatusCode::kDeviceError);
  EXPECT_THAT(status.message(),
              AllOf(HasSubstr("gpu0"), HasSubstr("op5"), HasSubstr("CL_OUT_OF_RESOURCES")));
  EXPECT_EQ(blamed(), std::set<int>{1});
  expect_usable();
}

TEST_P(FaultTest, CpuLaneStalls) {
  options_.deadline = 400ms;
  prepare();
  bench_.cpus[0]->faults.set([](const Slice& slice) {
    if (slice.op == 4) std::this_thread::sleep_for(700ms);
    return Status();
  });
  const Status status = run();
  EXPECT_EQ(status.code(), StatusCode::kDeadlineExceeded);
  EXPECT_THAT(status.message(), AllOf(HasSubstr("cpu0 is at op4"), HasSubstr("400 ms")));
  EXPECT_EQ(blamed(), std::set<int>{0});
  expect_usable();
}

TEST_P(FaultTest, QueueStalls) {
  options_.deadline = 400ms;
  prepare();
  bench_.queues[0]->device_faults.set([](const Slice& slice) {
    if (slice.op == 5) std::this_thread::sleep_for(700ms);
    return Status();
  });
  const Status status = run();
  EXPECT_EQ(status.code(), StatusCode::kDeadlineExceeded);
  EXPECT_THAT(status.message(),
              AllOf(HasSubstr("gpu0"), HasSubstr("op5"), HasSubstr("cpu0 waits before op6")));
  EXPECT_EQ(blamed(), std::set<int>{1});
  expect_usable();
}

// A lane that is slow, but not late, costs a second attempt: the device no longer polls, in this
// run and in all later ones.
TEST_P(FaultTest, ADeviceStopsPollingForASlowLane) {
  options_.sync.device_spin_limit = kSpinLimit;
  prepare();
  int slow_slices = 0;
  bench_.cpus[0]->faults.set([&](const Slice& slice) {
    if (slice.op == 4 && ++slow_slices == 1) outlast_polling();
    return Status();
  });
  bench_.expect_right(random_);
  const bool polls = this->polls();
  EXPECT_EQ(slow_slices, polls ? 2 : 1);
  EXPECT_EQ(bench_.executor->mechanism(), polls ? SyncMechanism::kEvent : GetParam());
  bench_.expect_right(random_);
  EXPECT_EQ(slow_slices, polls ? 3 : 2);
  expect_usable();
}

// The second attempt has what is left of the deadline, and can be cancelled.
TEST_P(FaultTest, ASecondAttemptCanBeCancelled) {
  options_.sync.device_spin_limit = kSpinLimit;
  prepare();
  int slow_slices = 0;
  bench_.cpus[0]->faults.set([&](const Slice& slice) {
    if (slice.op != 4) return Status();
    if (++slow_slices == 1) outlast_polling();
    if (slow_slices == 2) bench_.executor->cancel();
    return Status();
  });
  EXPECT_EQ(run().code(), polls() ? StatusCode::kCancelled : StatusCode::kOk);
  expect_usable();
}

TEST_P(FaultTest, RunReturnsEvenIfALaneNeverComesBack) {
  options_.deadline = 400ms;
  options_.drain_grace = 50ms;
  prepare();
  std::atomic<bool> release = false;
  bench_.cpus[0]->faults.set([&](const Slice& slice) {
    while (slice.op == 2 && !release) std::this_thread::sleep_for(1ms);
    return Status();
  });
  EXPECT_EQ(run().code(), StatusCode::kDeadlineExceeded);
  // The lane is still at it, and memory is still in its hands.
  const Status again = run();
  EXPECT_EQ(again.code(), StatusCode::kDeadlineExceeded);
  EXPECT_THAT(again.message(), AllOf(HasSubstr("still busy"), HasSubstr("op2")));
  release = true;
  expect_usable();
}

TEST_P(FaultTest, CancelFromAnotherThread) {
  options_.deadline = 30s;
  prepare();
  for (const int where : {2, 3}) {  // while the CPU lane computes, and while the queue does
    std::atomic<bool> reached = false;
    std::atomic<bool> cancelled = false;
    const auto slow = [&](const Slice& slice) {
      reached = reached || slice.op == where;
      while (slice.op == where && !cancelled) std::this_thread::sleep_for(1ms);
      return Status();
    };
    bench_.cpus[0]->faults.set(slow);
    bench_.queues[0]->device_faults.set(slow);
    std::thread canceller([&] {
      while (!reached) std::this_thread::yield();
      bench_.executor->cancel();
      cancelled = true;
    });
    const Status status = run();
    canceller.join();
    EXPECT_EQ(status.code(), StatusCode::kCancelled) << status.message();
    EXPECT_TRUE(blamed().empty());
    expect_usable();
  }
  bench_.executor->cancel();  // nothing runs: nothing happens
  expect_usable();
}

// Aborts at every moment of a run, again and again.
TEST_P(FaultTest, CancelAtAnyTime) {
  prepare();
  int cancelled_runs = 0;
  // Some cancels come too early for their run, or too late.
  for (int i = 0; i < 150 || (cancelled_runs == 0 && i < 15'000); ++i) {
    std::thread canceller([&] {
      std::this_thread::sleep_for(std::chrono::microseconds(i % 150 * 3));
      bench_.executor->cancel();
    });
    const Status status = run();
    canceller.join();
    ASSERT_TRUE(status.ok() || status.code() == StatusCode::kCancelled) << status.message();
    cancelled_runs += !status.ok();
    if (i % 10 == 0) bench_.expect_right(random_);
  }
  EXPECT_GT(cancelled_runs, 0);
  expect_usable();
}

TEST_P(FaultTest, LanesInUseByOthers) {
  options_.deadline = 400ms;
  prepare();
  {
    const auto lease = LaneCrew::acquire(bench_.crew, Clock::now());
    ASSERT_TRUE(lease.ok());
    const Status status = run();
    EXPECT_EQ(status.code(), StatusCode::kDeadlineExceeded);
    EXPECT_THAT(status.message(), HasSubstr("busy"));
  }
  expect_usable();
}

}  // namespace
}  // namespace tandem
