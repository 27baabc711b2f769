#include "tandem/session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "schedule/schedule.h"
#include "tests/runtime/fake_platform.h"
#include "tests/schedule/random_graph.h"

namespace tandem {
namespace {

using namespace std::chrono_literals;  // NOLINT: literals only
using ::testing::AllOf;
using ::testing::AnyOf;
using testing::FakePlatform;
using ::testing::HasSubstr;
using testing::Random;
using testing::random_inputs;

std::shared_ptr<const Graph> make_graph(int operators = 20) {
  Random random(11);
  return std::make_shared<Graph>(testing::random_graph(random, operators));
}

void expect_close(const Graph& graph, const std::vector<HostTensor>& inputs,
                  const std::vector<HostTensor>& outputs) {
  const std::vector<ReferenceTensor> expected = reference(graph, inputs);
  ASSERT_EQ(outputs.size(), graph.outputs().size());
  for (size_t i = 0; i < outputs.size(); ++i) {
    const ReferenceTensor& wanted = expected[graph.outputs()[i]];
    ASSERT_EQ(outputs[i].dims, wanted.dims);
    for (size_t n = 0; n < wanted.values.size(); ++n) {
      ASSERT_NEAR(outputs[i].data<float>()[n], wanted.values[n], 1e-4);
    }
  }
}

class SessionTest : public ::testing::Test {
 protected:
  SessionTest() {
    options_.strategy = "intra";
    options_.calibration_dir = "none";
    options_.calibration_seconds = 0.2;
  }
  std::unique_ptr<Session> create() {
    auto session = Session::create(Model(graph_), platform_, options_);
    if (!session.ok()) {
      ADD_FAILURE() << session.status().message();
      return nullptr;
    }
    return std::move(session).value();
  }
  Status create_status() { return Session::create(Model(graph_), platform_, options_).status(); }

