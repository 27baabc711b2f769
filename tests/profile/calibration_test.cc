#include "profile/calibration.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "profile/lane_traits.h"
#include "profile/signature.h"
#include "schedule/choose_split.h"
#include "support/cpu_relax.h"
#include "tests/runtime/fake_queue_lane.h"
#include "tests/schedule/random_graph.h"

namespace tandem {
namespace {

using testing::FakeCpuLane;
using testing::FakeQueueLane;

// On however busy a machine: measurements end when they have what they need.
constexpr double kEnoughSeconds = 120;

// A lane on which a slice takes as many microseconds as it has thousands of FLOPs, and counts.
class TimedLane : public FakeCpuLane {
 public:
  TimedLane(std::string name, const Graph& graph, double us_per_kiloflop)
      : FakeCpuLane(std::move(name)) {
    faults.set([this, &graph, us_per_kiloflop](const Slice& slice) {
      ++launches;
      const double us = work_of(graph, slice).flops / 1000 * us_per_kiloflop;
      const Clock::time_point end = Clock::now() + std::chrono::nanoseconds(std::llround(us * 1e3));
      while (Clock::now() < end) cpu_relax();
      return Status();
    });
  }
  std::atomic<int> launches = 0;
};

class CalibrationTest : public ::testing::Test {
 protected:
  CalibrationTest()
      : dir_((std::filesystem::path(::testing::TempDir()) /
              ("tandem_calibration_" +
               std::string(::testing::UnitTest::GetInstance()->current_test_info()->name())))
                 .string()) {
    std::filesystem::remove_all(dir_);
    TensorId x = graph_.add_input("x", DataType::kFloat32, {64, 64});
    for (int i = 0; i < 4; ++i) {
      const TensorId w = graph_.add_constant("", HostTensor(DataType::kFloat32, {64, 64}));
      x = graph_.add("linear" + std::to_string(i), LinearAttributes{}, {x, w}).value();
    }
    graph_.mark_output(x);
    slow_ = std::make_unique<TimedLane>("slow", graph_, 8);
    fast_ = std::make_unique<TimedLane>("fast", graph_, 4);
    crew_ = LaneCrew::create({slow_.get(), fast_.get()}).value();
    for (const Tensor& tensor : graph_.tensors()) {
      memory_.emplace_back(span_of(tensor.dims, tensor.layout));
      bindings_.views.push_back(view_of(tensor, memory_.back().data()));
    }
  }
  ~CalibrationTest() override { std::filesystem::remove_all(dir_); }

  std::unique_ptr<Calibration> calibrate(double seconds = kEnoughSeconds) {
    slow_->launches = fast_->launches = 0;
    CalibrationOptions options;
    options.seconds = seconds;
    options.dir = dir_;
    options.fingerprint = fingerprint_;
    options.mechanism = "svm";
    CalibrationSources sources;
    sources.memory = [this]() -> StatusOr<const TensorBindings*> { return &bindings_; };
    sources.crossing = [this](int from, int to) -> StatusOr<double> {
      ++crossings_measured_;
      return 1.0 + from * 10 + to;
    };
    if (contention_) {
      sources.contention = [this](CalibrationData* data) -> Status {
        if (data->slowdowns.empty()) {
          ++contentions_measured_;
          data->slowdowns["slow"] = *contention_;
        }
        return {};
      };
    }
    auto made = Calibration::create(graph_, *crew_, options, sources);
    if (!made.ok()) {
      ADD_FAILURE() << made.status().message();
      return nullptr;
    }
    return std::move(made).value();
  }
  bool launched_anything() const { return slow_->launches + fast_->launches > 0; }
  std::string cache_file() const { return CalibrationCache(dir_, fingerprint_).path(); }

