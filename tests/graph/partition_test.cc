#include "graph/partition.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "tests/support/operator_table.h"
#include "tests/support/random.h"

namespace tandem {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

constexpr Layout kImage{Order::kChannelsLast, true};

// A graph of one operator; packed inputs become constants.
Graph graph_of(const Attributes& attributes, const std::vector<Dims>& inputs, Layout layout = {},
               const Dims& given = {}) {
  Graph graph;
  Operator probe;
  probe.attributes = attributes;
  std::vector<TensorId> ids;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (is_packed_input(probe, static_cast<int>(i))) {
      ids.push_back(graph.add_constant("", HostTensor(DataType::kFloat32, inputs[i])));
    } else {
      ids.push_back(graph.add_input("", DataType::kFloat32, inputs[i],
                                    inputs[i].size() == 4 ? layout : Layout{}));
    }
  }
  StatusOr<TensorId> y = graph.add("op", attributes, ids, given, layout);
  EXPECT_TRUE(y.ok()) << y.status().to_string();
  return graph;
}

TEST(PartitionAxes, ConvByChannelsAndRows) {
  const ConvAttributes k3{.kernel = {3, 3}, .pads = {1, 1, 1, 1}};
  // Early layers have large images and few weights, late ones the other way round.
  EXPECT_THAT(partition_axes(graph_of(k3, {{1, 64, 112, 112}, {64, 64, 3, 3}}, kImage), 0),
              ElementsAre(PartitionAxis{2, 1}, PartitionAxis{1, 16}));
  EXPECT_THAT(partition_axes(graph_of(k3, {{1, 512, 7, 7}, {512, 512, 3, 3}}, kImage), 0),
              ElementsAre(PartitionAxis{1, 16}, PartitionAxis{2, 1}));
  EXPECT_THAT(partition_axes(graph_of(k3, {{2, 8, 7, 7}, {16, 8, 3, 3}}, kImage), 0),
              ElementsAre(PartitionAxis{0, 1}, PartitionAxis{2, 1}))
      << "16 channels are one panel";
}

TEST(PartitionAxes, GroupsStayWhole) {
  const auto channels = [](int64_t groups, int64_t c, int64_t m) {
    const Graph graph =
        graph_of(ConvAttributes{.groups = groups}, {{1, c, 1, 1}, {m, c / groups, 1, 1}}, kImage);
    return partition_axes(graph, 0);
  };
  EXPECT_THAT(channels(4, 96, 96), ElementsAre(PartitionAxis{1, 48}));
  EXPECT_THAT(channels(8, 64, 256), ElementsAre(PartitionAxis{1, 32}));
  EXPECT_THAT(channels(96, 96, 96), ElementsAre(PartitionAxis{1, 16})) << "depthwise";
  EXPECT_THAT(channels(2, 48, 48), ElementsAre()) << "lcm(16, 24) leaves nothing to cut";
}

TEST(PartitionAxes, MatricesByColumnsRowsAndBatch) {
  EXPECT_THAT(partition_axes(graph_of(LinearAttributes{}, {{1, 768}, {768, 1000}}), 0),
              ElementsAre(PartitionAxis{1, 16}));
  EXPECT_THAT(partition_axes(graph_of(LinearAttributes{}, {{1, 50, 768}, {768, 96}}), 0),
              UnorderedElementsAre(PartitionAxis{2, 16}, PartitionAxis{1, 1}));
  EXPECT_THAT(partition_axes(graph_of(MatMulAttributes{}, {{1, 12, 50, 64}, {1, 12, 64, 50}}), 0),
              ElementsAre(PartitionAxis{1, 1}, PartitionAxis{2, 1}, PartitionAxis{3, 16}));
}

TEST(PartitionAxes, TheNormalisedAxisIsNotCut) {
  EXPECT_THAT(partition_axes(graph_of(SoftmaxAttributes{2, false}, {{4, 50, 50}}), 0),
              ElementsAre(PartitionAxis{0, 1}, PartitionAxis{1, 1}));
  EXPECT_THAT(partition_axes(graph_of(LayerNormAttributes{}, {{50, 768}, {768}, {768}}), 0),
              ElementsAre(PartitionAxis{0, 1}));
  EXPECT_THAT(partition_axes(graph_of(SoftmaxAttributes{0, false}, {{4, 50}}), 0),
              ElementsAre(PartitionAxis{1, 16}));
}

TEST(PartitionAxes, ImagesByChannelsAndRowsNeverByWidth) {
  const Graph relu = graph_of(UnaryAttributes{}, {{1, 64, 8, 8}}, kImage);
  EXPECT_THAT(partition_axes(relu, 0), ElementsAre(PartitionAxis{2, 1}, PartitionAxis{1, 16}));
  const Graph pool = graph_of(PoolAttributes{.kernel = {3, 3}}, {{1, 64, 8, 8}}, kImage);
  EXPECT_THAT(partition_axes(pool, 0), ElementsAre(PartitionAxis{1, 16}, PartitionAxis{2, 1}))
      << "channels need no halo";
}

