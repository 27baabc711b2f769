// Sessions that share lanes, and sessions, models and platforms that go while others are at work.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "profile/lane_crew.h"
#include "schedule/schedule.h"
#include "tandem/session.h"
#include "tests/runtime/fake_platform.h"
#include "tests/schedule/random_graph.h"

namespace tandem {
namespace {

using namespace std::chrono_literals;  // NOLINT: literals only
using testing::FakePlatform;
using testing::Random;
using testing::random_inputs;

std::shared_ptr<const Graph> make_graph(uint64_t seed = 11, int operators = 20) {
  Random random(seed);
  return std::make_shared<Graph>(testing::random_graph(random, operators));
}

void expect_close(const Graph& graph, const std::vector<HostTensor>& inputs,
                  const std::vector<HostTensor>& outputs) {
  const std::vector<ReferenceTensor> expected = reference(graph, inputs);
  ASSERT_EQ(outputs.size(), graph.outputs().size());
  for (size_t i = 0; i < outputs.size(); ++i) {
    const ReferenceTensor& wanted = expected[graph.outputs()[i]];
    for (size_t n = 0; n < wanted.values.size(); ++n) {
      ASSERT_NEAR(outputs[i].data<float>()[n], wanted.values[n], 1e-4);
    }
  }
}

class SessionLifetimeTest : public ::testing::TestWithParam<SyncMechanism> {
 protected:
  std::unique_ptr<Session> create(const std::shared_ptr<const Graph>& graph,
                                  const std::string& strategy = "") {
    SessionOptions options;
    options.sync = GetParam();
    options.calibration_dir = "none";
    options.calibration_seconds = 0.1;
    options.strategy = strategy;
    if (strategy.empty()) {
      options.schedule = std::make_shared<Schedule>(testing::random_schedule(random_, *graph, 2));
    }
    auto session = Session::create(Model(graph), platform_, options);
    if (!session.ok()) {
      ADD_FAILURE() << session.status().message();
      return nullptr;
    }
    return std::move(session).value();
  }
  // The CPU lane takes its time over every slice, and says that it has begun.
  void slow_down() {
    platform_->cpu().faults.set([this](const Slice&) {
      inside_ = true;
      std::this_thread::sleep_for(5ms);
      return Status();
    });
  }