  std::string dir_;
  std::string fingerprint_ = "machine A";
  Graph graph_;
  std::unique_ptr<TimedLane> slow_;
  std::unique_ptr<TimedLane> fast_;
  std::shared_ptr<LaneCrew> crew_;
  std::vector<std::vector<float>> memory_;
  TensorBindings bindings_;
  int crossings_measured_ = 0;
  std::optional<LaneSlowdowns> contention_;
  int contentions_measured_ = 0;
};

// Fake lanes also need time to compute, so that times are at least what they sleep.
TEST_F(CalibrationTest, TimesGrowWithSlicesAndTellLanesApart) {
  const PartitionAxis axis = partition_axes(graph_, 0)[0];
  const auto in_order = [&](const Calibration& cost) {
    double before = 0;
    for (int64_t end = axis.granularity; end < 64; end += axis.granularity) {
      const double us = cost.slice_us(0, {0, axis.axis, 0, end});
      if (us <= before) return false;
      before = us;
    }
    return before < cost.slice_us(0, {.op = 0}) * 1.2 &&
           cost.slice_us(1, {.op = 0}) < cost.slice_us(0, {.op = 0});
  };
  // Other work on the machine can make any single measurement late.
  constexpr int kAttempts = 10;
  bool ordered = false;
  for (int attempt = 0; attempt < kAttempts && !ordered; ++attempt) {
    fingerprint_ = "machine " + std::to_string(attempt);
    const auto cost = calibrate();
    ASSERT_TRUE(cost);
    EXPECT_EQ(cost->missing(), 0);
    // Four equal operators are measured once: whole, and three cuts along two axes, on each lane;
    // then the best cuts, where these are others.
    EXPECT_GE(cost->measured(), 2 * 7);
    EXPECT_LE(cost->measured(), 2 * (7 + 6));
    for (OperatorId op = 0; op < 4; ++op) {
      EXPECT_GE(cost->slice_us(0, {.op = op}), 4000);
      EXPECT_GE(cost->slice_us(1, {.op = op}), 2000);
      EXPECT_EQ(cost->slice_us(0, {.op = op}), cost->slice_us(0, {.op = 0}));
      EXPECT_GE(cost->slice_us(0, {op, axis.axis, 0, 32}), 2000);
    }
    EXPECT_EQ(cost->crossing_us(0, 1), 2);
    EXPECT_EQ(cost->crossing_us(1, 0), 11);
    ordered = in_order(*cost);
  }
  EXPECT_TRUE(ordered);
}

TEST_F(CalibrationTest, WithACacheNothingIsMeasuredAndAnswersAreTheSame) {
  const auto first = calibrate();
  ASSERT_TRUE(first && launched_anything());
  const int crossings = crossings_measured_;
  const auto second = calibrate();
  ASSERT_TRUE(second);
  EXPECT_FALSE(launched_anything());
  EXPECT_EQ(crossings_measured_, crossings);
  EXPECT_EQ(second->measured(), 0);
  for (int lane = 0; lane < 2; ++lane) {
    for (int64_t end = 1; end <= 64; ++end) {
      const Slice slice{0, 0, 0, end};
      EXPECT_EQ(first->slice_us(lane, slice), second->slice_us(lane, slice));
    }
  }
}

TEST_F(CalibrationTest, AnotherPlatformMeasuresAfresh) {
  ASSERT_TRUE(calibrate());
  fingerprint_ = "machine B";
  ASSERT_TRUE(calibrate());
  EXPECT_TRUE(launched_anything());
  fingerprint_ = "machine A";
  ASSERT_TRUE(calibrate());
  EXPECT_FALSE(launched_anything());
}

TEST_F(CalibrationTest, WithoutTimeEverythingIsEstimated) {
  const auto cost = calibrate(0);
  ASSERT_TRUE(cost);
  EXPECT_FALSE(launched_anything());
  EXPECT_GT(cost->missing(), 0);
  EXPECT_GT(cost->slice_us(0, {.op = 0}), 0);
  EXPECT_LT(cost->slice_us(0, {0, 0, 0, 16}), cost->slice_us(0, {0, 0, 0, 48}));
}

TEST_F(CalibrationTest, ACorruptCacheIsReplaced) {
  ASSERT_TRUE(calibrate());
  for (const char* text :
       {"", "{", "[]", R"({"version": 4})",
        R"({"version":4,"fingerprint":"machine A","crossings":{},"enqueueing":{},"copies":{},
            "slowdowns":{},"slices":{"s":{"slow":{"whole":-1}}}})",
        R"({"version":4,"fingerprint":"machine A","crossings":{},"enqueueing":{},"copies":{},
            "slowdowns":{},"slices":{"s":{"slow":{"1:x":1}}}})",
        R"({"version":4,"fingerprint":"machine A","crossings":{},"enqueueing":{},"copies":{},
            "slices":{},"slowdowns":{"slow":{"memory_beside_memory":0.5,"memory_beside_compute":1,
            "compute_beside_memory":1,"compute_beside_compute":1,"bytes_per_us":1}}})"}) {
    std::ofstream(cache_file()) << text;
    EXPECT_EQ(CalibrationCache(dir_, fingerprint_).load(), CalibrationData()) << text;
  }
  ASSERT_TRUE(calibrate());
  EXPECT_TRUE(launched_anything());
  ASSERT_TRUE(calibrate());
  EXPECT_FALSE(launched_anything());
}

