// An OpenCL device that fails, stalls or has no memory left, in mid-run and at load.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "graph/reference.h"
#include "schedule/schedule.h"
#include "support/clock.h"
#include "tests/faults/opencl_faults.h"
#include "tests/runtime/real_platform.h"
#include "tests/schedule/random_graph.h"

namespace tandem {
namespace {

using namespace std::chrono_literals;  // NOLINT: literals only
using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using testing::Random;
using testing::real_lane_options;
using testing::real_platform;
namespace faults = testing::opencl_faults;

// Runs everywhere where lanes cross.
class DeviceFaultTest : public ::testing::TestWithParam<SyncMechanism> {
 protected:
  void SetUp() override {
    if (!testing::has_queue_lane()) GTEST_SKIP() << "no OpenCL lane";
    Random random(7);
    graph_ = std::make_shared<Graph>(testing::random_graph(random, 40));
    inputs_ = testing::random_inputs(random, *graph_);
    expected_ = reference(*graph_, inputs_);
    options_ = real_lane_options("intra");
    options_.deadline = 10s;
    options_.sync = GetParam();
    options_.schedule = std::make_shared<Schedule>(testing::random_schedule(
        random, *graph_, static_cast<int>(real_platform()->lanes().size())));
  }
  void TearDown() override { faults::heal(); }

  // Null, with the test skipped, where the mechanism is not for this device.
  std::unique_ptr<Session> create() {
    auto session = Session::create(Model(graph_), real_platform(), options_);
    if (session.ok()) return std::move(session).value();
    EXPECT_EQ(session.status().code(), StatusCode::kUnsupported) << session.status().message();
    return nullptr;
  }
  void expect_right_numbers(const std::vector<HostTensor>& outputs) const {
    ASSERT_EQ(outputs.size(), graph_->outputs().size());
    for (size_t i = 0; i < outputs.size(); ++i) {
      const std::vector<double>& wanted = expected_[graph_->outputs()[i]].values;
      for (size_t n = 0; n < wanted.size(); ++n) {
        ASSERT_NEAR(outputs[i].data<float>()[n], wanted[n], 1e-3) << "output " << i << " at " << n;
      }
    }
  }
  void expect_usable(Session& session) const {
    std::vector<HostTensor> outputs;
    const Status status = session.run(inputs_, &outputs);
    ASSERT_TRUE(status.ok()) << status.message();
    expect_right_numbers(outputs);
  }
  // Of a run without faults.
  int calls_of_a_run(Session& session) const {
    faults::heal();
    expect_usable(session);
    return faults::calls();
  }

