#include "platform/topology.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <thread>

namespace tandem {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Gt;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

TEST(TopologyTest, DescribesThisMachine) {
  const auto topology = detect_topology();
  ASSERT_TRUE(topology.ok()) << topology.status().to_string();
  EXPECT_THAT(topology->cpu_model, Not(IsEmpty()));
  EXPECT_EQ(topology->processors, sysconf(_SC_NPROCESSORS_CONF));
  const std::vector<int> cores = allowed_cores(*topology);
  ASSERT_THAT(cores, Not(IsEmpty()));
  EXPECT_TRUE(std::is_sorted(cores.begin(), cores.end()));
  EXPECT_EQ(std::adjacent_find(cores.begin(), cores.end()), cores.end());
  for (const Cache& cache : topology->caches) {
    EXPECT_GT(cache.bytes, 0u);
    EXPECT_THAT(cache.processors, Not(IsEmpty()));
  }
}

TEST(TopologyTest, KeepsTheMaskOfTheFirstCallWhenAThreadIsPinnedLater) {
  const auto before = detect_topology();
  ASSERT_TRUE(before.ok());
  std::thread([&before] {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(allowed_cores(*before).back(), &one);
    ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
    const auto after = detect_topology();
    ASSERT_TRUE(after.ok());
    EXPECT_EQ(allowed_cores(*after), allowed_cores(*before));
  }).join();
}

TEST(TopologyTest, ThreadMasksShowAPinnedThread) {
  const auto topology = detect_topology();
  ASSERT_TRUE(topology.ok());
  const int core = allowed_cores(*topology).back();
  std::thread([core] {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(core, &one);
    ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
    const std::vector<ThreadMask> masks = thread_masks();
    const auto self = std::find_if(masks.begin(), masks.end(),
                                   [](const ThreadMask& mask) { return mask.id == gettid(); });
    ASSERT_NE(self, masks.end());
    EXPECT_EQ(self->processors, std::to_string(core));
  }).join();
}

TEST(ProcessorListTest, Prints) {
  EXPECT_EQ(to_processor_list({}), "");
  EXPECT_EQ(to_processor_list({3}), "3");
  EXPECT_EQ(to_processor_list({5, 1, 0, 2}), "0-2,5");
}

TEST(ProcessorListTest, Parses) {
  const auto list = parse_processor_list("5,0-2,1");
  ASSERT_TRUE(list.ok());
  EXPECT_THAT(*list, ElementsAre(0, 1, 2, 5));
}

TEST(ProcessorListTest, RefusesAnythingElse) {
  for (const char* text : {"", ",", "1,", "a", "2-1", "-1", "1-", "1 2", "0-99999999", "1--2"}) {
    EXPECT_FALSE(parse_processor_list(text).ok()) << text;
  }
}

}  // namespace
}  // namespace tandem
