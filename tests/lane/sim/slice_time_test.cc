#include "lane/sim/slice_time.h"

#include <gtest/gtest.h>

#include <cmath>

#include "lane/sim/gpu_kernels.h"
#include "platform/platform_file.h"

namespace tandem::sim {
namespace {

PlatformModel platform(const std::string& name, const PlatformFileOptions& options = {}) {
  StatusOr<PlatformModel> model = load_platform(name, options);
  EXPECT_TRUE(model.ok()) << model.status().to_string();
  return *model;
}

Workload conv(int64_t size, int64_t in, int64_t out, int64_t kernel, int64_t groups = 1) {
  const StatusOr<Workload> work = parse_workload(
      "conv:" + std::to_string(size) + ":" + std::to_string(in) + ":" + std::to_string(size) + ":" +
      std::to_string(out) + ":" + std::to_string(kernel) + ":1:" + std::to_string(groups));
  EXPECT_TRUE(work.ok()) << work.status().to_string();
  return *work;
}

class EveryPlatform : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(All, EveryPlatform, testing::ValuesIn(platform_names()),
                         [](const auto& info) { return info.param; });

TEST_P(EveryPlatform, MoreWorkIsNotFasterWithinOneImplementation) {
  const PlatformModel model = platform(GetParam());
  for (size_t lane = 0; lane < model.lanes.size(); ++lane) {
    for (const int64_t size : {7, 14, 28, 56}) {
      for (int64_t out = 32; out <= 512; out *= 2) {
        const auto l = static_cast<int>(lane);
        const SliceTime less = slice_time(model, l, conv(size, 64, out, 1));
        const SliceTime more = slice_time(model, l, conv(size, 64, 2 * out, 1));
        if (less.implementation.name != more.implementation.name) continue;
        // A larger block of the same kernel may reuse more of what it loads.
        EXPECT_GT(more.us, 0.8 * less.us) << model.lanes[lane].name << " " << size << " " << out;
        EXPECT_GT(slice_time(model, l, conv(size, 128, out, 1)).us, less.us);
      }
    }
  }
}

TEST_P(EveryPlatform, TimesRespectWhatTheHardwareCanDo) {
  const PlatformModel model = platform(GetParam());
  for (size_t lane = 0; lane < model.lanes.size(); ++lane) {
    double peak = 0;  // FLOP/us
    for (const CoreGroup& group : model.lanes[lane].cores) {
      const Cluster& cluster = model.clusters[group.cluster];
      peak += group.cores * cluster.flops_per_cycle * cluster.mhz;
    }
    if (model.lanes[lane].cores.empty()) {
      peak = model.gpu.compute_units * model.gpu.f16_flops_per_cycle * model.gpu.mhz;
    }
    for (const int64_t channels : {16, 64, 256, 1024}) {
      const Workload work = conv(28, channels, channels, 3);
      const SliceTime time = slice_time(model, static_cast<int>(lane), work);
      // Winograd needs at least 1/4 of the operations that a sum has.
      EXPECT_GT(time.us, work.flops / peak / 4);
      EXPECT_GE(time.implementation.computed_flops * 4.01, work.flops);
      EXPECT_GE(time.memory_share(), 0);
      EXPECT_LE(time.memory_share(), 1);
    }
  }
}

TEST_P(EveryPlatform, ThreadsHelpAtMostAsManyTimes) {
  const PlatformModel model = platform(GetParam());
  for (size_t c = 0; c < model.clusters.size(); ++c) {
    const Workload work = conv(56, 128, 128, 3);
    const auto cluster = static_cast<int>(c);
    const double one = cpu_slice_time(model, {{cluster, 1}}, work).us;
    for (int threads = 2; threads <= model.clusters[c].cores; ++threads) {
      const double us = cpu_slice_time(model, {{cluster, threads}}, work).us;
      EXPECT_GT(us, one / threads);
      EXPECT_LT(us, one);
    }
  }
}

TEST_P(EveryPlatform, LoadsAndLowerClocksSlowDown) {
  const PlatformModel model = platform(GetParam());
  const Workload work = *parse_workload("linear:1:4096:1:4096:1:1:1");
  for (int lane = 0; lane < static_cast<int>(model.lanes.size()); ++lane) {
    const double alone = slice_time(model, lane, work).us;
    Load load;
    load.memory_gbps = model.dram_gbps / 2;
    EXPECT_GE(slice_time(model, lane, work, 0, load).us, alone);
    Load slow;
    slow.cpu_clock = slow.gpu_clock = 0.5;
    const Workload busy = conv(28, 128, 128, 3);
    EXPECT_GT(slice_time(model, lane, busy, 0, slow).us, slice_time(model, lane, busy).us);
    Load hot;
    hot.hot = true;
    EXPECT_LE(slice_time(model, lane, busy, 0, hot).us, slice_time(model, lane, busy).us);
  }
}

TEST(SliceTime, TilesRoundUp) {
  const PlatformModel model = platform("pixel4");
  const std::vector<CoreGroup> one = {{0, 1}};
  // Tiles of 8 columns: 33 channels take the arithmetic of 40.
  const SliceTime odd = cpu_slice_time(model, one, conv(24, 64, 33, 1));
  const SliceTime even = cpu_slice_time(model, one, conv(24, 64, 40, 1));
  EXPECT_DOUBLE_EQ(odd.implementation.computed_flops, even.implementation.computed_flops);
  EXPECT_DOUBLE_EQ(even.implementation.computed_flops, 2.0 * 24 * 24 * 64 * 40);
}

TEST(SliceTime, SlowerCoresHelpLessThanFastOnes) {
  const PlatformModel model = platform("galaxy_s10");
  const Workload work = conv(56, 64, 64, 3);
  const double prime = cpu_slice_time(model, {{0, 1}}, work).us;
  const double primes = cpu_slice_time(model, {{0, 2}}, work).us;
  const double mixed = cpu_slice_time(model, {{0, 1}, {1, 2}}, work).us;
  EXPECT_LT(primes, mixed);
  EXPECT_LT(mixed, prime);
}

TEST(GpuKernels, ImplementationsFollowThePublicRules) {
  const PlatformModel adreno = platform("pixel4");
  const PlatformModel mali = platform("galaxy_s10");
  const auto kernel = [](const PlatformModel& model, const Workload& work) {
    return plan_kernel(model.gpu, work, true).kernel;
  };
  EXPECT_EQ(kernel(adreno, conv(56, 64, 64, 3)), Kernel::kConvGeneric);
  EXPECT_EQ(kernel(mali, conv(56, 64, 64, 3)), Kernel::kWinograd);
  EXPECT_EQ(kernel(mali, conv(14, 256, 256, 3)), Kernel::kConvGeneric);  // 16 tiles
  EXPECT_EQ(kernel(adreno, conv(112, 16, 16, 1)), Kernel::kConvConstants);
  EXPECT_EQ(kernel(mali, conv(112, 16, 16, 1)), Kernel::kConvGeneric);
  EXPECT_EQ(kernel(adreno, conv(1, 256, 64, 1)), Kernel::kFullyConnected);
  EXPECT_EQ(kernel(adreno, conv(28, 64, 64, 3, 4)), Kernel::kConvGrouped);
}

TEST(GpuKernels, WorkGroupsAreAsDeepAsDividesTheGrid) {
  const PlatformModel model = platform("pixel4");
  // 224 channels: 56 slices, in pairs 28; 232: 29 of them, which is prime.
  const KernelPlan even = plan_kernel(model.gpu, conv(56, 64, 224, 1), true);
  EXPECT_EQ(even.block[0], 2);
  EXPECT_EQ(even.block[3], 2);
  EXPECT_EQ(even.grid[2], 28);
  EXPECT_EQ(even.group[2], 28);
  EXPECT_EQ(even.group[0] * even.group[1], 9);
  // A grid of 67 is prime and more than 64: work-groups are one deep.
  EXPECT_EQ(plan_kernel(model.gpu, conv(56, 64, 67 * 8, 1), true).group[2], 1);
}

TEST(Noise, IsDeterministicLogNormalAndLargerForShortSlices) {
  const PlatformModel model = platform("pixel4");
  EXPECT_EQ(slice_noise(model, 100, 7), slice_noise(model, 100, 7));
  EXPECT_NE(slice_noise(model, 100, 7), slice_noise(model, 100, 8));
  const auto cv = [&](const auto& noise) {
    double sum = 0;
    double squares = 0;
    constexpr int kRuns = 20000;
    for (int i = 0; i < kRuns; ++i) {
      const double factor = noise(mix(1, i));
      EXPECT_GT(factor, 0);
      sum += factor;
      squares += factor * factor;
    }
    const double mean = sum / kRuns;
    EXPECT_NEAR(mean, 1, 0.01);
    return std::sqrt(squares / kRuns - mean * mean);
  };
  const auto run = [&](int lane) {
    return cv([&](uint64_t key) { return run_noise(model, lane, key); });
  };
  const auto slice = [&](double us) {
    return cv([&](uint64_t key) { return slice_noise(model, us, key); });
  };
  EXPECT_NEAR(run(0), model.noise.cpu_cv, 0.0003);
  EXPECT_NEAR(run(1), model.noise.little_cv, 0.002);
  EXPECT_NEAR(run(2), model.noise.gpu_cv, 0.002);
  EXPECT_NEAR(slice(100), model.noise.jitter_us / 100, 0.002);
  EXPECT_GT(slice(20), 10 * slice(1e4));
}

TEST(Workload, TextAndBack) {
  for (const char* text : {"conv:56:64:56:128:3:1:1", "conv:28x14:64:28x14:128:1x7:1:4",
                           "linear:197x1:768:197x1:3072:1:1:1", "matmul:128x1:64:128x1:128:1:1:12",
                           "concat:14:40:14:156:2:1:1", "elementwise:7:64:7:64:1:1:2",
                           "depthwise:31:384:14:384:5:2:384"}) {
    const StatusOr<Workload> work = parse_workload(text);
    ASSERT_TRUE(work.ok()) << work.status().to_string();
    EXPECT_EQ(to_text(*work), text);
  }
  EXPECT_EQ(parse_workload("conv:56:64:56:128:3:1:1")->flops, 2.0 * 56 * 56 * 128 * 64 * 9);
  for (const char* wrong :
       {"", "conv", "conv:1:2:3", "conv:a:64:56:128:3:1:1", "conv:56:64:56:128:3:1:5",
        "sort:1:1:1:1:1:1:1", "conv:56:0:56:128:3:1:1", "conv:56:64:56:128:3:1:1:1"}) {
    EXPECT_FALSE(parse_workload(wrong).ok()) << wrong;
  }
}

}  // namespace
}  // namespace tandem::sim
