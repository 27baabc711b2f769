// Several sessions at once on this machine's lanes.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "graph/reference.h"
#include "schedule/schedule.h"
#include "support/clock.h"
#include "tests/runtime/real_platform.h"
#include "tests/schedule/random_graph.h"

namespace tandem {
namespace {

using testing::Random;
using testing::real_lane_options;
using testing::real_platform;

// A model with inputs and right answers.
struct Work {
  explicit Work(uint64_t seed, int operators = 25) {
    Random random(seed);
    graph = std::make_shared<Graph>(testing::random_graph(random, operators));
    for (int i = 0; i < 2; ++i) {
      inputs.push_back(testing::random_inputs(random, *graph));
      expected.push_back(reference(*graph, inputs.back()));
    }
    schedule = std::make_shared<Schedule>(testing::random_schedule(
        random, *graph, static_cast<int>(real_platform()->lanes().size())));
  }
  void expect_right_run(Session& session, int i) const {
    std::vector<HostTensor> outputs;
    const Status status = session.run(inputs[i % 2], &outputs);
    ASSERT_TRUE(status.ok()) << status.message();
    for (size_t o = 0; o < outputs.size(); ++o) {
      const std::vector<double>& wanted = expected[i % 2][graph->outputs()[o]].values;
      for (size_t n = 0; n < wanted.size(); ++n) {
        ASSERT_NEAR(outputs[o].data<float>()[n], wanted[n], 1e-3) << "run " << i;
      }
    }
  }

  std::shared_ptr<const Graph> graph;
  std::shared_ptr<const Schedule> schedule;
  std::vector<std::vector<HostTensor>> inputs;
  std::vector<std::vector<ReferenceTensor>> expected;
};

std::unique_ptr<Session> create(const Work& work, const std::string& strategy, SyncMechanism sync) {
  SessionOptions options = real_lane_options(strategy);
  options.sync = sync;
  if (strategy == "cut") options.schedule = work.schedule;
  auto session = Session::create(Model(work.graph), real_platform(), options);
  if (!session.ok()) {
    ADD_FAILURE() << session.status().message();
    return nullptr;
  }
  return std::move(session).value();
}

TEST(Sessions, OfAllKindsAtOnce) {
  if (!testing::has_queue_lane()) GTEST_SKIP() << "no OpenCL lane";
  const Work one(1);
  const Work two(2);
  struct Kind {
    const Work* work;
    const char* strategy;
    SyncMechanism sync;
  };
  std::vector<Kind> kinds = {
      {&one, "cut", SyncMechanism::kAuto}, {&one, "cut", SyncMechanism::kEvent},
      {&two, "cut", SyncMechanism::kAuto}, {&two, "cpu", SyncMechanism::kAuto},
      {&one, "gpu", SyncMechanism::kAuto}, {&two, "intra", SyncMechanism::kEvent}};
  std::vector<std::unique_ptr<Session>> sessions;
  for (const Kind& kind : kinds) {
    sessions.push_back(create(*kind.work, kind.strategy, kind.sync));
    ASSERT_TRUE(sessions.back());
  }
  std::vector<std::thread> threads;
  std::vector<std::atomic<int>> done(kinds.size());
  std::atomic<bool> stop = false;
  for (size_t s = 0; s < sessions.size(); ++s) {
    threads.emplace_back([&, s] {
      for (int i = 0; !stop; ++i) {
        kinds[s].work->expect_right_run(*sessions[s], i);
        if (::testing::Test::HasFatalFailure()) return;
        ++done[s];
      }
    });
  }
  // Until the slowest has had its 40 runs: nobody starves.
  const auto slowest = [&] {
    int least = done[0];
    for (const auto& count : done) least = std::min(least, count.load());
    return least;
  };
  const auto give_up = Clock::now() + std::chrono::seconds(60);
  while (slowest() < 40 && Clock::now() < give_up && !::testing::Test::HasFailure()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_GE(slowest(), 40);
}

TEST(Sessions, CreatedWhileAnotherRuns) {
  if (!testing::has_queue_lane()) GTEST_SKIP() << "no OpenCL lane";
  const Work one(3);
  const auto session = create(one, "cut", SyncMechanism::kAuto);
  ASSERT_TRUE(session);
  std::atomic<bool> stop = false;
  std::thread runner([&] {
    for (int i = 0; !stop && !::testing::Test::HasFailure(); ++i) one.expect_right_run(*session, i);
  });
  for (int i = 0; i < 4; ++i) {
    const Work other(10 + i, 15);
    const auto created = create(other, i == 3 ? "intra" : "cut", SyncMechanism::kAuto);
    if (created) other.expect_right_run(*created, 0);
  }
  stop = true;
  runner.join();
}

TEST(Sessions, DestroyedWhileRunning) {
  if (!testing::has_queue_lane()) GTEST_SKIP() << "no OpenCL lane";
  const Work work(4, 60);
  for (const SyncMechanism sync : {SyncMechanism::kAuto, SyncMechanism::kEvent}) {
    for (int i = 0; i < 8; ++i) {
      auto session = create(work, "cut", sync);
      ASSERT_TRUE(session);
      Session* const raw = session.get();
      std::atomic<bool> ended = false;
      std::thread runner([&, raw] {
        std::vector<HostTensor> outputs;
        Status status = failed_precondition("");
        while (status.code() == StatusCode::kFailedPrecondition) {
          status = raw->run(work.inputs[0], &outputs);
        }
        ended = true;
        EXPECT_TRUE(status.ok() || status.code() == StatusCode::kCancelled) << status.message();
      });
      // A refused run says that the other thread is inside.
      std::vector<HostTensor> outputs;
      while (!ended && session->run(work.inputs[0], &outputs).ok()) {
      }
      std::this_thread::sleep_for(std::chrono::microseconds(100 * i));
      session.reset();
      runner.join();
    }
  }
}

}  // namespace
}  // namespace tandem
