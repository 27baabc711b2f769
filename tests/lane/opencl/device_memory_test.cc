// Memory of the device's own: both ways of copying, and the lane's mirror of what is bound to it.
#include "lane/opencl/device_memory.h"

#include <numeric>

#include "gtest/gtest.h"
#include "tests/lane/opencl/test_lane.h"

namespace tandem::opencl {
namespace {

class DeviceMemoryTest : public ::testing::TestWithParam<CopyMethod> {
 protected:
  void SetUp() override {
    lane_ = test_lane();
    ASSERT_NE(lane_, nullptr);
  }
  void finish() { ASSERT_TRUE(lane_->finish().ok()); }

  LaneImpl* lane_ = nullptr;
};

INSTANTIATE_TEST_SUITE_P(Methods, DeviceMemoryTest,
                         ::testing::Values(CopyMethod::kRectangles, CopyMethod::kRows),
                         [](const auto& info) {
                           return info.param == CopyMethod::kRows ? "Rows" : "Rectangles";
                         });

TEST_P(DeviceMemoryTest, BlocksAreZeroed) {
  const auto block = DeviceBlock::create(lane_->context(), lane_->queue(), 1000, GetParam());
  ASSERT_TRUE(block.ok()) << block.status().to_string();
  std::vector<std::byte> back(1000, std::byte{1});
  ASSERT_TRUE(
      block->enqueue_download(lane_->queue(), back.data(), 0, {.bytes = 1000, .pitch = 1000}).ok());
  finish();
  EXPECT_EQ(back, std::vector<std::byte>(1000));
}

// What is copied there and back is what was there, and nothing around it is touched: channels of an
// image inside another, which lies at an odd place.
TEST_P(DeviceMemoryTest, RegionsComeBackAndNothingElseDoes) {
  const TensorView whole{DataType::kFloat32, {1, 40, 6, 5}, {1440, 1, 240, 48}, nullptr};
  const Region region = {{0, 1}, {16, 32}, {1, 5}, {0, 5}};
  std::vector<float> host(1600);
  std::iota(host.begin(), host.end(), 1.0f);
  const std::vector<float> before = host;
  Graph graph;
  graph.add_input("x", DataType::kFloat32, whole.dims, {Order::kChannelsLast, true});
  TensorBindings bindings{{whole}};
  bindings.views[0].data = host.data() + 48;
  const auto mirror =
      DeviceMirror::create(lane_->context(), lane_->queue(), GetParam(), graph, bindings);
  ASSERT_TRUE(mirror.ok()) << mirror.status().to_string();
  ASSERT_TRUE((*mirror)->enqueue_upload(0, region).ok());
  finish();
  std::fill(host.begin(), host.end(), -1.0f);
  ASSERT_TRUE((*mirror)->enqueue_download(0, region).ok());
  finish();
  std::vector<float> expected(host.size(), -1.0f);
  for (int64_t h = 1; h < 5; ++h) {
    for (int64_t w = 0; w < 5; ++w) {
      for (int64_t c = 16; c < 32; ++c) {
        const int64_t at = 48 + c + 240 * h + 48 * w;
        expected[at] = before[at];
      }
    }
  }
  EXPECT_EQ(host, expected);
}

TEST_P(DeviceMemoryTest, ConstantsAreThereFromTheStart) {
  Graph graph;
  const TensorId c = graph.add_constant("c", HostTensor::floats({3}, {4, 5, 6}));
  std::vector<float> host = {4, 5, 6};
  const auto mirror = DeviceMirror::create(lane_->context(), lane_->queue(), GetParam(), graph,
                                           {{view_of(graph.tensor(c), host.data())}});
  ASSERT_TRUE(mirror.ok()) << mirror.status().to_string();
  host = {0, 0, 0};
  ASSERT_TRUE((*mirror)->enqueue_download(c, {{0, 3}}).ok());
  finish();
  EXPECT_EQ(host, (std::vector<float>{4, 5, 6}));
}

}  // namespace
}  // namespace tandem::opencl