TEST_F(CalibrationTest, AFolderThatCannotBeWrittenOnlyCostsTime) {
  // Not by permissions: root may write anywhere.
  std::ofstream(dir_) << "a file where a folder should be";
  const auto cost = calibrate();
  ASSERT_TRUE(cost);
  EXPECT_EQ(cost->missing(), 0);
}

TEST_F(CalibrationTest, SlowdownsAreMeasuredOnceAndInProportionToTheShareOfMemory) {
  contention_ = {.memory_beside_memory = 2,
                 .memory_beside_compute = 1.2,
                 .compute_beside_memory = 1.4,
                 .compute_beside_compute = 1,
                 .bytes_per_us = 1e9};
  const auto share_of = [&](double rate) {
    contention_->bytes_per_us = rate;
    std::filesystem::remove_all(dir_);
    return calibrate()->contention(0, {.op = 0});
  };
  const Contention fast_memory = share_of(1e9);
  EXPECT_NEAR(fast_memory.memory_share, 0, 1e-3);
  EXPECT_NEAR(fast_memory.slowdown_memory, 1.4, 1e-3);
  EXPECT_NEAR(fast_memory.slowdown_compute, 1, 1e-3);
  const Contention slow_memory = share_of(1e-3);
  EXPECT_EQ(slow_memory.memory_share, 1);
  EXPECT_EQ(slow_memory.slowdown_memory, 2);
  EXPECT_EQ(slow_memory.slowdown_compute, 1.2);
  EXPECT_EQ(contentions_measured_, 2);
  EXPECT_EQ(calibrate()->contention(0, {.op = 0}), slow_memory);  // kept
  EXPECT_EQ(contentions_measured_, 2);
}

TEST(CalibrationCache, AddsToWhatOthersSaved) {
  const std::string dir =
      (std::filesystem::path(::testing::TempDir()) / "tandem_calibration_merge").string();
  std::filesystem::remove_all(dir);
  const CalibrationCache cache(dir, "x");
  CalibrationData one;
  one.slices["a"]["cpu"][{}] = 1;
  one.crossings["svm cpu>gpu"] = 2;
  CalibrationData two;
  two.slices["a"]["cpu"][{1, 16}] = 3;
  two.slices["b"]["gpu"][{}] = 4;
  two.enqueueing["gpu"] = 5;
  two.copies["gpu"] = {6, 7, 8};
  cache.save(one);
  cache.save(two);
  const CalibrationData all = cache.load();
  EXPECT_EQ(all.slices.at("a").at("cpu").at({}), 1);
  EXPECT_EQ(all.slices.at("a").at("cpu").at({1, 16}), 3);
  EXPECT_EQ(all.slices.at("b").at("gpu").at({}), 4);
  EXPECT_EQ(all.crossings.at("svm cpu>gpu"), 2);
  EXPECT_EQ(all.enqueueing.at("gpu"), 5);
  EXPECT_EQ(all.copies.at("gpu"), (CopyTimes{6, 7, 8}));
  std::filesystem::remove_all(dir);
}

TEST(CalibrationCache, NoneKeepsNothing) {
  const CalibrationCache cache("none", "x");
  CalibrationData data;
  data.crossings["svm cpu>gpu"] = 2;
  cache.save(data);
  EXPECT_EQ(cache.load(), CalibrationData());
}

TEST(Signature, TellsApartWhatTakesDifferentTimes) {
  Graph graph;
  const TensorId x = graph.add_input("x", DataType::kFloat32, {4, 64});
  const TensorId y = graph.add_input("y", DataType::kFloat32, {8, 64});
  UnaryAttributes relu;
  relu.function.function = Function::kRelu;
  graph.add("a", relu, {x}).value();
  graph.add("b", relu, {x}).value();
  graph.add("c", relu, {y}).value();
  graph.add("d", UnaryAttributes{}, {x}).value();
  const Placement placement = analyse(graph);
  const auto of = [&](OperatorId op) { return signature(graph, placement, op); };
  EXPECT_EQ(of(0), of(1));
  EXPECT_NE(of(0), of(2));
  EXPECT_NE(of(0), of(3));
}

