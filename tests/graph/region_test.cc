// The region rule against brute force: elements outside of what input_region() names are made NaN
// (indices: changed), and the output region must not notice; and where the rule is exact, the faces
// of the box are made NaN, and it must.
#include <gtest/gtest.h>

#include <bit>
#include <limits>

#include "graph/partition.h"
#include "graph/reference.h"
#include "tests/support/operator_table.h"
#include "tests/support/random.h"

namespace tandem {
namespace {

using testing::BuiltCase;
using testing::OperatorCase;
using testing::Random;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

template <typename F>
void for_each_element(const Dims& dims, const F& f) {
  Dims index(dims.size(), 0);
  const int64_t count = element_count(dims);
  for (int64_t i = 0; i < count; ++i) {
    f(static_cast<size_t>(i), index);
    for (size_t d = dims.size(); d-- > 0;) {
      if (++index[d] < dims[d]) break;
      index[d] = 0;
    }
  }
}

bool inside(const Dims& index, const Region& region) {
  for (size_t d = 0; d < index.size(); ++d) {
    if (index[d] < region[d].begin || index[d] >= region[d].end) return false;
  }
  return true;
}

// Bitwise, so that NaN equals itself.
bool same(double a, double b) { return std::bit_cast<uint64_t>(a) == std::bit_cast<uint64_t>(b); }

bool same_inside(const ReferenceTensor& a, const ReferenceTensor& b, const Region& region) {
  bool equal = true;
  for_each_element(a.dims, [&](size_t i, const Dims& index) {
    if (inside(index, region)) equal = equal && same(a.values[i], b.values[i]);
  });
  return equal;
}

Region random_box(const Dims& dims, Random& r) {
  Region box;
  for (int64_t extent : dims) {
    const int64_t begin = r.integer(0, extent - 1);
    box.push_back({begin, r.integer(begin + 1, extent)});
  }
  return box;
}

// True where every element on the faces of the box that the rule names is really read.
bool rule_is_exact(const Operator& op, int index) {
  switch (op.kind()) {
    case OperatorKind::kConv: {
      const auto& a = op.as<ConvAttributes>();
      const bool dense =
          a.dilation == Size2{1, 1} && a.stride[0] <= a.kernel[0] && a.stride[1] <= a.kernel[1];
      return index == 0 && dense;
    }
    case OperatorKind::kPool: {
      const auto& a = op.as<PoolAttributes>();
      return a.dilation == Size2{1, 1} && a.stride[0] <= a.kernel[0] && a.stride[1] <= a.kernel[1];
    }
    case OperatorKind::kConvTranspose:  // strides leave gaps between the taps
    case OperatorKind::kReshape:        // a linear range is not always a box
    case OperatorKind::kGather:         // depends on the indices
      return false;
    default:
      return true;
  }
}

class Checker {
 public:
  Checker(const OperatorCase& c, uint64_t seed) : name_(c.name) {
    StatusOr<BuiltCase> built = testing::build(c, seed);
    if (!built.ok()) {
      ADD_FAILURE() << c.name << ": " << built.status().to_string();
      return;
    }
    built_ = std::move(*built);
    values_ = reference(built_.graph, built_.inputs);
    Random r(seed);
    const Dims& dims = built_.graph.output_of(0).dims;
    check(whole_region(dims));
    for (int i = 0; i < 3; ++i) check(random_box(dims, r));
    for (const PartitionAxis& axis : partition_axes(built_.graph, 0)) {
      const int64_t extent = dims[axis.axis];
      const int64_t cut = axis.granularity * r.integer(1, (extent - 1) / axis.granularity);
      check(output_region(built_.graph, {0, axis.axis, 0, cut}));
      check(output_region(built_.graph, {0, axis.axis, cut, extent}));
    }
  }

 private:
  ReferenceTensor run_with(size_t changed, const ReferenceTensor& value) const {
    const Operator& op = built_.graph.op(0);
    std::vector<const ReferenceTensor*> inputs;
    for (size_t k = 0; k < op.inputs.size(); ++k) {
      inputs.push_back(k == changed ? &value : &values_[op.inputs[k]]);
    }
    return reference(built_.graph, 0, inputs);
  }

  void check(const Region& output) const {
    const Operator& op = built_.graph.op(0);
    const ReferenceTensor& expected = values_[op.output];
    for (size_t k = 0; k < op.inputs.size(); ++k) {
      const int index = static_cast<int>(k);
      const Region region = input_region(built_.graph, 0, index, output);
      const Tensor& tensor = built_.graph.input_of(0, index);
      const std::string where = name_ + ": input " + std::to_string(k) + ", output region " +
                                to_string(output) + " needs " + to_string(region);
      ASSERT_TRUE(contains(whole_region(tensor.dims), region)) << where;
      // Gather's indices must stay indices.
      const bool is_index = op.kind() == OperatorKind::kGather && k == 1;
      ReferenceTensor marked = values_[op.inputs[k]];
      for_each_element(marked.dims, [&](size_t i, const Dims& at) {
        if (!inside(at, region)) marked.values[i] = is_index ? 0 : kNaN;
      });
      EXPECT_TRUE(same_inside(expected, run_with(k, marked), output))
          << where << ", and reads more";
      if (is_empty(region) || !rule_is_exact(op, index)) continue;
      for (size_t d = 0; d < region.size(); ++d) {
        for (int64_t face : {region[d].begin, region[d].end - 1}) {
          marked = values_[op.inputs[k]];
          for_each_element(marked.dims, [&](size_t i, const Dims& at) {
            if (inside(at, region) && at[d] == face) marked.values[i] = kNaN;
          });
          EXPECT_FALSE(same_inside(expected, run_with(k, marked), output))
              << where << ", but does not read index " << face << " of axis " << d;
        }
      }
    }
  }

  std::string name_;
  BuiltCase built_;
  std::vector<ReferenceTensor> values_;
};

// Larger cases of the table take the naive reference too long for so many runs.
bool is_small(const OperatorCase& c) {
  StatusOr<BuiltCase> built = testing::build(c, 0);
  return !built.ok() || work_of(built->graph, 0).flops < 2e5;
}

TEST(RegionRule, HoldsForTheTable) {
  int checked = 0;
  for (const OperatorCase& c : testing::operator_table()) {
    if (!is_small(c)) continue;
    Checker(c, 7);
    ++checked;
  }
  EXPECT_GT(checked, 150);
}

TEST(RegionRule, HoldsForRandomCases) {
  int checked = 0;
  for (uint64_t seed = 0; seed < 640; ++seed) {
    const OperatorCase c = testing::random_case(seed);
    if (!is_small(c)) continue;
    Checker(c, seed);
    ++checked;
  }
  EXPECT_GT(checked, 480);
}

}  // namespace
}  // namespace tandem