  std::shared_ptr<const Graph> graph_;
  std::vector<HostTensor> inputs_;
  std::vector<ReferenceTensor> expected_;
  SessionOptions options_;
};

// Whatever call it is that finds the device lost: the run ends before its deadline with an error
// that names the lane and what the driver said, and the session works again if the device does.
TEST_P(DeviceFaultTest, LostInMidRun) {
  const auto session = create();
  if (!session) GTEST_SKIP() << "not on this device";
  const int calls = calls_of_a_run(*session);
  ASSERT_GT(calls, 20);
  int named_operators = 0;
  const int step = std::max(1, calls / 30);
  for (int n = 0; n < calls; n += n < 4 || n > calls - 6 ? 1 : step) {
    SCOPED_TRACE("call " + std::to_string(n) + " of " + std::to_string(calls));
    const bool gone = n % 2 == 0;
    faults::lose_device_at(n, gone ? CL_DEVICE_NOT_AVAILABLE : CL_OUT_OF_RESOURCES);
    std::vector<HostTensor> outputs;
    const Status status = session->run(inputs_, &outputs);
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.code(), gone ? StatusCode::kDeviceError : StatusCode::kResourceExhausted)
        << status.message();
    EXPECT_THAT(status.message(),
                AllOf(HasSubstr("lane gpu"),
                      HasSubstr(gone ? "CL_DEVICE_NOT_AVAILABLE" : "CL_OUT_OF_RESOURCES")));
    if (gone) {
      EXPECT_THAT(status.message(), HasSubstr("lost"));
    }
    named_operators += std::any_of(
        graph_->operators().begin(), graph_->operators().end(),
        [&](const Operator& op) { return status.message().find(op.name) != std::string::npos; });
    // It stays lost.
    ASSERT_FALSE(session->run(inputs_, &outputs).ok());
    faults::heal();
    expect_usable(*session);
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(named_operators, 10);
}

TEST_P(DeviceFaultTest, FallsBackOnTheCpu) {
  options_.fall_back = true;
  const auto session = create();
  if (!session) GTEST_SKIP() << "not on this device";
  const int calls = calls_of_a_run(*session);
  for (const int n : {0, calls / 3, calls / 2, calls - 1}) {
    SCOPED_TRACE("call " + std::to_string(n));
    faults::lose_device_at(n, CL_DEVICE_NOT_AVAILABLE);
    for (int i = 0; i < 2; ++i) {
      expect_usable(*session);
      EXPECT_THAT(session->fall_back_reason(),
                  AllOf(HasSubstr("lane cpu"), HasSubstr("CL_DEVICE_NOT_AVAILABLE")));
    }
    faults::heal();
    expect_usable(*session);
    EXPECT_EQ(session->fall_back_reason(), "");
    if (HasFatalFailure()) return;
  }
}

TEST_P(DeviceFaultTest, EventsThatReportErrors) {
  const auto session = create();
  if (!session) GTEST_SKIP() << "not on this device";
  for (int n = 0; n < 6; ++n) {
    faults::fail_events_from(n, CL_OUT_OF_RESOURCES);
    std::vector<HostTensor> outputs;
    const Status status = session->run(inputs_, &outputs);
    // There may be fewer events than that.
    if (status.ok()) {
      expect_right_numbers(outputs);
    } else {
      EXPECT_THAT(status.message(), AllOf(HasSubstr("lane "), HasSubstr("CL_OUT_OF_RESOURCES")));
    }
    faults::heal();
    expect_usable(*session);
    if (HasFatalFailure()) return;
  }
}

// A kernel that takes longer than the deadline, but not for ever.
TEST_P(DeviceFaultTest, StallsPastTheDeadline) {
  options_.deadline = 500ms;
  const auto session = create();
  if (!session) GTEST_SKIP() << "not on this device";
  for (const int n : {0, 9}) {
    SCOPED_TRACE("kernel " + std::to_string(n));
    faults::stall_kernel_at(n, 1s);
    std::vector<HostTensor> outputs;
    const Status status = session->run(inputs_, &outputs);
    EXPECT_EQ(status.code(), StatusCode::kDeadlineExceeded) << status.message();
    EXPECT_THAT(status.message(), AllOf(HasSubstr("500 ms"), HasSubstr("lane gpu")));
    faults::heal();
    expect_usable(*session);
    if (HasFatalFailure()) return;
  }
}

// Longer than run() waits for a device after a fault: it returns while the device is still away,
// and so does the next one.
TEST_P(DeviceFaultTest, DoesNotComeBackForALongTime) {
  if (GetParam() == SyncMechanism::kEvent) GTEST_SKIP() << "takes long, and waits are the same";
  options_.deadline = 300ms;
  const auto session = create();
  if (!session) GTEST_SKIP() << "not on this device";
  faults::stall_kernel_at(3, 60s);
  std::vector<HostTensor> outputs;
  EXPECT_EQ(session->run(inputs_, &outputs).code(), StatusCode::kDeadlineExceeded);
  const Status again = session->run(inputs_, &outputs);
  EXPECT_EQ(again.code(), StatusCode::kDeadlineExceeded);
  EXPECT_THAT(again.message(), HasSubstr("busy with an earlier run"));
  faults::heal();
  expect_usable(*session);
}

// Whichever allocation fails at load, it is an error that says what was asked of whom; nothing is
// leaked, and afterwards a session can be made.
TEST_P(DeviceFaultTest, NoMemoryAtLoad) {
  const long long held = faults::bytes_held();
  faults::heal();
  if (!create()) GTEST_SKIP() << "not on this device";
  const int allocations = faults::allocations();
  ASSERT_GT(allocations, 4);
  for (int n = 0; n < allocations; n += n < 3 ? 1 : std::max(1, allocations / 12)) {
    SCOPED_TRACE("allocation " + std::to_string(n) + " of " + std::to_string(allocations));
    faults::fail_allocations_from(n);
    auto session = Session::create(Model(graph_), real_platform(), options_);
    ASSERT_FALSE(session.ok());
    // The self-test needs memory, too, without which a mechanism that was forced is refused.
    if (session.status().code() != StatusCode::kUnsupported) {
      EXPECT_EQ(session.status().code(), StatusCode::kResourceExhausted);
    }
    EXPECT_THAT(session.status().message(), AllOf(HasSubstr("lane gpu"), HasSubstr("bytes")));
    faults::heal();
    EXPECT_EQ(faults::bytes_held(), held);
  }
  const auto session = create();
  ASSERT_TRUE(session);
  expect_usable(*session);
}

INSTANTIATE_TEST_SUITE_P(Mechanisms, DeviceFaultTest,
                         ::testing::Values(SyncMechanism::kSvm, SyncMechanism::kEvent),
                         [](const auto& info) {
                           return info.param == SyncMechanism::kSvm ? "Svm" : "Event";
                         });

}  // namespace
}  // namespace tandem
