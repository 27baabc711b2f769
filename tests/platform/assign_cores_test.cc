#include "platform/assign_cores.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tandem {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Topology machine(std::vector<CoreKind> kinds, int processors) {
  Topology topology;
  topology.processors = processors;
  topology.kinds = std::move(kinds);
  return topology;
}

const Topology kTwoCores = machine({{{0, 1}}}, 2);
const Topology kBigLittle = machine({{{4, 5, 6, 7}}, {{0, 1, 2, 3}}}, 8);

TEST(AssignCoresTest, HostOpenClDeviceGetsCore0OfTwo) {
  const auto cores = assign_cores(kTwoCores, {}, true);
  ASSERT_TRUE(cores.ok());
  EXPECT_THAT(cores->opencl_cores, ElementsAre(0));
  EXPECT_THAT(cores->cpu_lanes, ElementsAre(CpuLaneCores{"cpu", {1}}));
}

TEST(AssignCoresTest, WithoutHostOpenClDeviceOneCpuLaneHasAll) {
  const auto cores = assign_cores(kTwoCores, {}, false);
  ASSERT_TRUE(cores.ok());
  EXPECT_THAT(cores->opencl_cores, IsEmpty());
  EXPECT_THAT(cores->cpu_lanes, ElementsAre(CpuLaneCores{"cpu", {0, 1}}));
}

TEST(AssignCoresTest, UseGpuFalseLeavesAllCoresToCpuLanes) {
  PlatformOptions options;
  options.use_gpu = false;
  const auto cores = assign_cores(kTwoCores, options, true);
  ASSERT_TRUE(cores.ok());
  EXPECT_THAT(cores->opencl_cores, IsEmpty());
  EXPECT_THAT(cores->cpu_lanes, ElementsAre(CpuLaneCores{"cpu", {0, 1}}));
}

TEST(AssignCoresTest, OneCoreIsNotShared) {
  const auto cores = assign_cores(machine({{{3}}}, 4), {}, true);
  ASSERT_TRUE(cores.ok());
  EXPECT_THAT(cores->opencl_cores, IsEmpty());
  EXPECT_THAT(cores->cpu_lanes, ElementsAre(CpuLaneCores{"cpu", {3}}));
}

TEST(AssignCoresTest, ACpuLanePerKindFastestFirst) {
  const auto cores = assign_cores(kBigLittle, {}, false);
  ASSERT_TRUE(cores.ok());
  EXPECT_THAT(cores->cpu_lanes, ElementsAre(CpuLaneCores{"cpu.big", {4, 5, 6, 7}},
                                            CpuLaneCores{"cpu.little", {0, 1, 2, 3}}));
}

TEST(AssignCoresTest, AKindThatOpenClTookEntirelyIsNoLane) {
  const auto cores = assign_cores(kBigLittle, {}, true);
  ASSERT_TRUE(cores.ok());
  EXPECT_THAT(cores->opencl_cores, ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(cores->cpu_lanes, ElementsAre(CpuLaneCores{"cpu", {4, 5, 6, 7}}));
}

TEST(AssignCoresTest, ThreeOddCoresGoOneAndTwo) {
  const auto cores = assign_cores(machine({{{1, 3, 5}}}, 8), {}, true);
  ASSERT_TRUE(cores.ok());
  EXPECT_THAT(cores->opencl_cores, ElementsAre(1));
  EXPECT_THAT(cores->cpu_lanes, ElementsAre(CpuLaneCores{"cpu", {3, 5}}));
}

TEST(AssignCoresTest, GivenOpenClCoresLeaveTheRest) {
  PlatformOptions options;
  options.opencl_cores = {1};
  const auto cores = assign_cores(kTwoCores, options, true);
  ASSERT_TRUE(cores.ok());
  EXPECT_THAT(cores->opencl_cores, ElementsAre(1));
  EXPECT_THAT(cores->cpu_lanes, ElementsAre(CpuLaneCores{"cpu", {0}}));
}

TEST(AssignCoresTest, GivenCpuLanesLeaveTheRestToOpenCl) {
  PlatformOptions options;
  options.cpu_lanes = {{4, 5}, {0}};
  const auto cores = assign_cores(kBigLittle, options, true);
  ASSERT_TRUE(cores.ok());
  EXPECT_THAT(cores->opencl_cores, ElementsAre(1, 2, 3, 6, 7));
  EXPECT_THAT(cores->cpu_lanes,
              ElementsAre(CpuLaneCores{"cpu.big", {4, 5}}, CpuLaneCores{"cpu.little", {0}}));
}

TEST(AssignCoresTest, RefusesOverlap) {
  PlatformOptions options;
  options.opencl_cores = {0};
  options.cpu_lanes = {{0, 1}};
  const auto cores = assign_cores(kTwoCores, options, true);
  ASSERT_FALSE(cores.ok());
  EXPECT_THAT(cores.status().message(), HasSubstr("core 0"));
  EXPECT_THAT(cores.status().message(), HasSubstr("disjoint"));
}

TEST(AssignCoresTest, RefusesCoresOutsideMachineAndMask) {
  PlatformOptions options;
  options.opencl_cores = {9};
  const auto outside = assign_cores(kTwoCores, options, true);
  ASSERT_FALSE(outside.ok());
  EXPECT_THAT(outside.status().message(), HasSubstr("has cores 0-1"));

  options.opencl_cores = {1};
  const auto masked = assign_cores(machine({{{0}}}, 2), options, true);
  ASSERT_FALSE(masked.ok());
  EXPECT_THAT(masked.status().message(), HasSubstr("may use"));
}

TEST(AssignCoresTest, RefusesALaneWithoutCores) {
  PlatformOptions options;
  options.cpu_lanes = {{}};
  EXPECT_FALSE(assign_cores(kTwoCores, options, false).ok());
}

}  // namespace
}  // namespace tandem