TEST(PartitionAxes, DenseRowsAreCutBetweenLinesOrNotAtAll) {
  const Layout dense{Order::kRowMajor, false};
  EXPECT_THAT(partition_axes(graph_of(UnaryAttributes{}, {{40, 10}}, dense), 0),
              ElementsAre(PartitionAxis{0, 8}));
  EXPECT_THAT(partition_axes(graph_of(UnaryAttributes{}, {{4, 40}}, dense), 0),
              ElementsAre(PartitionAxis{0, 2}));
}

TEST(PartitionAxes, ReshapeByOuterRanges) {
  const Graph graph = graph_of(ReshapeAttributes{}, {{1, 20, 96}}, {}, {1, 20, 4, 24});
  EXPECT_THAT(partition_axes(graph, 0), ElementsAre(PartitionAxis{1, 1}, PartitionAxis{2, 1}));
}

TEST(PartitionAxes, ScalarsAreNotDivisible) {
  EXPECT_THAT(partition_axes(graph_of(UnaryAttributes{}, {{}}), 0), ElementsAre());
}

TEST(CheckSlice, RefusesWithAReason) {
  const Graph graph = graph_of(UnaryAttributes{}, {{1, 40, 6, 6}}, kImage);
  const auto message = [&](Slice slice) { return check_slice(graph, slice).message(); };
  EXPECT_EQ(message({0}), "");
  EXPECT_EQ(message({0, 1, 0, 16}), "");
  EXPECT_EQ(message({0, 1, 32, 40}), "");
  EXPECT_EQ(message({0, 2, 1, 3}), "");
  EXPECT_THAT(message({0, 1, 0, 20}), HasSubstr("op[c 0:20]: must begin and end at multiples"));
  EXPECT_THAT(message({0, 1, 8, 16}), HasSubstr("multiples of 16"));
  EXPECT_THAT(message({0, 3, 0, 3}), HasSubstr("cannot be cut along this axis"));
  EXPECT_THAT(message({0, 2, 3, 3}), HasSubstr("not a part"));
  EXPECT_THAT(message({0, 2, 3, 7}), HasSubstr("not a part"));
  EXPECT_THAT(message({0, 4, 0, 1}), HasSubstr("no axis 4"));
  EXPECT_THAT(message({1}), HasSubstr("no operator 1"));
}

TEST(Region, Algebra) {
  EXPECT_TRUE(intersects({}, {})) << "scalars meet";
  EXPECT_TRUE(intersects({{0, 4}, {2, 3}}, {{3, 5}, {0, 9}}));
  EXPECT_FALSE(intersects({{0, 4}, {2, 3}}, {{4, 5}, {0, 9}}));
  EXPECT_FALSE(intersects({{0, 4}, {2, 2}}, {{3, 5}, {0, 9}})) << "empty meets nothing";
  EXPECT_TRUE(contains({{0, 4}}, {{1, 4}}));
  EXPECT_FALSE(contains({{0, 4}}, {{1, 5}}));
  EXPECT_TRUE(contains({{0, 4}}, {{7, 7}}));
  EXPECT_EQ(to_string(Region{{0, 4}, {2, 3}}), "[0:4, 2:3]");
}

TEST(InputRegion, RowsOfAConvNeedTheirHalo) {
  const ConvAttributes a{.kernel = {3, 3}, .stride = {2, 2}, .pads = {1, 1, 1, 1}};
  const Graph graph = graph_of(a, {{1, 8, 16, 16}, {32, 8, 3, 3}}, kImage);
  EXPECT_THAT(input_region(graph, 0, 0, output_region(graph, {0, 2, 0, 4})),
              ElementsAre(Range{0, 1}, Range{0, 8}, Range{0, 8}, Range{0, 16}));
  EXPECT_THAT(input_region(graph, 0, 0, output_region(graph, {0, 2, 4, 8})),
              ElementsAre(Range{0, 1}, Range{0, 8}, Range{7, 16}, Range{0, 16}));
  EXPECT_THAT(input_region(graph, 0, 1, output_region(graph, {0, 1, 16, 32})),
              ElementsAre(Range{16, 32}, Range{0, 8}, Range{0, 3}, Range{0, 3}));
}

TEST(InputRegion, DepthwiseChannelsNeedTheSameChannels) {
  const ConvAttributes a{.kernel = {3, 3}, .pads = {1, 1, 1, 1}, .groups = 32};
  const Graph graph = graph_of(a, {{1, 32, 8, 8}, {32, 1, 3, 3}}, kImage);
  EXPECT_THAT(input_region(graph, 0, 0, output_region(graph, {0, 1, 16, 32})),
              ElementsAre(Range{0, 1}, Range{16, 32}, Range{0, 8}, Range{0, 8}));
}

