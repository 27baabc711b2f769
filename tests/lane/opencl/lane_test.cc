// The lane itself: device, shared memory, synchronisation both ways, events, the threads' masks.
#include "lane/lane.h"

#include <atomic>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/lane/opencl/test_lane.h"

namespace tandem::opencl {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

struct Board {
  ProgressCounter host;
  ProgressCounter device;
  ProgressCounter abort;
};

class OpenClLaneTest : public ::testing::Test {
 protected:
  void SetUp() override {
    lane_ = test_lane();
    ASSERT_NE(lane_, nullptr);
    if (computes_on_own_memory(*lane_)) GTEST_SKIP() << "the device cannot poll counters";
    auto memory = lane_->allocate(sizeof(Board));
    ASSERT_TRUE(memory.ok());
    memory_ = *memory;
    board_ = new (memory_.get()) Board();
  }

  LaneImpl* lane_ = nullptr;
  std::shared_ptr<std::byte> memory_;
  Board* board_ = nullptr;
};

TEST_F(OpenClLaneTest, DescribesItself) {
  const LaneInfo& info = lane_->info();
  EXPECT_EQ(info.kind, LaneKind::kOpenCl);
  EXPECT_TRUE(info.asynchronous);
  EXPECT_FALSE(info.description.empty());
  EXPECT_FALSE(info.fingerprint.empty());
  EXPECT_THAT(lane_->warnings(), ::testing::IsEmpty());
}

TEST_F(OpenClLaneTest, WorkersHaveTheLanesMask) {
  if (!lane_->traits().single_item_groups) GTEST_SKIP() << "the device is not the host CPU";
  const std::vector<int>& cores = lane_->info().cores;
  ASSERT_EQ(cores.size(), 1u);
  EXPECT_THAT(lane_->worker_masks(), ::testing::ElementsAre(std::to_string(cores[0])));
}

TEST_F(OpenClLaneTest, OtherCoresAreRefusedOnceTheDriverRuns) {
  if (!lane_->traits().single_item_groups) GTEST_SKIP() << "the device is not the host CPU";
  OpenClLaneOptions options;
  options.cores = {100000};
  const auto lane = LaneImpl::create(options);
  EXPECT_EQ(lane.status().code(), StatusCode::kInvalidArgument);
}

TEST_F(OpenClLaneTest, AnUnknownDeviceIsNotFoundAndTheOthersAreNamed) {
  OpenClLaneOptions options;
  options.device = "no such device";
  const auto lane = make_opencl_lane(options);
  ASSERT_EQ(lane.status().code(), StatusCode::kNotFound);
  EXPECT_THAT(lane.status().message(), ::testing::HasSubstr(list_opencl_devices().at(0).device));
}

TEST_F(OpenClLaneTest, SharedMemoryIsZeroedAndAligned) {
  const auto memory = lane_->allocate(1000);
  ASSERT_TRUE(memory.ok());
  EXPECT_EQ(reinterpret_cast<uintptr_t>(memory->get()) % 64, 0u);
  for (size_t i = 0; i < 1000; ++i) ASSERT_EQ(memory->get()[i], std::byte{0});
}

TEST_F(OpenClLaneTest, SelfTestPasses) {
  ASSERT_TRUE(lane_->self_test().ok()) << lane_->self_test().to_string();
}

// PoCL's mapped memory is the host's: whatever a device does there, it must say so itself.
TEST_F(OpenClLaneTest, MappedMemoryWorksAsItsSelfTestSays) {
  const Status tested = lane_->pinned_self_test();
  if (!tested.ok()) GTEST_SKIP() << tested.message();
  auto memory = lane_->allocate_pinned(sizeof(Board));
  ASSERT_TRUE(memory.ok()) << memory.status().to_string();
  Board* board = new (memory->get()) Board();
  ASSERT_TRUE(lane_->enqueue_wait(&board->host, 3, &board->abort.value, seconds(30)).ok());
  ASSERT_TRUE(lane_->enqueue_signal(&board->device, 7).ok());
  ASSERT_TRUE(lane_->flush().ok());
  std::this_thread::sleep_for(milliseconds(20));
  EXPECT_EQ(board->device.value.load(), 0u);
  board->host.value.store(3, std::memory_order_release);
  ASSERT_TRUE(lane_->finish().ok());
  EXPECT_EQ(board->device.value.load(), 7u);
  EXPECT_EQ(board->abort.value.load(), 0u);
  ASSERT_TRUE(lane_->enqueue_wait(&board->host, 4, &board->abort.value, milliseconds(5)).ok());
  ASSERT_TRUE(lane_->finish().ok());
  EXPECT_EQ(board->abort.value.load(), 1u);
}

TEST_F(OpenClLaneTest, AWaitEndsWhenTheCounterArrivesEvenAfterWrapping) {
  board_->host.value = 0xfffffffe;
  ASSERT_TRUE(lane_->enqueue_wait(&board_->host, 1, &board_->abort.value, seconds(30)).ok());
  ASSERT_TRUE(lane_->enqueue_signal(&board_->device, 7).ok());
  ASSERT_TRUE(lane_->flush().ok());
  std::this_thread::sleep_for(milliseconds(20));
  EXPECT_EQ(board_->device.value.load(), 0u);
  board_->host.value.store(2, std::memory_order_release);
  ASSERT_TRUE(lane_->drain(Clock::now() + seconds(10)).ok());
  EXPECT_EQ(board_->device.value.load(), 7u);
  EXPECT_EQ(board_->abort.value.load(), 0u);
}

TEST_F(OpenClLaneTest, AWaitGivesUpAfterItsTimeAndAborts) {
  ASSERT_TRUE(lane_->enqueue_wait(&board_->host, 1, &board_->abort.value, milliseconds(5)).ok());
  ASSERT_TRUE(lane_->drain(Clock::now() + seconds(10)).ok());
  EXPECT_EQ(board_->abort.value.load(), 1u);
}

TEST_F(OpenClLaneTest, TheAbortFlagEndsAWait) {
  ASSERT_TRUE(lane_->enqueue_wait(&board_->host, 1, &board_->abort.value, seconds(30)).ok());
  ASSERT_TRUE(lane_->flush().ok());
  board_->abort.value.store(1);
  EXPECT_TRUE(lane_->drain(Clock::now() + seconds(10)).ok());
}

TEST_F(OpenClLaneTest, TheQueueWaitsForAHostEvent) {
  auto event = lane_->enqueue_host_wait();
  ASSERT_TRUE(event.ok());
  ASSERT_TRUE(lane_->enqueue_signal(&board_->device, 3).ok());
  ASSERT_TRUE(lane_->flush().ok());
  EXPECT_EQ(lane_->drain(Clock::now() + milliseconds(30)).code(), StatusCode::kDeadlineExceeded);
  EXPECT_EQ(board_->device.value.load(), 0u);
  std::thread([&event] { EXPECT_TRUE((*event)->set().ok()); }).join();
  EXPECT_TRUE(lane_->drain(Clock::now() + seconds(10)).ok());
  EXPECT_EQ(board_->device.value.load(), 3u);
}

TEST_F(OpenClLaneTest, AnAbandonedHostEventLeavesAUsableQueue) {
  {
    auto event = lane_->enqueue_host_wait();
    ASSERT_TRUE(event.ok());
    ASSERT_TRUE(lane_->enqueue_signal(&board_->device, 3).ok());
    (*event)->abandon();
  }
  { const auto forgotten = lane_->enqueue_host_wait(); }
  ASSERT_TRUE(lane_->enqueue_signal(&board_->device, 5).ok());
  EXPECT_TRUE(lane_->drain(Clock::now() + seconds(10)).ok());
  EXPECT_EQ(board_->device.value.load(), 5u);
}

TEST_F(OpenClLaneTest, ADeviceEventComesAfterWhatWasEnqueuedBefore) {
  for (uint32_t value = 1; value <= 20; ++value) {
    ASSERT_TRUE(lane_->enqueue_signal(&board_->device, value).ok());
    auto event = lane_->enqueue_device_event();
    ASSERT_TRUE(event.ok());
    ASSERT_TRUE(lane_->flush().ok());
    ASSERT_TRUE((*event)->wait(Clock::now() + seconds(10)).ok());
    EXPECT_EQ(board_->device.value.load(), value);
  }
}

TEST_F(OpenClLaneTest, ReportsImplementationsWithoutPacking) {
  Graph graph;
  const TensorId x =
      graph.add_input("x", DataType::kFloat32, {1, 64, 14, 14}, {Order::kChannelsLast, true});
  const TensorId w = graph.add_constant("w", HostTensor(DataType::kFloat32, {96, 64, 5, 5}));
  const auto y = graph.add("conv", ConvAttributes{.kernel = {5, 5}, .pads = {2, 2, 2, 2}}, {x, w},
                           {}, {Order::kChannelsLast, true});
  ASSERT_TRUE(y.ok()) << y.status().to_string();
  Memory memory(lane_, graph);
  auto program = lane_->load(graph, memory.bindings);
  ASSERT_TRUE(program.ok());
  const auto info = (*program)->implementation({0, 1, 32, 96}, 0);
  ASSERT_TRUE(info.ok()) << info.status().to_string();
  EXPECT_EQ((*program)->bytes(), 0u);
  const auto task = (*program)->bind({0, 1, 32, 96}, 0);
  ASSERT_TRUE(task.ok());
  EXPECT_EQ((*task)->info().name, info->name);
  EXPECT_EQ((*task)->info().work_groups, info->work_groups);
  EXPECT_GT((*program)->bytes(), 96u * 64 * 25 * sizeof(float));
  EXPECT_GE(info->computed_flops, 2.0 * 64 * 196 * 64 * 25);
  if (lane_->traits().single_item_groups) {
    EXPECT_EQ(info->name, "cl_conv_14x32");
    EXPECT_EQ(info->local_size[0], 1);
    EXPECT_EQ(info->global_size[0] * info->global_size[1], info->work_groups);
  }
}

}  // namespace
}  // namespace tandem::opencl
