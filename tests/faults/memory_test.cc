// Too little memory, at load and in runs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <fstream>
#include <limits>

#include "graph/graph.h"
#include "lane/lane.h"
#include "support/memory_left.h"
#include "tests/runtime/real_platform.h"
#include "tests/schedule/random_graph.h"

namespace tandem {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::Random;
using testing::real_lane_options;
using testing::real_platform;

constexpr int64_t kMegabyte = int64_t{1} << 20;

// This process's address space, limited to what it has now and some more, while the object lives.
class LimitedMemory {
 public:
  explicit LimitedMemory(int64_t more) {
    getrlimit(RLIMIT_AS, &before_);
    std::ifstream statm("/proc/self/statm");
    int64_t pages = 0;
    statm >> pages;
    rlimit limit = before_;
    limit.rlim_cur = static_cast<rlim_t>(pages * 4096 + more);
    EXPECT_EQ(setrlimit(RLIMIT_AS, &limit), 0);
  }
  ~LimitedMemory() { setrlimit(RLIMIT_AS, &before_); }
  LimitedMemory(const LimitedMemory&) = delete;
  LimitedMemory& operator=(const LimitedMemory&) = delete;

 private:
  rlimit before_{};
};

// A product with 64 MB of weights; its activations are small.
Model heavy_model() {
  Graph graph;
  graph.name = "heavy";
  const TensorId x = graph.add_input("x", DataType::kFloat32, {2, 4096});
  HostTensor weights(DataType::kFloat32, {4096, 4096});
  for (int64_t i = 0; i < 4096; ++i) weights.data<float>()[i * 4096 + i] = 2;
  const TensorId w = graph.add_constant("w", std::move(weights));
  graph.mark_output(graph.add("product", LinearAttributes{}, {x, w}).value());
  return Model(std::make_shared<Graph>(std::move(graph)));
}

Model identity_model(const Dims& dims) {
  Graph graph;
  graph.name = "wide";
  const TensorId x = graph.add_input("x", DataType::kFloat32, dims);
  graph.mark_output(graph.add("neg", UnaryAttributes{{Function::kNeg}}, {x}).value());
  return Model(std::make_shared<Graph>(std::move(graph)));
}

void expect_doubles(Session& session) {
  HostTensor input(DataType::kFloat32, {2, 4096});
  for (int64_t i = 0; i < input.size(); ++i) input.data<float>()[i] = static_cast<float>(i % 97);
  std::vector<HostTensor> outputs;
  const Status status = session.run({input}, &outputs);
  ASSERT_TRUE(status.ok()) << status.message();
  for (int64_t i = 0; i < input.size(); ++i) {
    ASSERT_EQ(outputs[0].data<float>()[i], 2 * input.data<float>()[i]);
  }
}

class MemoryTest : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "sanitizers end the process where there is no memory";
#endif
    if (GetParam() != std::string("cpu") && !testing::has_queue_lane()) {
      GTEST_SKIP() << "no OpenCL lane";
    }
  }
  static StatusOr<std::unique_ptr<Session>> create(const Model& model) {
    return Session::create(model, real_platform(), real_lane_options(GetParam()));
  }
};

TEST_P(MemoryTest, NoneForWeights) {
  const Model model = heavy_model();
  // Kernels are compiled while there is memory: compilers end the process where there is none.
  ASSERT_TRUE(create(model).ok());
  int refused = 0;
  for (const int64_t megabytes : {1, 8, 24, 48, 62, 80, 120, 160, 1000}) {
    SCOPED_TRACE(std::to_string(megabytes) + " MB");
    {
      const LimitedMemory limit(megabytes * kMegabyte);
      const auto session = create(model);
      if (!session.ok()) {
        EXPECT_EQ(session.status().code(), StatusCode::kResourceExhausted)
            << session.status().message();
        EXPECT_THAT(session.status().message(), HasSubstr("heavy"));
        ++refused;
      }
    }
    if (megabytes < 1000) continue;
    const auto session = create(model);
    ASSERT_TRUE(session.ok()) << session.status().message();
    expect_doubles(**session);
  }
  EXPECT_GE(refused, 3);
}

TEST_P(MemoryTest, NoneForActivations) {
  // Two tensors of 64 GB, more than this machine's memory or not: then it is more than is left.
  const Model model = identity_model({16, 1000, 1'000'000});
  const LimitedMemory limit(2000 * kMegabyte);
  const auto session = create(model);
  ASSERT_FALSE(session.ok());
  EXPECT_EQ(session.status().code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(session.status().message(),
              AllOf(HasSubstr("wide"), HasSubstr("activations"), HasSubstr(" MB")));
}

INSTANTIATE_TEST_SUITE_P(Strategies, MemoryTest, ::testing::Values("cpu", "gpu", "intra"),
                         [](const auto& info) { return info.param; });

TEST(Memory, DevicesAllocateUpToTheirLimit) {
  for (const auto& lane : real_platform()->lanes()) {
    auto* queue_lane = dynamic_cast<QueueLane*>(lane.get());
    if (!queue_lane) continue;
    const auto memory = queue_lane->allocate(size_t{1} << 50);
    ASSERT_FALSE(memory.ok());
    EXPECT_EQ(memory.status().code(), StatusCode::kResourceExhausted);
    EXPECT_THAT(
        memory.status().message(),
        AllOf(HasSubstr("lane gpu needs 1073741824 MB in one piece"), HasSubstr("at most")));
    EXPECT_TRUE(queue_lane->allocate(size_t{1} << 20).ok());
  }
}

TEST(Memory, WhatIsLeft) {
  const uint64_t left = memory_left();
  EXPECT_GT(left, uint64_t{1} << 20);
  EXPECT_LT(left, uint64_t{1} << 50);
  EXPECT_TRUE(check_memory(1000, "a thing needs").ok());
  const Status refused = check_memory(uint64_t{1} << 60, "a thing needs");
  EXPECT_EQ(refused.code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(refused.message(), HasSubstr("a thing needs 1099511627776 MB, and "));
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  const LimitedMemory limit(500 * kMegabyte);
  EXPECT_LE(memory_left(), uint64_t{500} << 20);
  EXPECT_FALSE(check_memory(uint64_t{501} << 20, "a thing needs").ok());
#endif
}

TEST(Memory, NoneForAModelThatIsRead) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers end the process where there is no memory";
#endif
  ASSERT_TRUE(Model::load("zoo:squeezenet1_1").ok());
  int refused = 0;
  for (const int64_t kilobytes : {0, 100, 400, 1000, 3000, 6000, 9000, 15000}) {
    const LimitedMemory limit(kilobytes * 1024);
    const auto model = Model::load("zoo:resnet18");
    if (model.ok()) continue;
    ++refused;
    EXPECT_EQ(model.status().code(), StatusCode::kResourceExhausted) << model.status().message();
    EXPECT_THAT(model.status().message(), HasSubstr("zoo:resnet18"));
  }
  EXPECT_GE(refused, 3);
  EXPECT_TRUE(Model::load("zoo:resnet18").ok());
}

}  // namespace
}  // namespace tandem
