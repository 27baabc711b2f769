#include "profile/training.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "profile/describe_slice.h"

namespace tandem {
namespace {

using predict::SliceCase;

Graph linear_graph(int64_t rows, int64_t depth, int64_t columns, int copies) {
  Graph graph;
  const TensorId w = graph.add_constant("w", HostTensor(DataType::kFloat32, {depth, columns}));
  for (int i = 0; i < copies; ++i) {
    const TensorId x = graph.add_input("", DataType::kFloat32, {rows, depth});
    EXPECT_TRUE(graph.add("", LinearAttributes{}, {x, w}).ok());
  }
  return graph;
}

Measurement measurement(const Graph& graph, const std::string& networks, double us) {
  ImplementationInfo info;
  info.name = "loops_tiled_gemm";
  info.computed_flops = work_of(graph, 0).flops;
  const predict::LaneFacts lane{.name = "cpu", .kind = "cpu", .cores = 1};
  Measurement row;
  row.slice_case = to_json(describe_slice(graph, analyse(graph), {0}, lane, info));
  row.key = networks + row.slice_case;
  row.family = "linear";
  row.slice = "whole";
  row.networks = networks;
  row.lane = "cpu";
  row.median_us = us;
  row.low_us = us * 0.99;
  row.high_us = us * 1.01;
  row.samples = 9;
  row.probe_gbps = 11;
  row.probe_gflops = 95;
  return row;
}

class TrainingTest : public ::testing::Test {
 protected:
  TrainingTest()
      : path_((std::filesystem::path(::testing::TempDir()) / "tandem_training.sqlite").string()) {
    std::filesystem::remove(path_);
    auto store = MeasurementStore::open(path_, {"platform", "engine", "{}"});
    EXPECT_TRUE(store.ok()) << store.status().to_string();
    std::vector<Measurement> rows;
    for (int64_t rows_of = 16; rows_of <= 512; rows_of += 16) {
      for (const int64_t depth : {64, 160, 400}) {
        const Graph graph = linear_graph(rows_of, depth, 96, 1);
        const bool of_net = rows_of == 128 && depth == 160;
        rows.push_back(
            measurement(graph, of_net ? "net,other" : "", 2 + work_of(graph, 0).flops / 20e3));
      }
    }
    Measurement disturbed = rows[5];
    disturbed.key += " again";
    disturbed.disturbed = true;
    rows.push_back(disturbed);
    // The same in no time.
    Measurement implausible = rows[20];
    implausible.key += " at once";
    implausible.median_us = implausible.low_us = implausible.high_us = 0.001;
    rows.push_back(implausible);
    // Beside another, when alone it took no time.
    Measurement beside = rows[21];
    beside.key += " beside";
    beside.alone_us = 0.001;
    rows.push_back(beside);
    EXPECT_TRUE(store->add(rows).ok());
    count_ = rows.size() - 3;
  }
  ~TrainingTest() override { std::filesystem::remove(path_); }

  TrainingData read() const {
    const auto store = MeasurementStore::open_to_read(path_);
    EXPECT_TRUE(store.ok());
    return read_training_data(*store).value();
  }

  const std::string path_;
  size_t count_ = 0;
};

TEST_F(TrainingTest, ReadsWhatCanBeTrusted) {
  const TrainingData data = read();
  EXPECT_EQ(data.samples.size(), count_);
  EXPECT_EQ(data.disturbed, 1u);
  EXPECT_EQ(data.implausible, 2u);
  EXPECT_EQ(data.memory_gbps, 11);
  EXPECT_EQ(data.made_for.platform, "platform");
  EXPECT_EQ(data.networks(), (std::vector<std::string>{"net", "other"}));
}

// Batches of a second each, in two runs with an hour between.
TEST_F(TrainingTest, KnowsWhenRowsWereThere) {
  auto store = MeasurementStore::open(path_, {"platform", "engine", "{}"}).value();
  std::vector<Measurement> rows = store.rows().value();
  for (size_t i = 0; i < rows.size(); ++i) {
    const auto batch = static_cast<double>(i / 10);
    rows[i].unix_time = 1e9 + batch + (batch >= 5 ? 3600 : 0);
  }
  ASSERT_TRUE(store.add(rows).ok());
  const TrainingData data = read();
  ASSERT_EQ(data.after_seconds.size(), data.samples.size());
  EXPECT_NEAR(data.seconds, 10, 1e-6);  // 99 rows
  EXPECT_NEAR(data.after_seconds.front(), 10.0 / 99, 1e-2);
  EXPECT_NEAR(data.after_seconds[49], 5, 0.1);  // their runs take next to nothing
  EXPECT_TRUE(std::is_sorted(data.after_seconds.begin(), data.after_seconds.end()));
}

TEST_F(TrainingTest, NetworksAreLeftOutWithAllThatIsLikeThem) {
  const TrainingData data = read();
  const std::vector<std::string> groups = predict::shape_groups(data.samples);
  const std::vector<bool> use = without_network(data, groups, "net");
  const SliceCase* left_out = nullptr;
  for (size_t i = 0; i < use.size(); ++i) {
    if (data.has_network(i, "net")) {
      EXPECT_FALSE(use[i]);
      left_out = &data.samples[i].slice;
    }
  }
  ASSERT_NE(left_out, nullptr);
  EXPECT_GT(std::count(use.begin(), use.end(), true), 60);

  const auto file = train_predictors(data, groups, use, {}, [] {});
  ASSERT_TRUE(file.ok()) << file.status().to_string();
  EXPECT_EQ(file->lanes.at("cpu").memory_gbps, 11);
  // The network has the operator three times, and one that was never measured.
  Graph network = linear_graph(128, 160, 96, 3);
  const TensorId w = network.add_constant("v", HostTensor(DataType::kFloat32, {32, 32}));
  const TensorId x = network.add_input("y", DataType::kFloat32, {7, 32});
  ASSERT_TRUE(network.add("", LinearAttributes{}, {x, w}).ok());
  const auto errors = network_errors(data, "net", operator_counts(network), *file);
  ASSERT_TRUE(errors.ok()) << errors.status().to_string();
  ASSERT_EQ(errors->size(), 1u);
  const NetworkErrors& lane = errors->front();
  EXPECT_EQ(lane.operators, 4u);
  EXPECT_EQ(lane.measured, 3u);
  EXPECT_NEAR(lane.measured_us, 3 * (2 + work_of(network, 0).flops / 20e3), 1e-6);
  EXPECT_NEAR(lane.predicted_us / lane.measured_us, 1, 0.05);
  EXPECT_NEAR(lane.errors.mape, std::abs(lane.predicted_us / lane.measured_us - 1), 1e-6);
}

}  // namespace
}  // namespace tandem
