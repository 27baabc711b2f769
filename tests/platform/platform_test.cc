#include "tandem/platform.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "lane/lane.h"
#include "platform/topology.h"

namespace tandem {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

PlatformOptions without_cache() {
  PlatformOptions options;
  options.program_cache_dir = "none";
  return options;
}

TEST(PlatformTest, LanesAreDisjointAndCpuLanesComeFirst) {
  const auto platform = Platform::create(without_cache());
  ASSERT_TRUE(platform.ok()) << platform.status().to_string();
  std::set<int> seen;
  bool asynchronous = false;
  for (const auto& lane : (*platform)->lanes()) {
    EXPECT_FALSE(asynchronous && !lane->info().asynchronous) << "a CPU lane after the OpenCL lane";
    asynchronous = lane->info().asynchronous;
    for (const int core : lane->info().cores) {
      EXPECT_TRUE(seen.insert(core).second) << "core " << core << " is in two lanes";
    }
  }
  EXPECT_EQ((*platform)->lane_names().size(), (*platform)->lanes().size());
}

TEST(PlatformTest, FingerprintIsStableAndDependsOnLanes) {
  const auto first = Platform::create(without_cache());
  const auto second = Platform::create(without_cache());
  PlatformOptions options = without_cache();
  options.use_gpu = false;
  const auto cpu_only = Platform::create(options);
  ASSERT_TRUE(first.ok() && second.ok() && cpu_only.ok());
  EXPECT_THAT((*first)->fingerprint(), Not(IsEmpty()));
  EXPECT_EQ((*first)->fingerprint(), (*second)->fingerprint());
  if ((*first)->lanes().size() > 1) {
    EXPECT_NE((*first)->fingerprint(), (*cpu_only)->fingerprint());
  }
}

TEST(PlatformTest, WithoutGpuThereAreCpuLanesOnly) {
  PlatformOptions options = without_cache();
  options.use_gpu = false;
  const auto platform = Platform::create(options);
  ASSERT_TRUE(platform.ok()) << platform.status().to_string();
  EXPECT_THAT((*platform)->lane_names(), ElementsAre("cpu"));
  EXPECT_THAT((*platform)->warnings(), IsEmpty());
}

TEST(PlatformTest, AnUnknownDeviceIsAnErrorNotAFallBack) {
  PlatformOptions options = without_cache();
  options.opencl_device = "no such device";
  const auto platform = Platform::create(options);
  ASSERT_FALSE(platform.ok());
  EXPECT_EQ(platform.status().code(), StatusCode::kNotFound);
  EXPECT_THAT(platform.status().message(), HasSubstr("no such device"));
}

TEST(PlatformTest, OpenClCoresCannotMoveWithinAProcess) {
  const auto topology = detect_topology();
  ASSERT_TRUE(topology.ok());
  const std::vector<int> cores = allowed_cores(*topology);
  const auto first = Platform::create(without_cache());
  ASSERT_TRUE(first.ok());
  const auto& gpu = (*first)->lanes().back()->info();
  if (!gpu.asynchronous || gpu.cores.empty()) GTEST_SKIP() << "no OpenCL device on the host CPU";
  PlatformOptions options = without_cache();
  options.opencl_cores = {cores.back()};
  ASSERT_NE(options.opencl_cores, gpu.cores);
  const auto second = Platform::create(options);
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.status().code(), StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace tandem
