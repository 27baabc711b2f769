#include "profile/profiler.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <set>

#include "predict/slice_case.h"
#include "tests/profile/profiling_graph.h"

namespace tandem {
namespace {

using testing::PretendingLane;

class ProfilerTest : public ::testing::Test {
 protected:
  ProfilerTest()
      : dir_(std::filesystem::path(::testing::TempDir()) /
             ("tandem_profiler_" +
              std::string(::testing::UnitTest::GetInstance()->current_test_info()->name()))) {
    std::filesystem::remove_all(dir_);
    Sampler sampler({.families = {predict::SliceFamily::kLinear, predict::SliceFamily::kPool,
                                  predict::SliceFamily::kConv1x1}});
    sampler.add_network("net", testing::profiling_graph());
    samples_ = sampler.samples();
    samples_.resize(100);
    topology_.caches.push_back({.level = 3, .bytes = 1 << 20, .processors = {0}});
  }
  ~ProfilerTest() override { std::filesystem::remove_all(dir_); }

  MeasurementStore store() {
    return MeasurementStore::open((dir_ / "rows.sqlite").string(), {"fake", "engine", "{}"})
        .value();
  }
  static std::vector<Measurement> rows(const MeasurementStore& store) {
    return store.rows().value();
  }
  ProfilerOutcome run(MeasurementStore& store, const ProfilerOptions& options = {}) {
    std::vector<Lane*> lanes;
    for (const auto& lane : lanes_) lanes.push_back(lane.get());
    const auto crew = LaneCrew::create(lanes).value();
    StatusOr<ProfilerOutcome> outcome = profile(samples_, *crew, topology_, store, options);
    EXPECT_TRUE(outcome.ok()) << outcome.status().message();
    return outcome.ok() ? *outcome : ProfilerOutcome{};
  }
  void add_lane(const std::string& name, PretendingLane::Microseconds us) {
    lanes_.push_back(std::make_unique<PretendingLane>(name, std::move(us)));
  }
  int64_t launches() const {
    int64_t sum = 0;
    for (const auto& lane : lanes_) sum += lane->launches;
    return sum;
  }

