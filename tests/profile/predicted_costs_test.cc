#include "profile/predicted_costs.h"

#include <gtest/gtest.h>

#include <cmath>

#include "profile/describe_slice.h"

namespace tandem {
namespace {

using predict::OtherLoad;
using predict::SliceCase;
using predict::SlicePredictor;
using predict::SliceSample;

// Counts what it is asked. Refuses slices along axis 1 that are narrower than 32.
class AskedLane : public Lane {
 public:
  AskedLane() { info_.name = "asked"; }
  const LaneInfo& info() const override { return info_; }
  Status enter() override { return {}; }
  Status drain(std::chrono::steady_clock::time_point) override { return {}; }

  static ImplementationInfo answer(const Graph& graph, const Slice& slice) {
    ImplementationInfo info;
    info.name = "loops_tiled_gemm";
    info.local_size[0] = 32;
    info.local_size[1] = 12;
    info.computed_flops = 1.1 * work_of(graph, slice).flops;
    info.work_groups = 3;
    return info;
  }

  StatusOr<std::unique_ptr<LaneProgram>> load(const Graph& graph,
                                              const TensorBindings& bindings) override {
    for (const TensorId input : graph.inputs()) EXPECT_NE(bindings[input].data, nullptr);
    return std::unique_ptr<LaneProgram>(std::make_unique<Program>(graph, &asked));
  }
  int asked = 0;

 private:
  struct Program : LaneProgram {
    Program(const Graph& graph, int* asked) : graph(graph), asked(asked) {}
    StatusOr<std::unique_ptr<Task>> bind(const Slice&, int) override {
      return unsupported("a lane that only answers");
    }
    StatusOr<ImplementationInfo> implementation(const Slice& slice, int) const override {
      ++*asked;
      if (slice.axis == 1 && slice.end - slice.begin < 32) return unsupported("too narrow");
      return answer(graph, slice);
    }
    size_t bytes() const override { return 0; }
    const Graph& graph;
    int* asked;
  };
  LaneInfo info_;
};

// Three linear operators, of which the first and the last are alike.
Graph make_graph() {
  Graph graph;
  TensorId x = graph.add_input("x", DataType::kFloat32, {64, 128});
  for (const int64_t columns : {128, 256, 128}) {
    const int64_t depth = graph.tensor(x).dims[1];
    const TensorId w = graph.add_constant("", HostTensor(DataType::kFloat32, {depth, columns}));
    x = graph.add("", LinearAttributes{}, {x, w}).value();
    if (columns == 256) {
      const TensorId back = graph.add_constant("", HostTensor(DataType::kFloat32, {256, 128}));
      x = graph.add("", LinearAttributes{}, {x, back}).value();
    }
  }
  graph.mark_output(x);
  return graph;
}

class PredictedCostsTest : public ::testing::Test {
 protected:
  PredictedCostsTest() : graph_(make_graph()), placement_(analyse(graph_)) {
    // Some law over slices of such operators: 5 us, and 10 GFLOPS; twice that beside others; half
    // of it with hot data.
    std::vector<SliceSample> samples;
    for (int64_t rows = 8; rows <= 512; rows += 24) {
      for (const int64_t columns : {32, 96, 256, 640}) {
        Graph one;
        const TensorId x = one.add_input("x", DataType::kFloat32, {rows, 128});
        const TensorId w = one.add_constant("w", HostTensor(DataType::kFloat32, {128, columns}));
        EXPECT_TRUE(one.add("linear", LinearAttributes{}, {x, w}).ok());
        SliceSample sample;
        sample.slice = describe_slice(one, analyse(one), {0}, facts_, AskedLane::answer(one, {0}));
        sample.us = 5 + sample.slice.flops / 10e3;
        samples.push_back(sample);
        SliceSample hot = sample;
        hot.slice.repeated = true;
        hot.us /= 2;
        samples.push_back(hot);
        sample.alone_us = sample.us;
        sample.us *= 2;
        sample.slice.load = OtherLoad::kMemory;
        samples.push_back(sample);
      }
    }
    std::vector<const SliceSample*> rows;
    for (const SliceSample& sample : samples) rows.push_back(&sample);
    predictor_ = SlicePredictor::fit(rows, predict::shape_groups(samples), {}).value();
    file_.made_for = {"platform", "engine"};
    file_.lanes["asked"] = {facts_, predictor_.to_texts(file_.made_for), 20};
    transfers_.crossings = {{0}};
    transfers_.enqueueing = {1.5};
    transfers_.copies = {{}};
  }