  std::shared_ptr<const Graph> graph_ = make_graph();
  std::shared_ptr<FakePlatform> platform_ = std::make_shared<FakePlatform>();
  SessionOptions options_;
  Random random_{3};
};

TEST_F(SessionTest, PinnedIsRefusedWhereItsSelfTestFails) {
  platform_->queue().pinned_status = device_error("it sees nothing");
  options_.sync = SyncMechanism::kPinned;
  const Status refused = create_status();
  EXPECT_EQ(refused.code(), StatusCode::kUnsupported);
  EXPECT_THAT(refused.message(), AllOf(HasSubstr("pinned"), HasSubstr("it sees nothing")));
  options_.sync = SyncMechanism::kAuto;
  EXPECT_TRUE(create());
}

TEST_F(SessionTest, EveryStrategyIsRight) {
  for (const char* strategy : {"cpu", "gpu", "intra"}) {
    for (const SyncMechanism sync :
         {SyncMechanism::kAuto, SyncMechanism::kSvm, SyncMechanism::kEvent, SyncMechanism::kPinned,
          SyncMechanism::kFinish}) {
      options_.strategy = strategy;
      options_.sync = sync;
      const auto session = create();
      ASSERT_TRUE(session);
      if (sync != SyncMechanism::kAuto) {
        EXPECT_EQ(session->sync(), sync);
      } else {
        EXPECT_THAT(session->sync(),
                    AnyOf(SyncMechanism::kSvm, SyncMechanism::kEvent, SyncMechanism::kFinish));
      }
      EXPECT_EQ(session->schedule().strategy, strategy);
      for (int i = 0; i < 3; ++i) {
        const std::vector<HostTensor> inputs = random_inputs(random_, *graph_);
        std::vector<HostTensor> outputs;
        const Status status = session->run(inputs, &outputs);
        ASSERT_TRUE(status.ok()) << status.message();
        expect_close(*graph_, inputs, outputs);
        EXPECT_GT(session->last_run_us(), 0);
      }
      EXPECT_LE(session->memory().arena, session->memory().without_reuse);
      EXPECT_TRUE(session->fall_back_reason().empty());
    }
  }
}

TEST_F(SessionTest, RunsAScheduleThatIsGiven) {
  Schedule schedule = testing::random_schedule(random_, *graph_, 2);
  options_.schedule = std::make_shared<Schedule>(schedule);
  const auto session = create();
  ASSERT_TRUE(session);
  EXPECT_EQ(session->schedule().strategy, "random");
  const std::vector<HostTensor> inputs = random_inputs(random_, *graph_);
  std::vector<HostTensor> outputs;
  ASSERT_TRUE(session->run(inputs, &outputs).ok());
  expect_close(*graph_, inputs, outputs);

  schedule.lanes[0].pop_back();
  options_.schedule = std::make_shared<Schedule>(schedule);
  EXPECT_EQ(create_status().code(), StatusCode::kInvalidArgument);
  schedule = testing::random_schedule(random_, *graph_, 3);
  options_.schedule = std::make_shared<Schedule>(schedule);
  EXPECT_THAT(create_status().message(), HasSubstr("3 lanes"));
}

TEST_F(SessionTest, RefusesWrongInputs) {
  options_.strategy = "cpu";
  const auto session = create();
  ASSERT_TRUE(session);
  std::vector<HostTensor> outputs;
  std::vector<HostTensor> inputs = random_inputs(random_, *graph_);
  inputs.pop_back();
  EXPECT_EQ(session->run(inputs, &outputs).code(), StatusCode::kInvalidArgument);
  inputs = random_inputs(random_, *graph_);
  inputs[0] = HostTensor(DataType::kFloat32, {1, 2, 3});
  EXPECT_THAT(session->run(inputs, &outputs).message(), HasSubstr("image must be float32"));
  inputs[0] = HostTensor(DataType::kInt64, graph_->tensor(graph_->inputs()[0]).dims);
  EXPECT_EQ(session->run(inputs, &outputs).code(), StatusCode::kInvalidArgument);
}

TEST_F(SessionTest, UnknownStrategy) {
  options_.strategy = "fastest";
  EXPECT_EQ(create_status().code(), StatusCode::kNotFound);
}

TEST_F(SessionTest, StrategyWithoutItsLane) {
  platform_ = std::make_shared<FakePlatform>(/*with_queue=*/false);
  options_.strategy = "gpu";
  const Status status = create_status();
  EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(status.message(), AllOf(HasSubstr("gpu"), HasSubstr("there is no device")));
  options_.strategy = "intra";
  const auto session = create();
  ASSERT_TRUE(session);
  const std::vector<HostTensor> inputs = random_inputs(random_, *graph_);
  std::vector<HostTensor> outputs;
  ASSERT_TRUE(session->run(inputs, &outputs).ok());
  expect_close(*graph_, inputs, outputs);
}

TEST_F(SessionTest, EveryTensorCanBeReadIfAllAreKept) {
  options_.keep_all = true;
  const auto session = create();
  ASSERT_TRUE(session);
  EXPECT_EQ(session->tensor(graph_->tensor(0).name).status().code(),
            StatusCode::kFailedPrecondition);
  const std::vector<HostTensor> inputs = random_inputs(random_, *graph_);
  std::vector<HostTensor> outputs;
  ASSERT_TRUE(session->run(inputs, &outputs).ok());
  const std::vector<ReferenceTensor> expected = reference(*graph_, inputs);
  for (size_t t = 0; t < graph_->tensors().size(); ++t) {
    const auto value = session->tensor(graph_->tensor(static_cast<TensorId>(t)).name);
    ASSERT_TRUE(value.ok()) << value.status().message();
    for (size_t n = 0; n < expected[t].values.size(); ++n) {
      ASSERT_NEAR(value->data<float>()[n], expected[t].values[n], 1e-4);
    }
  }
  EXPECT_EQ(session->tensor("no such tensor").status().code(), StatusCode::kNotFound);
}

// What can be read is right; what cannot is said to be lost.
TEST_F(SessionTest, TensorsWhoseMemoryWasReused) {
  options_.strategy = "cpu";
  const auto session = create();
  ASSERT_TRUE(session);
  const std::vector<HostTensor> inputs = random_inputs(random_, *graph_);
  std::vector<HostTensor> outputs;
  ASSERT_TRUE(session->run(inputs, &outputs).ok());
  const std::vector<ReferenceTensor> expected = reference(*graph_, inputs);
  int lost = 0;
  for (size_t t = 0; t < graph_->tensors().size(); ++t) {
    const auto value = session->tensor(graph_->tensor(static_cast<TensorId>(t)).name);
    if (!value.ok()) {
      EXPECT_EQ(value.status().code(), StatusCode::kFailedPrecondition);
      ++lost;
      continue;
    }
    for (size_t n = 0; n < expected[t].values.size(); ++n) {
      ASSERT_NEAR(value->data<float>()[n], expected[t].values[n], 1e-4);
    }
  }
  EXPECT_GT(lost, 0);
}

TEST_F(SessionTest, IsNotReentrant) {
  options_.strategy = "cpu";
  const auto session = create();
  ASSERT_TRUE(session);
  std::atomic<bool> inside = false;
  std::atomic<bool> release = false;
  platform_->cpu().faults.set([&](const Slice&) {
    inside = true;
    while (!release) std::this_thread::yield();
    return Status();
  });
  const std::vector<HostTensor> inputs = random_inputs(random_, *graph_);
  std::thread first([&] {
    std::vector<HostTensor> outputs;
    EXPECT_TRUE(session->run(inputs, &outputs).ok());
  });
  while (!inside) std::this_thread::yield();
  std::vector<HostTensor> outputs;
  EXPECT_EQ(session->run(inputs, &outputs).code(), StatusCode::kFailedPrecondition);
  release = true;
  first.join();
}

TEST_F(SessionTest, TwoSessionsOnOnePlatformTakeTurns) {
  const auto one = create();
  options_.strategy = "gpu";
  const auto two = create();
  ASSERT_TRUE(one && two);
  const auto run = [this](Session& session, uint64_t seed) {
    Random random(seed);
    for (int i = 0; i < 10; ++i) {
      const std::vector<HostTensor> inputs = random_inputs(random, *graph_);
      std::vector<HostTensor> outputs;
      const Status status = session.run(inputs, &outputs);
      ASSERT_TRUE(status.ok()) << status.message();
      expect_close(*graph_, inputs, outputs);
    }
  };
  std::thread other([&] { run(*two, 1); });
  run(*one, 2);
  other.join();
}

TEST_F(SessionTest, CancelFromAnotherThread) {
  options_.strategy = "cpu";
  const auto session = create();
  ASSERT_TRUE(session);
  std::atomic<bool> inside = false;
  std::atomic<bool> cancelled = false;
  platform_->cpu().faults.set([&](const Slice&) {
    inside = true;
    while (!cancelled) std::this_thread::sleep_for(1ms);
    return Status();
  });
  std::thread canceller([&] {
    while (!inside) std::this_thread::yield();
    session->cancel();
    cancelled = true;
  });
  const std::vector<HostTensor> inputs = random_inputs(random_, *graph_);
  std::vector<HostTensor> outputs;
  EXPECT_EQ(session->run(inputs, &outputs).code(), StatusCode::kCancelled);
  canceller.join();
  platform_->cpu().faults.set({});
  ASSERT_TRUE(session->run(inputs, &outputs).ok());
  expect_close(*graph_, inputs, outputs);
}

class FallBackTest : public SessionTest {
 protected:
  FallBackTest() {
    options_.fall_back = true;
    options_.schedule = std::make_shared<Schedule>(testing::random_schedule(random_, *graph_, 2));
  }
};

TEST_F(FallBackTest, RunsOnTheOtherLaneAndSaysSo) {
  const auto session = create();
  ASSERT_TRUE(session);
  const std::vector<HostTensor> inputs = random_inputs(random_, *graph_);
  std::vector<HostTensor> outputs;

  platform_->queue().launch_faults.set([](const Slice&) { return device_error("it is gone"); });
  ASSERT_TRUE(session->run(inputs, &outputs).ok());
  EXPECT_THAT(session->fall_back_reason(), AllOf(HasSubstr("lane cpu0"), HasSubstr("it is gone")));
  expect_close(*graph_, inputs, outputs);
  platform_->queue().launch_faults.set({});

  platform_->cpu().faults.set([](const Slice&) -> Status { throw std::runtime_error("oops"); });
  ASSERT_TRUE(session->run(inputs, &outputs).ok());
  EXPECT_THAT(session->fall_back_reason(), AllOf(HasSubstr("lane gpu0"), HasSubstr("oops")));
  expect_close(*graph_, inputs, outputs);
  platform_->cpu().faults.set({});

  ASSERT_TRUE(session->run(inputs, &outputs).ok());
  EXPECT_TRUE(session->fall_back_reason().empty());
  expect_close(*graph_, inputs, outputs);
}

TEST_F(FallBackTest, AfterAStall) {
  options_.deadline = 400ms;
  const auto session = create();
  ASSERT_TRUE(session);
  std::atomic<bool> slow = true;
  platform_->queue().device_faults.set([&](const Slice&) {
    if (slow.exchange(false)) std::this_thread::sleep_for(900ms);
    return Status();
  });
  const std::vector<HostTensor> inputs = random_inputs(random_, *graph_);
  std::vector<HostTensor> outputs;
  const Status status = session->run(inputs, &outputs);
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_THAT(session->fall_back_reason(), AllOf(HasSubstr("lane cpu0"), HasSubstr("late")));
  expect_close(*graph_, inputs, outputs);
}

TEST_F(FallBackTest, NoLaneLeft) {
  platform_ = std::make_shared<FakePlatform>(/*with_queue=*/false);
  options_.schedule = nullptr;
  options_.strategy = "cpu";
  const auto session = create();
  ASSERT_TRUE(session);
  platform_->cpu().faults.set([](const Slice&) { return device_error("it is gone"); });
  const std::vector<HostTensor> inputs = random_inputs(random_, *graph_);
  std::vector<HostTensor> outputs;
  const Status status = session->run(inputs, &outputs);
  EXPECT_EQ(status.code(), StatusCode::kDeviceError);
  EXPECT_THAT(status.message(), HasSubstr("no lane is left"));
}

TEST_F(FallBackTest, NotAfterACancel) {
  const auto session = create();
  ASSERT_TRUE(session);
  platform_->cpu().faults.set([&](const Slice&) {
    session->cancel();
    return Status();
  });
  platform_->queue().device_faults.set([&](const Slice&) {
    session->cancel();
    return Status();
  });
  const std::vector<HostTensor> inputs = random_inputs(random_, *graph_);
  std::vector<HostTensor> outputs;
  EXPECT_EQ(session->run(inputs, &outputs).code(), StatusCode::kCancelled);
}

}  // namespace
}  // namespace tandem