  const std::filesystem::path dir_;
  std::vector<Sample> samples_;
  Topology topology_;
  std::vector<std::unique_ptr<PretendingLane>> lanes_;
};

double steady_us(const Graph&, const Slice&) { return 20; }

TEST_F(ProfilerTest, MeasuresEverySampleOnEveryLane) {
  samples_.resize(40);
  add_lane("small", steady_us);
  add_lane("big", steady_us);
  lanes_[1]->mutable_info().max_threads = 4;
  MeasurementStore rows_of = store();
  EXPECT_TRUE(run(rows_of).complete);
  std::set<std::string> expected;
  std::map<int, int> threads;
  for (const Sample& sample : samples_) {
    for (const char* lane : {"small", "big"}) {
      expected.insert(sample.signature + to_string(sample.head) + lane + "0");
      if (sample.repeated) expected.insert(sample.signature + to_string(sample.head) + lane + "1");
    }
  }
  std::set<std::string> measured;
  for (const Measurement& row : rows(rows_of)) {
    // Slices of 20 us are too short to be measured while others work.
    EXPECT_EQ(row.load, "none");
    EXPECT_GE(row.samples, 5);
    EXPECT_GE(row.median_us, 20);
    EXPECT_LE(row.low_us, row.median_us);
    EXPECT_GE(row.high_us, row.median_us);
    EXPECT_EQ(row.implementation, "pretended");
    const predict::SliceCase slice = predict::parse_slice_case(row.slice_case).value();
    EXPECT_EQ(slice.repeated, row.repeated);
    EXPECT_EQ(slice.lane.name, row.lane);
    EXPECT_EQ(slice.threads, row.threads);
    EXPECT_EQ(to_string(slice.family), row.family);
    if (row.lane == "big") ++threads[row.threads];
    if (row.lane == "small" || row.threads == 4) {
      measured.insert(row.op + row.slice + row.lane + (row.repeated ? "1" : "0"));
    }
  }
  EXPECT_EQ(measured, expected);
  // All of them, and one of 1 and 2 in turn.
  EXPECT_EQ(threads[1] + threads[2], threads[4]);
  EXPECT_GT(threads[1], 0);
  EXPECT_GT(threads[2], 0);
}

TEST_F(ProfilerTest, GoesOnWhereItStopped) {
  add_lane("cpu", steady_us);
  std::set<std::string> keys;
  {
    MeasurementStore rows_of = store();
    ProfilerOptions options;
    options.stop = [&rows_of] { return !rows_of.keys().value().empty(); };
    const ProfilerOutcome stopped = run(rows_of, options);
    EXPECT_TRUE(stopped.stopped);
    EXPECT_FALSE(stopped.complete);
    for (const Measurement& row : rows(rows_of)) keys.insert(row.key);
    EXPECT_EQ(static_cast<int64_t>(keys.size()), stopped.rows);
    EXPECT_GT(stopped.rows, 0);
  }
  MeasurementStore rows_of = store();
  std::map<std::string, double> before;
  for (const Measurement& row : rows(rows_of)) {
    if (!row.disturbed) before[row.key] = row.unix_time;
  }
  EXPECT_TRUE(run(rows_of).complete);
  std::map<std::string, double> after;
  for (const Measurement& row : rows(rows_of)) {
    EXPECT_TRUE(after.emplace(row.key, row.unix_time).second);
  }
  for (const auto& [key, time] : before) EXPECT_EQ(after.at(key), time) << "measured again";
  EXPECT_GT(after.size(), keys.size());
  const auto states = rows_of.keys().value();
  for (const auto& [key, state] : states) {
    EXPECT_TRUE(!state.disturbed || state.attempts == 3);
  }
  // What is there is not run again.
  const int64_t launched = launches();
  EXPECT_EQ(run(rows_of).rows, 0);
  EXPECT_EQ(launches(), launched);
}

TEST_F(ProfilerTest, MeasuresAgainWhatSpreadsTooWide) {
  auto count = std::make_shared<int>(0);
  // Pools take now 20 us, now three times that; writers and the rest are steady.
  add_lane("cpu", [count](const Graph& graph, const Slice& slice) {
    if (graph.op(slice.op).kind() != OperatorKind::kPool) return 20.0;
    return ++*count % 2 == 0 ? 60.0 : 20.0;
  });
  MeasurementStore rows_of = store();
  EXPECT_TRUE(run(rows_of).complete);
  int pools = 0;
  for (const Measurement& row : rows(rows_of)) {
    if (row.family != "pool" || row.repeated) continue;
    ++pools;
    // Alternation may hide from few samples: then the row is fine as it is.
    if (row.spread() > 0.2) {
      EXPECT_TRUE(row.disturbed);
      EXPECT_EQ(row.attempts, 3);
    }
  }
  EXPECT_GT(pools, 0);
}

TEST_F(ProfilerTest, RowsWithALoadHaveTheTimeWithout) {
  // Above what is too short.
  const auto slow = [](const Graph&, const Slice&) { return 150.0; };
  add_lane("a", slow);
  add_lane("b", slow);
  samples_.resize(8);
  MeasurementStore rows_of = store();
  EXPECT_TRUE(run(rows_of).complete);
  std::map<std::string, int> loads;
  for (const Measurement& row : rows(rows_of)) {
    ++loads[row.load];
    if (row.load == "none") {
      EXPECT_EQ(row.alone_us, 0);
      continue;
    }
    EXPECT_GE(row.alone_us, 150);
    EXPECT_EQ(to_string(predict::parse_slice_case(row.slice_case).value().load), row.load);
  }
  int contended = 0;
  for (const Sample& sample : samples_) contended += sample.contended;
  EXPECT_GT(contended, 0);
  EXPECT_EQ(loads["memory"], 2 * contended);
  EXPECT_EQ(loads["compute"], 2 * contended);
}

TEST_F(ProfilerTest, KeepsToItsBudget) {
  add_lane("cpu", steady_us);
  MeasurementStore rows_of = store();
  ProfilerOptions options;
  options.seconds = 0.05;
  double share = 0;
  options.on_progress = [&share](double now) { share = now; };
  const ProfilerOutcome outcome = run(rows_of, options);
  EXPECT_FALSE(outcome.complete);
  EXPECT_GT(outcome.rows, 0);
  EXPECT_GT(share, 0);
}

}  // namespace
}  // namespace tandem