  std::unique_ptr<PredictedCosts> make() {
    auto costs = PredictedCosts::create(graph_, {&lane_}, file_, transfers_);
    EXPECT_TRUE(costs.ok()) << costs.status().to_string();
    return std::move(costs).value();
  }
  SliceCase question(const Slice& slice) const {
    return describe_slice(graph_, placement_, slice, facts_, AskedLane::answer(graph_, slice));
  }
  double predicted_us(const Slice& slice) const {
    const SliceCase asked = question(slice);
    const std::vector<const SliceCase*> slices = {&asked};
    return predictor_.predict(slices).value()[0];
  }

  const predict::LaneFacts facts_{.name = "asked", .kind = "cpu", .l2_bytes = 1 << 20};
  AskedLane lane_;
  const Graph graph_;
  const Placement placement_;
  SlicePredictor predictor_;
  predict::PredictorFile file_;
  TransferCosts transfers_;
};

TEST_F(PredictedCostsTest, SaysWhatThePredictorSays) {
  const auto costs = make();
  ASSERT_TRUE(costs->prepare(usual_slices(graph_, 1)).ok());
  for (const LaneSlice& asked : usual_slices(graph_, 1)) {
    if (asked.slice.axis == 1 && asked.slice.end < 32) continue;
    EXPECT_DOUBLE_EQ(costs->slice_us(0, asked.slice), predicted_us(asked.slice))
        << to_string(graph_, asked.slice);
  }
  // Not prepared, and not at the start of its axis.
  EXPECT_DOUBLE_EQ(costs->slice_us(0, {1, 1, 64, 240}), predicted_us({1, 1, 64, 240}));
  EXPECT_NEAR(costs->slice_us(0, {0}), 5 + work_of(graph_, 0).flops / 10e3, 10);
  EXPECT_EQ(costs->enqueue_us(0), 1.5);
}

TEST_F(PredictedCostsTest, AsksOnceWhatIsTheSame) {
  const auto costs = make();
  ASSERT_TRUE(costs->prepare(usual_slices(graph_, 1)).ok());
  const int asked = lane_.asked;
  EXPECT_EQ(static_cast<size_t>(asked), costs->answered());
  // Operators 0 and 3 are alike.
  const std::vector<LaneSlice> all = usual_slices(graph_, 1);
  const auto of_first = std::count_if(all.begin(), all.end(),
                                      [](const LaneSlice& slice) { return slice.slice.op == 0; });
  EXPECT_EQ(asked, static_cast<int>(all.size()) - of_first);
  ASSERT_TRUE(costs->prepare(all).ok());
  EXPECT_EQ(costs->slice_us(0, {3}), costs->slice_us(0, {0}));
  EXPECT_EQ(costs->slice_us(0, {0, 1, 64, 128}), costs->slice_us(0, {0, 1, 0, 64}));
  EXPECT_EQ(lane_.asked, asked);
}

TEST_F(PredictedCostsTest, WhatTheLaneCannotDoCostsInfinitelyMuch) {
  EXPECT_TRUE(std::isinf(make()->slice_us(0, {0, 1, 0, 16})));
  EXPECT_TRUE(std::isfinite(make()->slice_us(0, {0, 1, 0, 32})));
}

TEST_F(PredictedCostsTest, AnOperatorAloneFindsItsDataInCaches) {
  Graph one;
  const TensorId x = one.add_input("x", DataType::kFloat32, {64, 128});
  const TensorId w = one.add_constant("w", HostTensor(DataType::kFloat32, {128, 256}));
  one.mark_output(one.add("linear", LinearAttributes{}, {x, w}).value());
  const auto alone = PredictedCosts::create(one, {&lane_}, file_, transfers_);
  ASSERT_TRUE(alone.ok()) << alone.status().to_string();
  for (const Slice& slice : {Slice{0}, Slice{0, 1, 0, 128}, Slice{0, 0, 32, 64}}) {
    const double cold_us = 5 + work_of(one, slice).flops / 10e3;
    EXPECT_NEAR((*alone)->slice_us(0, slice), cold_us / 2, 0.1 * cold_us);
  }
}

TEST_F(PredictedCostsTest, Contention) {
  const auto costs = make();
  const Contention contention = costs->contention(0, {1});
  const double gbps = work_of(graph_, 1).bytes / costs->slice_us(0, {1}) / 1e3;
  EXPECT_NEAR(contention.memory_share, gbps / 20, 1e-9);
  EXPECT_NEAR(contention.slowdown_memory, 2, 0.1);
  EXPECT_GE(contention.slowdown_compute, 1);
  // Asking does not change the times.
  EXPECT_DOUBLE_EQ(costs->slice_us(0, {1}), predicted_us({1}));
}

TEST_F(PredictedCostsTest, LanesWithoutPredictorsAreRefused) {
  file_.lanes.clear();
  const auto costs = PredictedCosts::create(graph_, {&lane_}, file_, transfers_);
  EXPECT_EQ(costs.status().code(), StatusCode::kNotFound);
}

}  // namespace
}  // namespace tandem
