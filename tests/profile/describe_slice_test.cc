#include "profile/describe_slice.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/operator_table.h"
#include "tests/support/random.h"

namespace tandem {
namespace {

using predict::CutAxis;
using predict::SliceCase;
using predict::SliceFamily;
using testing::Random;

std::vector<Slice> slices_of(const Graph& graph, Random& r) {
  std::vector<Slice> slices = {{0}};
  for (const PartitionAxis& axis : partition_axes(graph, 0)) {
    const int64_t extent = graph.output_of(0).dims[axis.axis];
    const int64_t units = (extent + axis.granularity - 1) / axis.granularity;
    const int64_t begin = r.integer(0, units - 1), end = r.integer(begin + 1, units);
    slices.push_back(
        {0, axis.axis, begin * axis.granularity, std::min(end * axis.granularity, extent)});
  }
  return slices;
}

// Offsets of all elements of a region, ascending.
std::vector<int64_t> offsets_of(const Region& region, const Dims& strides) {
  std::vector<int64_t> offsets = {0};
  for (size_t d = 0; d < region.size(); ++d) {
    std::vector<int64_t> next;
    for (const int64_t offset : offsets) {
      for (int64_t i = region[d].begin; i < region[d].end; ++i) {
        next.push_back(offset + i * strides[d]);
      }
    }
    offsets = std::move(next);
  }
  std::sort(offsets.begin(), offsets.end());
  return offsets;
}

int64_t first_run(const std::vector<int64_t>& offsets) {
  size_t run = 1;
  while (run < offsets.size() && offsets[run] == offsets[run - 1] + 1) ++run;
  return static_cast<int64_t>(run);
}

ImplementationInfo some_implementation() {
  ImplementationInfo info;
  info.name = "cl_conv \"quoted\", with comma";
  info.library_variant = "jit:avx512";
  for (int d = 0; d < 3; ++d) {
    info.global_size[d] = 100 + d;
    info.local_size[d] = 10 + d;
  }
  info.work_groups = 77;
  info.threads = 2;
  info.dispatches = 3;
  info.computed_flops = 1.25e9 + 1;
  return info;
}

TEST(DescribeSlice, AgreesWithTheGraphOnEveryOperator) {
  Random r(5);
  for (const testing::OperatorCase& c : testing::operator_table()) {
    SCOPED_TRACE(c.name);
    StatusOr<testing::BuiltCase> built = testing::build(c, 3);
    ASSERT_TRUE(built.ok()) << built.status().to_string();
    const Graph& graph = built->graph;
    const Placement placement = analyse(graph);
    const predict::LaneFacts lane{.name = "gpu", .kind = "opencl", .vendor = "v", .cores = 2};
    for (const Slice& slice : slices_of(graph, r)) {
      SCOPED_TRACE(to_string(graph, slice));
      SliceCase found = describe_slice(graph, placement, slice, lane, some_implementation());
      const Work work = work_of(graph, slice);
      EXPECT_DOUBLE_EQ(found.flops, work.flops);
      EXPECT_NEAR(found.bytes(), work.bytes, work.bytes * 1e-9);
      const Region region = output_region(graph, slice);
      int64_t elements = 1;
      for (const Range& range : region) elements *= range.size();
      EXPECT_EQ(
          found.part_batch() * found.part_height() * found.part_width() * found.part_channels(),
          elements);
      EXPECT_EQ(found.out_run,
                first_run(offsets_of(region, placement.tensors[graph.op(0).output].strides)));

      found.repeated = slice.whole();
      found.load = predict::OtherLoad::kMemory;
      const StatusOr<SliceCase> back = predict::parse_slice_case(to_json(found));
      ASSERT_TRUE(back.ok()) << back.status().to_string();
      EXPECT_EQ(*back, found);
      EXPECT_EQ(predict::slice_case_values(found).size(), predict::slice_case_columns().size());
      // All parts of one operator have the operator's shape.
      EXPECT_EQ(shape_key(found), shape_key(describe_slice(graph, placement, {0})));
    }
  }
}

TEST(DescribeSlice, ConvolutionsAndProductsInTheWordsOfPredictors) {
  Graph graph;
  const Layout image{Order::kChannelsLast, true};
  const TensorId x = graph.add_input("x", DataType::kFloat32, {2, 24, 10, 12}, image);
  const TensorId w = graph.add_constant("w", HostTensor(DataType::kFloat32, {48, 24, 3, 3}));
  ConvAttributes conv{.kernel = {3, 3}, .stride = {2, 1}, .pads = {1, 1, 1, 1}};
  ASSERT_TRUE(graph.add("conv", conv, {x, w}, {}, image).ok());
  const TensorId a = graph.add_input("a", DataType::kFloat32, {3, 4, 20, 64});
  const TensorId b = graph.add_input("b", DataType::kFloat32, {3, 4, 30, 64});
  MatMulAttributes product{.transpose_b = true};
  ASSERT_TRUE(graph.add("product", product, {a, b}).ok());
  const Placement placement = analyse(graph);

  const SliceCase rows = describe_slice(graph, placement, {0, 2, 2, 5});
  EXPECT_EQ(rows.family, SliceFamily::kConv3x3);
  EXPECT_EQ(rows.axis, CutAxis::kHeight);
  EXPECT_EQ(rows.part_height(), 3);
  EXPECT_EQ(rows.height, 5);
  EXPECT_EQ(rows.in_channels, 24);
  EXPECT_EQ(rows.weight_bytes, 48 * 24 * 9 * 4);
  // Output rows 2..4 at stride 2 read input rows 3..9.
  EXPECT_EQ(rows.in_bytes, 2 * 24 * 7 * 12 * 4);
  EXPECT_EQ(rows.in_pitch, 32);  // 24 channels are padded to cache lines
  const SliceCase channels = describe_slice(graph, placement, {0, 1, 16, 48});
  EXPECT_EQ(channels.weight_bytes, 32 * 24 * 9 * 4);
  EXPECT_EQ(channels.out_run, 32);

  const SliceCase heads = describe_slice(graph, placement, {1, 1, 1, 3});
  EXPECT_EQ(heads.family, SliceFamily::kMatMul);
  EXPECT_EQ(heads.variant, "nt");
  EXPECT_EQ(heads.axis, CutAxis::kBatch);
  EXPECT_EQ(heads.part_batch(), 6);
  EXPECT_EQ(heads.in_channels, 64);
  EXPECT_EQ(heads.flops, 2.0 * 6 * 20 * 30 * 64);
}

TEST(DescribeSlice, DamagedTextIsRefused) {
  const SliceCase slice;
  const std::string text = to_json(slice);
  std::string other = text;
  other.replace(other.find("\"version\":1"), 11, "\"version\":2");
  EXPECT_EQ(predict::parse_slice_case(other).status().code(), StatusCode::kFailedPrecondition);
  other = text;
  other.replace(other.find("\"batch\":1"), 9, "\"batch\":0");
  EXPECT_EQ(predict::parse_slice_case(other).status().code(), StatusCode::kCorrupt);
  EXPECT_EQ(predict::parse_slice_case(text.substr(0, text.size() / 2)).status().code(),
            StatusCode::kCorrupt);
  EXPECT_EQ(predict::parse_slice_case("[]").status().code(), StatusCode::kCorrupt);
}

}  // namespace
}  // namespace tandem