  std::shared_ptr<FakePlatform> platform_ = std::make_shared<FakePlatform>();
  std::atomic<bool> inside_ = false;
  Random random_{3};
};

TEST_P(SessionLifetimeTest, DestroyedWhileRunning) {
  const auto graph = make_graph();
  const std::vector<HostTensor> inputs = random_inputs(random_, *graph);
  slow_down();
  int cancelled_runs = 0;
  for (int i = 0; i < 10; ++i) {
    auto session = create(graph);
    ASSERT_TRUE(session);
    inside_ = false;
    Session* const raw = session.get();
    std::thread runner([&, raw] {
      std::vector<HostTensor> outputs;
      const Status status = raw->run(inputs, &outputs);
      // On a busy machine, it may have come to its end.
      EXPECT_TRUE(status.ok() || status.code() == StatusCode::kCancelled) << status.message();
      cancelled_runs += !status.ok();
    });
    while (!inside_) std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::microseconds(700 * i));
    session.reset();
    runner.join();
  }
  EXPECT_GT(cancelled_runs, 0);
}

TEST_P(SessionLifetimeTest, DestroyedOrCancelledWhileItWaitsForTheLanes) {
  const auto graph = make_graph();
  const std::vector<HostTensor> inputs = random_inputs(random_, *graph);
  auto session = create(graph);
  ASSERT_TRUE(session);
  auto crew = LaneCrew::of(platform_);
  ASSERT_TRUE(crew.ok());
  auto lease = LaneCrew::acquire(*crew, Clock::now() + 1s);
  ASSERT_TRUE(lease.ok());
  for (const bool destroy : {false, true}) {
    Session* const raw = session.get();
    std::atomic<bool> ended = false;
    std::thread runner([&, raw] {
      std::vector<HostTensor> outputs;
      EXPECT_EQ(raw->run(inputs, &outputs).code(), StatusCode::kCancelled);
      ended = true;
    });
    if (destroy) {
      while ((*crew)->waiting() == 0) std::this_thread::yield();
      session.reset();
    } else {
      // A cancel that comes before the run is for nobody.
      while (!ended) {
        session->cancel();
        std::this_thread::sleep_for(1ms);
      }
    }
    runner.join();
  }
}

TEST_P(SessionLifetimeTest, CancelsAtAnyTime) {
  const auto graph = make_graph();
  const std::vector<HostTensor> inputs = random_inputs(random_, *graph);
  const auto session = create(graph);
  ASSERT_TRUE(session);
  std::atomic<bool> stop = false;
  std::thread canceller([&] {
    while (!stop) {
      session->cancel();
      std::this_thread::sleep_for(100us);
    }
  });
  std::vector<HostTensor> outputs;
  for (int i = 0; i < 200; ++i) {
    const Status status = session->run(inputs, &outputs);
    ASSERT_TRUE(status.ok() || status.code() == StatusCode::kCancelled) << status.message();
    if (status.ok()) expect_close(*graph, inputs, outputs);
  }
  stop = true;
  canceller.join();
  ASSERT_TRUE(session->run(inputs, &outputs).ok());
  expect_close(*graph, inputs, outputs);
}

// Many threads call run() of one session: each call is right, or says that another is inside.
TEST_P(SessionLifetimeTest, RunFromManyThreads) {
  const auto graph = make_graph();
  const std::vector<HostTensor> inputs = random_inputs(random_, *graph);
  const auto session = create(graph);
  ASSERT_TRUE(session);
  std::atomic<int> done = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 20; ++i) {
        std::vector<HostTensor> outputs;
        const Status status = session->run(inputs, &outputs);
        if (status.ok()) {
          expect_close(*graph, inputs, outputs);
          ++done;
        } else {
          EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition) << status.message();
          std::this_thread::yield();
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_GT(done, 0);
}

TEST_P(SessionLifetimeTest, ModelAndPlatformGoFirst) {
  auto graph = make_graph();
  auto session = create(graph);
  ASSERT_TRUE(session);
  const std::vector<HostTensor> inputs = random_inputs(random_, *graph);
  std::vector<HostTensor> expected;
  ASSERT_TRUE(session->run(inputs, &expected).ok());
  const std::weak_ptr<const Graph> watched_graph = graph;
  const std::weak_ptr<FakePlatform> watched_platform = platform_;
  graph.reset();
  platform_.reset();
  std::vector<HostTensor> outputs;
  ASSERT_TRUE(session->run(inputs, &outputs).ok());
  for (size_t i = 0; i < outputs.size(); ++i) EXPECT_EQ(outputs[i].bytes, expected[i].bytes);
  session.reset();
  EXPECT_TRUE(watched_graph.expired());
  EXPECT_TRUE(watched_platform.expired());
}

TEST_P(SessionLifetimeTest, ManySessionsAtOnce) {
  constexpr int kSessions = 4;
  std::vector<std::shared_ptr<const Graph>> graphs;
  std::vector<std::unique_ptr<Session>> sessions;
  for (int s = 0; s < kSessions; ++s) {
    graphs.push_back(make_graph(20 + s, 10));
    sessions.push_back(create(graphs.back(), s == 1 ? "cpu" : s == 2 ? "gpu" : ""));
    ASSERT_TRUE(sessions.back());
  }
  std::vector<std::thread> threads;
  for (int s = 0; s < kSessions; ++s) {
    threads.emplace_back([&, s] {
      Random random(s);
      for (int i = 0; i < 20; ++i) {
        const std::vector<HostTensor> inputs = random_inputs(random, *graphs[s]);
        std::vector<HostTensor> outputs;
        const Status status = sessions[s]->run(inputs, &outputs);
        ASSERT_TRUE(status.ok()) << status.message();
        expect_close(*graphs[s], inputs, outputs);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// The lanes are handed on in the order in which they were asked for.
TEST(LaneCrewTest, FirstComeFirstServed) {
  const auto platform = std::make_shared<FakePlatform>();
  auto crew = LaneCrew::of(platform);
  ASSERT_TRUE(crew.ok());
  std::vector<int> order;
  std::vector<std::thread> threads;
  {
    auto lease = LaneCrew::acquire(*crew, Clock::now() + 1s);
    ASSERT_TRUE(lease.ok());
    std::atomic<bool> give_up = true;
    EXPECT_EQ(LaneCrew::acquire(*crew, Clock::now() + 10s, &give_up).status().code(),
              StatusCode::kCancelled);
    EXPECT_EQ(LaneCrew::acquire(*crew, Clock::now() + 10ms).status().code(),
              StatusCode::kDeadlineExceeded);
    for (int i = 0; i < 5; ++i) {
      threads.emplace_back([&, i] {
        auto mine = LaneCrew::acquire(*crew, Clock::now() + 10s);
        ASSERT_TRUE(mine.ok());
        order.push_back(i);  // the lease guards it
      });
      while ((*crew)->waiting() < static_cast<size_t>(i) + 1) std::this_thread::yield();
    }
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(order, ::testing::ElementsAre(0, 1, 2, 3, 4));
}

TEST_P(SessionLifetimeTest, CreatedAndDestroyedWhileOthersRun) {
  const auto graph = make_graph();
  const auto session = create(graph);
  ASSERT_TRUE(session);
  std::atomic<bool> stop = false;
  std::thread runner([&] {
    Random random(1);
    const std::vector<HostTensor> inputs = random_inputs(random, *graph);
    while (!stop) {
      std::vector<HostTensor> outputs;
      const Status status = session->run(inputs, &outputs);
      ASSERT_TRUE(status.ok()) << status.message();
      expect_close(*graph, inputs, outputs);
    }
  });
  for (int i = 0; i < 10; ++i) {
    const auto other_graph = make_graph(50 + i, 15);
    const auto other = create(other_graph, i % 3 == 2 ? "intra" : "");
    ASSERT_TRUE(other);
    const std::vector<HostTensor> inputs = random_inputs(random_, *other_graph);
    std::vector<HostTensor> outputs;
    ASSERT_TRUE(other->run(inputs, &outputs).ok());
    expect_close(*other_graph, inputs, outputs);
  }
  stop = true;
  runner.join();
}

INSTANTIATE_TEST_SUITE_P(Mechanisms, SessionLifetimeTest,
                         ::testing::Values(SyncMechanism::kSvm, SyncMechanism::kEvent),
                         [](const auto& info) {
                           return info.param == SyncMechanism::kSvm ? "Svm" : "Event";
                         });

}  // namespace
}  // namespace tandem