TEST(InputRegion, ConcatNeedsNothingOfTheOtherParts) {
  const Graph graph = graph_of(ConcatAttributes{1}, {{1, 16, 4, 4}, {1, 32, 4, 4}}, kImage);
  const Region channels = output_region(graph, {0, 1, 16, 32});
  EXPECT_TRUE(is_empty(input_region(graph, 0, 0, channels)));
  EXPECT_EQ(input_region(graph, 0, 1, channels)[1], (Range{0, 16}));
}

TEST(InputRegion, HeadsSurviveReshapeAndTranspose) {
  const Graph graph = graph_of(ReshapeAttributes{}, {{1, 20, 96}}, {}, {1, 20, 4, 24});
  EXPECT_THAT(input_region(graph, 0, 0, {{0, 1}, {0, 20}, {1, 3}, {0, 24}}),
              ElementsAre(Range{0, 1}, Range{0, 20}, Range{24, 72}));
}

TEST(Work, CountsAMultiplyAddAsTwo) {
  const Graph graph = graph_of(ConvAttributes{.kernel = {3, 3}, .pads = {1, 1, 1, 1}},
                               {{1, 8, 10, 10}, {32, 8, 3, 3}}, kImage);
  const Work whole = work_of(graph, 0);
  EXPECT_DOUBLE_EQ(whole.flops, 2.0 * 32 * 100 * 8 * 9);
  EXPECT_DOUBLE_EQ(whole.bytes, 4.0 * (800 + 32 * 72 + 3200));
  const Work half = work_of(graph, Slice{0, 1, 0, 16});
  EXPECT_DOUBLE_EQ(half.flops, whole.flops / 2);
  EXPECT_DOUBLE_EQ(half.bytes, 4.0 * (800 + 16 * 72 + 1600));
}

TEST(Work, AGatherReadsNoMoreOfItsTableThanItWrites) {
  Graph graph;
  const TensorId table = graph.add_input("", DataType::kFloat32, {30000, 64});
  const TensorId indices = graph.add_input("", DataType::kInt64, {10});
  graph.add("", GatherAttributes{0}, {table, indices}).value();
  EXPECT_DOUBLE_EQ(work_of(graph, 0).bytes, 2 * 10 * 64 * 4 + 10 * 8);
}

TEST(Alias, ReshapesThatKeepElementsInPlace) {
  const auto is_view = [](Dims from, Layout from_layout, Dims to, Layout to_layout) {
    Graph graph;
    const TensorId x = graph.add_input("x", DataType::kFloat32, from, from_layout);
    graph.add("y", ReshapeAttributes{}, {x}, to, to_layout).value();
    return alias_strides(graph, 0).has_value();
  };
  EXPECT_TRUE(is_view({1, 50, 768}, {}, {50, 768}, {}));
  EXPECT_TRUE(is_view({1, 50, 768}, {}, {1, 50, 12, 64}, {}));
  EXPECT_TRUE(is_view({1, 1000, 1, 1}, kImage, {1, 1000}, {}));
  EXPECT_TRUE(is_view({1, 24, 1, 1}, kImage, {24}, {}));
  EXPECT_FALSE(is_view({2, 24, 3, 1}, kImage, {2, 72}, {}));
  EXPECT_FALSE(is_view({1, 20, 96}, {}, {1, 20, 4, 24}, {})) << "24 gets padded";
  EXPECT_FALSE(is_view({4, 18}, {}, {72}, {}));
  EXPECT_TRUE(is_view({4, 18}, {Order::kRowMajor, false}, {72}, {Order::kRowMajor, false}));
  EXPECT_FALSE(is_view({1, 64, 7, 7}, kImage, {1, 64, 49}, {}));
}

TEST(Alias, SlicesThatKeepRowsOfOnePitch) {
  // The slice [begin, begin + extent) of one axis.
  const auto slice = [](Dims from, Layout layout, int axis, int64_t begin, int64_t extent) {
    Graph graph;
    const TensorId x = graph.add_input("x", DataType::kFloat32, from, layout);
    CopyAttributes a;
    Dims to = from;
    to[axis] = extent;
    for (int d = 0; d < static_cast<int>(from.size()); ++d) {
      a.source_axis.push_back(d);
      a.step.push_back(1);
      a.start.push_back(d == axis ? begin : 0);
    }
    graph.add("y", a, {x}, to, layout).value();
    return alias_strides(graph, 0);
  };
  const std::optional<AliasView> channels = slice({1, 64, 5, 4}, kImage, 1, 32, 24);
  ASSERT_TRUE(channels.has_value());
  EXPECT_EQ(channels->offset, 32);
  EXPECT_EQ(channels->strides[3], 64);
  EXPECT_EQ(channels->strides[2], 256);
  EXPECT_FALSE(slice({1, 64, 5, 4}, kImage, 1, 8, 24)) << "begins within a line";
  EXPECT_TRUE(slice({1, 64, 5, 4}, kImage, 2, 1, 3)) << "rows of one image";
  EXPECT_FALSE(slice({2, 64, 5, 4}, kImage, 2, 1, 3)) << "gaps between images";
  EXPECT_FALSE(slice({1, 64, 5, 4}, kImage, 3, 0, 2)) << "gaps between rows";
  EXPECT_TRUE(slice({1, 50, 768}, {}, 1, 0, 1)) << "a class token";
  EXPECT_TRUE(slice({1, 50, 2304}, {}, 2, 768, 768));
  EXPECT_TRUE(slice({3, 50, 64}, {}, 0, 1, 1));
}