// A queue is timed by its signals, or where it has none, by waiting for it.
TEST(CalibrationOnQueues, BothWays) {
  for (const SharedMemoryKind memory :
       {SharedMemoryKind::kFineAtomics, SharedMemoryKind::kFine, SharedMemoryKind::kCoarse}) {
    Graph graph;
    const TensorId x = graph.add_input("x", DataType::kFloat32, {4, 64});
    graph.mark_output(graph.add("a", UnaryAttributes{}, {x}).value());
    FakeQueueLane lane("gpu0", memory);
    lane.device_faults.set([](const Slice&) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
      return Status();
    });
    const auto crew = LaneCrew::create({&lane}).value();
    // Together, as in an arena.
    std::vector<float> floats(2 * 4 * 64);
    TensorBindings bindings;
    for (int t = 0; t < 2; ++t) {
      bindings.views.push_back(view_of(graph.tensor(t), floats.data() + t * 4 * 64));
    }
    CalibrationOptions options;
    options.dir = "none";
    options.seconds = kEnoughSeconds;
    CalibrationSources sources;
    sources.memory = [&]() -> StatusOr<const TensorBindings*> { return &bindings; };
    const auto going_on = Calibration::create(graph, *crew, options, sources);
    ASSERT_TRUE(going_on.ok()) << going_on.status().message();
    EXPECT_EQ((*going_on)->start(0, kNone).queue_us, (*going_on)->enqueue_us(0));
    sources.start = [](int) -> StatusOr<StartCosts> { return StartCosts{7, 30}; };
    const auto cost = Calibration::create(graph, *crew, options, sources);
    ASSERT_TRUE(cost.ok()) << cost.status().message();
    EXPECT_GT((*cost)->slice_us(0, {.op = 0}), 7000);
    EXPECT_GT((*cost)->enqueue_us(0), 0);
    EXPECT_EQ((*cost)->start(0, kNone), (StartCosts{7, 30}));
    EXPECT_EQ((*cost)->copy_us(0, {1, 1024}) > 0, memory == SharedMemoryKind::kCoarse);
  }
}

// A lane may be slow between the quarters, which nothing but measuring there can tell. What is
// chosen in the end has been measured: no lane takes longer for its part than the costs say.
TEST(Calibration, MeasuresTheBestDivision) {
  Graph graph;
  const TensorId x = graph.add_input("x", DataType::kFloat32, {8, 32});
  const TensorId w = graph.add_constant("w", HostTensor(DataType::kFloat32, {32, 512}));
  graph.mark_output(graph.add("linear", LinearAttributes{}, {x, w}).value());
  const auto least_us = [](const Slice& slice) {
    const bool between = slice.axis == 1 && (slice.end - slice.begin) % 128 != 0;
    const double us = slice.whole() ? 512 : static_cast<double>(slice.end - slice.begin);
    // Rows are of no use to cut.
    return slice.axis == 0 ? 2000 : between ? 3 * us : us;
  };
  const auto spin = [&](double factor) {
    return [&least_us, factor](const Slice& slice) {
      const Clock::time_point end =
          Clock::now() + std::chrono::nanoseconds(std::llround(1000 * factor * least_us(slice)));
      while (Clock::now() < end) cpu_relax();
      return Status();
    };
  };
  FakeCpuLane first("first");
  FakeCpuLane second("second");
  constexpr double kFactors[] = {1, 0.6};
  first.faults.set(spin(kFactors[0]));
  second.faults.set(spin(kFactors[1]));
  const std::shared_ptr<LaneCrew> crew = LaneCrew::create({&first, &second}).value();
  std::vector<std::vector<float>> memory;
  TensorBindings bindings;
  for (const Tensor& tensor : graph.tensors()) {
    memory.emplace_back(span_of(tensor.dims, tensor.layout));
    bindings.views.push_back(view_of(tensor, memory.back().data()));
  }
  CalibrationSources sources;
  sources.memory = [&]() -> StatusOr<const TensorBindings*> { return &bindings; };
  sources.crossing = [](int, int) -> StatusOr<double> { return 1.0; };
  CalibrationOptions options;
  options.seconds = kEnoughSeconds;
  options.dir = "none";
  options.mechanism = "svm";
  const auto cost = Calibration::create(graph, *crew, options, sources);
  ASSERT_TRUE(cost.ok()) << cost.status().message();
  const Split split = choose_split({&graph, traits_of(*crew), cost->get()}, 0);
  for (const SplitPart& part : split.parts) {
    EXPECT_GE(part.us, 0.99 * kFactors[part.lane] * least_us(part.slice))
        << to_string(graph, part.slice);
  }
}

}  // namespace
}  // namespace tandem
