#include "schedule/placement.h"

#include <gtest/gtest.h>

#include <map>

#include "schedule/schedule.h"
#include "tests/schedule/random_graph.h"

namespace tandem {
namespace {

constexpr Layout kImage{Order::kChannelsLast, true};

TensorId conv(Graph& graph, TensorId x, int64_t channels) {
  const TensorId w = graph.add_constant(
      "", HostTensor(DataType::kFloat32, {channels, graph.tensor(x).dims[1], 1, 1}));
  return graph.add("", ConvAttributes{}, {x, w}, {}, kImage).value();
}

TensorId concat(Graph& graph, std::vector<TensorId> operands, int axis = 1,
                Layout layout = kImage) {
  return graph.add("", ConcatAttributes{.axis = axis}, std::move(operands), {}, layout).value();
}

class PlacementTest : public ::testing::Test {
 protected:
  Graph graph_;
  TensorId x_ = graph_.add_input("x", DataType::kFloat32, {1, 16, 4, 4}, kImage);
};

TEST_F(PlacementTest, OperandsOfAConcatLieInItsOutput) {
  const TensorId a = conv(graph_, x_, 32);
  const TensorId b = conv(graph_, x_, 24);
  const TensorId c = concat(graph_, {a, b});
  const Placement placement = analyse(graph_);
  EXPECT_EQ(placement.tensors[a].root, c);
  EXPECT_EQ(placement.tensors[a].offset, 0);
  EXPECT_EQ(placement.tensors[b].root, c);
  EXPECT_EQ(placement.tensors[b].offset, 32);
  EXPECT_EQ(placement.tensors[b].strides, (Dims{64 * 16, 1, 64 * 4, 64}));
  EXPECT_FALSE(placement.launched[graph_.tensor(c).producer]);
  EXPECT_TRUE(is_alias(graph_, graph_.tensor(c).producer));
}

TEST_F(PlacementTest, ConcatsNest) {
  const TensorId a = conv(graph_, x_, 32);
  const TensorId b = conv(graph_, x_, 16);
  const TensorId inner = concat(graph_, {a, b});
  const TensorId d = conv(graph_, inner, 16);
  const TensorId outer = concat(graph_, {d, inner});
  const Placement placement = analyse(graph_);
  EXPECT_EQ(placement.tensors[b].root, outer);
  EXPECT_EQ(placement.tensors[b].offset, 16 + 32);
  EXPECT_EQ(placement.tensors[inner].root, outer);
  EXPECT_FALSE(placement.launched[graph_.tensor(inner).producer]);
  EXPECT_FALSE(placement.launched[graph_.tensor(outer).producer]);
}

TEST_F(PlacementTest, OperandsThatCannotBeInPlaceAreCopied) {
  // The input is the caller's; 24 channels end within a line, and what follows starts within one.
  const TensorId a = conv(graph_, x_, 24);
  const TensorId b = conv(graph_, x_, 16);
  const TensorId c = concat(graph_, {x_, a, b});
  const Placement placement = analyse(graph_);
  for (TensorId t : {x_, a, b, c}) EXPECT_TRUE(placement.owns_memory(t));
  EXPECT_TRUE(placement.launched[graph_.tensor(c).producer]);
}

TEST_F(PlacementTest, SomeOperandsInPlace) {
  const TensorId a = conv(graph_, x_, 32);
  const TensorId c = concat(graph_, {a, x_});
  const Placement placement = analyse(graph_);
  EXPECT_EQ(placement.tensors[a].root, c);
  EXPECT_TRUE(placement.owns_memory(x_));
  EXPECT_TRUE(placement.launched[graph_.tensor(c).producer]);
}

TEST_F(PlacementTest, AnOperandOfTwoConcatsOrTwiceOfOneIsCopied) {
  const TensorId a = conv(graph_, x_, 32);
  const TensorId b = conv(graph_, x_, 32);
  const TensorId c = conv(graph_, x_, 32);
  concat(graph_, {a, b});
  concat(graph_, {b, c, c});
  const Placement placement = analyse(graph_);
  EXPECT_FALSE(placement.owns_memory(a));
  EXPECT_TRUE(placement.owns_memory(b));
  EXPECT_TRUE(placement.owns_memory(c));
}

TEST_F(PlacementTest, OuterAxis) {
  UnaryAttributes relu;
  const TensorId t = graph_.add_input("t", DataType::kFloat32, {1, 5, 20});
  const TensorId a = graph_.add("", relu, {t}).value();
  const TensorId b = graph_.add("", relu, {t}).value();
  const TensorId rows = concat(graph_, {a, b}, 1, {});
  // Two batches of rows do not follow each other at one pitch.
  const TensorId u = graph_.add_input("u", DataType::kFloat32, {2, 5, 20});
  const TensorId d = graph_.add("", relu, {u}).value();
  const TensorId e = graph_.add("", relu, {u}).value();
  const TensorId batches = concat(graph_, {d, e}, 1, {});
  const Placement placement = analyse(graph_);
  EXPECT_EQ(placement.tensors[b].root, rows);
  EXPECT_EQ(placement.tensors[b].offset, 5 * 32);
  EXPECT_TRUE(placement.owns_memory(d));
  EXPECT_TRUE(placement.owns_memory(batches));
}

// Heads of 64 channels: queries, keys and values side by side in the rows of 7 tokens.
TEST_F(PlacementTest, AttentionCopiesNothing) {
  constexpr Layout kRows{Order::kRowMajor, true};
  const TensorId tokens = graph_.add_input("tokens", DataType::kFloat32, {1, 7, 3 * 2 * 64}, kRows);
  const TensorId qkv = graph_.add("", UnaryAttributes{}, {tokens}, {}, kRows).value();
  const auto heads = [&](int64_t start) {
    const CopyAttributes copy{{0, 2, 1, 2}, {1, 64, 1, 1}, {0, 0, start}};
    return graph_.add("", copy, {qkv}, {1, 2, 7, 64}, kRows).value();
  };
  const TensorId q = heads(0);
  const TensorId k = heads(128);
  const TensorId v = heads(256);
  const MatMulAttributes transposed{.transpose_b = true};
  const TensorId weights = graph_.add("", transposed, {q, k}, {}, kRows).value();
  const TensorId mixed = graph_.add("", MatMulAttributes{}, {weights, v}, {}, kRows).value();
  const CopyAttributes back{{0, 2, 1, 3}, {1, 1, 1, 1}, {0, 0, 0, 0}};
  const TensorId swapped = graph_.add("", back, {mixed}, {1, 7, 2, 64}, kRows).value();
  const TensorId merged =
      graph_.add("", ReshapeAttributes{}, {swapped}, {1, 7, 128}, kRows).value();
  graph_.mark_output(graph_.add("", UnaryAttributes{}, {merged}, {}, kRows).value());
  const Placement placement = analyse(graph_);
  EXPECT_EQ(placement.tensors[q].root, qkv);
  EXPECT_EQ(placement.tensors[k].offset, 128);
  EXPECT_EQ(placement.tensors[v].strides, (Dims{896, 64, 384, 1}));
  EXPECT_EQ(placement.tensors[mixed].root, swapped);
  EXPECT_EQ(placement.tensors[mixed].strides, (Dims{896, 64, 128, 1}));
  EXPECT_EQ(placement.tensors[merged].root, swapped);
  for (const TensorId copied : {q, k, v, swapped, merged}) {
    EXPECT_FALSE(placement.launched[graph_.tensor(copied).producer]);
    EXPECT_TRUE(is_alias(graph_, graph_.tensor(copied).producer));
  }
  // What rows of the result need of the product: the same tokens of every head.
  std::vector<TensorRegion> parts;
  resolve(graph_, placement, merged, {{0, 1}, {2, 5}, {0, 128}}, &parts);
  for (const TensorRegion& part : parts) {
    EXPECT_EQ(part.tensor, mixed);
    EXPECT_EQ(part.region[2], (Range{2, 5}));
  }
  EXPECT_FALSE(parts.empty());
}

TEST_F(PlacementTest, HeadsThatShareLinesAreCopied) {
  constexpr Layout kRows{Order::kRowMajor, true};
  const TensorId tokens = graph_.add_input("tokens", DataType::kFloat32, {1, 7, 2 * 24}, kRows);
  const TensorId x = graph_.add("", UnaryAttributes{}, {tokens}, {}, kRows).value();
  const CopyAttributes copy{{0, 2, 1, 2}, {1, 24, 1, 1}, {0, 0, 0}};
  const TensorId q = graph_.add("", copy, {x}, {1, 2, 7, 24}, kRows).value();
  const TensorId y =
      graph_.add("", MatMulAttributes{.transpose_b = true}, {q, q}, {}, kRows).value();
  const TensorId mixed = graph_.add("", MatMulAttributes{}, {y, q}, {}, kRows).value();
  const CopyAttributes back{{0, 2, 1, 3}, {1, 1, 1, 1}, {0, 0, 0, 0}};
  const TensorId swapped = graph_.add("", back, {mixed}, {1, 7, 2, 24}, kRows).value();
  graph_.mark_output(graph_.add("", UnaryAttributes{}, {swapped}, {}, kRows).value());
  const Placement placement = analyse(graph_);
  EXPECT_TRUE(placement.owns_memory(q));
  EXPECT_TRUE(placement.owns_memory(mixed) ||
              placement.tensors[mixed].strides[1] % kLineFloats == 0);
}

TEST_F(PlacementTest, AnOperandThatIsAlsoReshapedStaysWhereTheViewNeedsIt) {
  const TensorId t = graph_.add_input("t", DataType::kFloat32, {4, 64});
  const TensorId a = graph_.add("", UnaryAttributes{}, {t}).value();
  const TensorId b = graph_.add("", UnaryAttributes{}, {t}).value();
  concat(graph_, {a, b}, 1, {});
  const TensorId view = graph_.add("", ReshapeAttributes{}, {a}, {4, 4, 16}).value();
  const Placement placement = analyse(graph_);
  EXPECT_TRUE(placement.owns_memory(a));
  EXPECT_EQ(placement.tensors[view].root, a);
  EXPECT_FALSE(placement.owns_memory(b));
}

TEST_F(PlacementTest, ConsumersOfAConcatInPlaceWaitForTheOperandsThatTheyRead) {
  const TensorId a = conv(graph_, x_, 32);
  const TensorId b = conv(graph_, x_, 32);
  const TensorId c = concat(graph_, {a, b});
  const TensorId y = graph_.add("", UnaryAttributes{}, {c}, {}, kImage).value();
  graph_.mark_output(y);
  std::vector<TensorRegion> parts;
  resolve(graph_, analyse(graph_), c, {{0, 1}, {16, 40}, {0, 4}, {0, 4}}, &parts);
  ASSERT_EQ(parts.size(), 2u);
  EXPECT_EQ(parts[0].tensor, a);
  EXPECT_EQ(parts[0].region[1], (Range{16, 32}));
  EXPECT_EQ(parts[1].tensor, b);
  EXPECT_EQ(parts[1].region[1], (Range{0, 8}));

  Schedule schedule;
  schedule.lanes.resize(2);
  schedule.lanes[0] = {{.slice = {.op = graph_.tensor(a).producer}},
                       {.slice = {graph_.tensor(y).producer, 1, 0, 32}}};
  schedule.lanes[1] = {{.slice = {.op = graph_.tensor(b).producer}},
                       {.slice = {graph_.tensor(y).producer, 1, 32, 64}}};
  ASSERT_TRUE(derive_waits(graph_, &schedule).ok());
  EXPECT_TRUE(schedule.lanes[0][1].waits.empty());
  EXPECT_TRUE(schedule.lanes[1][1].waits.empty());
}

// No two tensors with memory of their own, and no two operands, share an element.
TEST(PlacementProperty, WritersNeverShareElements) {
  for (uint64_t seed = 0; seed < 100; ++seed) {
    testing::Random random(seed);
    const Graph graph = testing::random_graph(random, 40);
    const Placement placement = analyse(graph);
    std::map<std::pair<TensorId, int64_t>, OperatorId> writers;
    for (size_t op = 0; op < graph.operators().size(); ++op) {
      if (!placement.launched[op]) continue;
      const Operator& writer = graph.op(static_cast<OperatorId>(op));
      // A concat with some operands in place writes the others only.
      const TensorPlace& place = placement.tensors[writer.output];
      const Tensor& output = graph.tensor(writer.output);
      ASSERT_LE(place.offset + 1,
                span_of(graph.tensor(place.root).dims, graph.tensor(place.root).layout));
      if (writer.kind() == OperatorKind::kConcat) continue;
      Dims index(output.dims.size(), 0);
      for (int64_t n = 0; n < element_count(output.dims); ++n) {
        int64_t offset = place.offset;
        for (size_t d = 0; d < index.size(); ++d) offset += index[d] * place.strides[d];
        const auto [at, fresh] =
            writers.try_emplace({place.root, offset}, static_cast<OperatorId>(op));
        ASSERT_TRUE(fresh) << "seed " << seed << ": " << writer.name << " and "
                           << graph.op(at->second).name;
        for (size_t d = index.size(); d-- > 0 && ++index[d] == output.dims[d];) index[d] = 0;
      }
    }
  }
}

}  // namespace
}  // namespace tandem