TEST(Alias, TransposesOfExtentsOfOne) {
  Graph graph;
  const TensorId x = graph.add_input("x", DataType::kFloat32, {1, 50, 64});
  const TensorId y =
      graph.add("y", CopyAttributes{{1, 0, 2}, {1, 1, 1}, {0, 0, 0}}, {x}, {50, 1, 64}).value();
  graph.add("z", CopyAttributes{{2, 1, 0}, {1, 1, 1}, {0, 0, 0}}, {y}, {64, 1, 50}).value();
  EXPECT_TRUE(alias_strides(graph, 0).has_value());
  EXPECT_FALSE(alias_strides(graph, 1).has_value());
}

TEST(Alias, ViewsOfViews) {
  Graph graph;
  const TensorId x = graph.add_input("x", DataType::kFloat32, {50, 192});
  const TensorId y = graph.add("y", CopyAttributes{{0, 1}, {1, 1}, {0, 64}}, {x}, {50, 64}).value();
  const TensorId z = graph.add("z", CopyAttributes{{0, 1}, {1, 1}, {0, 32}}, {y}, {50, 32}).value();
  graph.add("w", ReshapeAttributes{}, {z}, {25, 2, 32}).value();
  ASSERT_TRUE(alias_strides(graph, 1).has_value());
  EXPECT_EQ(alias_strides(graph, 1)->offset, 32) << "from y, not x";
  EXPECT_THAT(memory_strides(graph, z), ElementsAre(192, 1));
  EXPECT_FALSE(alias_strides(graph, 2).has_value())
      << "the reshape's own layout has other strides than the view";
}

// Elements of a region by their offset in the tensor's own layout.
std::set<int64_t> lines_of(const Tensor& tensor, const Region& region) {
  const Dims strides = strides_of(tensor.dims, tensor.layout);
  std::set<int64_t> lines;
  Dims index;
  for (const Range& range : region) index.push_back(range.begin);
  while (true) {
    int64_t offset = 0;
    for (size_t d = 0; d < index.size(); ++d) offset += index[d] * strides[d];
    lines.insert(offset / kLineFloats);
    size_t d = index.size();
    while (d > 0 && ++index[d - 1] == region[d - 1].end) {
      index[d - 1] = region[d - 1].begin;
      --d;
    }
    if (d == 0) return lines;
  }
}

void expect_slices_share_no_line(const testing::OperatorCase& c, uint64_t seed) {
  StatusOr<testing::BuiltCase> built = testing::build(c, seed);
  ASSERT_TRUE(built.ok()) << c.name << ": " << built.status().to_string();
  testing::Random r(seed);
  const Tensor& output = built->graph.output_of(0);
  for (const PartitionAxis& axis : partition_axes(built->graph, 0)) {
    const int64_t extent = output.dims[axis.axis];
    const int64_t cut = axis.granularity * r.integer(1, (extent - 1) / axis.granularity);
    const Slice low{0, axis.axis, 0, cut};
    const Slice high{0, axis.axis, cut, extent};
    EXPECT_TRUE(check_slice(built->graph, low).ok());
    EXPECT_TRUE(check_slice(built->graph, high).ok());
    const std::set<int64_t> a = lines_of(output, output_region(built->graph, low));
    for (int64_t line : lines_of(output, output_region(built->graph, high))) {
      ASSERT_FALSE(a.contains(line)) << c.name << " cut at " << to_string(built->graph, low);
    }
  }
}

TEST(PartitionAxes, SlicesOfTheTableShareNoCacheLine) {
  for (const testing::OperatorCase& c : testing::operator_table()) {
    expect_slices_share_no_line(c, 1);
  }
}

TEST(PartitionAxes, SlicesOfRandomCasesShareNoCacheLine) {
  for (uint64_t seed = 0; seed < 800; ++seed) {
    expect_slices_share_no_line(testing::random_case(seed), seed);
  }
}

}  // namespace
}  // namespace tandem
