// Runs one operator on the CPU lane's implementations and compares with the reference.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "graph/reference.h"
#include "lane/cpu/kernel.h"

namespace tandem::cpu {

inline constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
inline constexpr float kUntouched = 12345.0f;

inline HostTensor random_floats(const Dims& dims, unsigned seed, float low = -1, float high = 1) {
  std::mt19937 generator(seed);
  std::uniform_real_distribution<float> uniform(low, high);
  std::vector<float> values(element_count(dims));
  for (float& v : values) v = uniform(generator);
  return HostTensor::floats(dims, std::move(values));
}

// A graph of one operator. Every tensor is made here, so that cases stay a line or two.
class Case {
 public:
  Graph graph;
  std::vector<TensorId> inputs;

  static constexpr Layout kChannelsLast{Order::kChannelsLast, true};
  static constexpr Layout kRows{Order::kRowMajor, true};

  Case& input(const Dims& dims, Layout layout = kRows, float low = -1, float high = 1) {
    inputs.push_back(
        graph.add_input("x" + std::to_string(inputs.size()), DataType::kFloat32, dims, layout));
    values_.push_back(random_floats(dims, 1 + inputs.size(), low, high));
    return *this;
  }
  Case& constant(const Dims& dims, float scale = 1) {
    return constant(random_floats(dims, 101 + inputs.size(), -scale, scale));
  }
  Case& constant(HostTensor value) {
    inputs.push_back(graph.add_constant("c" + std::to_string(inputs.size()), value));
    return *this;
  }
  Case& indices(const Dims& dims, std::vector<int64_t> values) {
    inputs.push_back(graph.add_input("i" + std::to_string(inputs.size()), DataType::kInt64, dims));
    values_.push_back(HostTensor::ints(dims, std::move(values)));
    return *this;
  }
  Case& op(Attributes attributes, Dims dims = {}, Layout layout = kRows) {
    StatusOr<TensorId> y = graph.add("op", std::move(attributes), inputs, dims, layout);
    EXPECT_TRUE(y.ok()) << y.status().to_string();
    if (y.ok()) graph.mark_output(*y);
    return *this;
  }
  const std::vector<HostTensor>& values() const { return values_; }

 private:
  std::vector<HostTensor> values_;  // of the graph's inputs, in order
};

struct Options {
  // Floats by which pixels (rows) lie further apart than their own padding asks for: the tensors
  // then lie inside of larger ones.
  int64_t input_gap = 0, output_gap = 0;
  double tolerance = 2e-5;  // relative to 1 + |expected|
};

// A tensor in memory of its own, its padding filled with `fill`.
class Memory {
 public:
  Memory(const Tensor& tensor, int64_t gap, float fill) {
    view_ = {tensor.type, tensor.dims, strides_of(tensor.dims, tensor.layout), nullptr};
    if (gap > 0) widen(tensor.layout, gap);
    int64_t span = 1;
    for (size_t d = 0; d < view_.dims.size(); ++d) span += (view_.dims[d] - 1) * view_.strides[d];
    // Padding behind the last element belongs to the tensor.
    span = (span + kLineFloats - 1) / kLineFloats * kLineFloats;
    if (tensor.type == DataType::kInt64) span *= 2;
    floats_ = allocate_floats(span);
    std::fill_n(floats_.get(), span, fill);
    view_.data = floats_.get();
  }
  const TensorView& view() const { return view_; }

 private:
  // Adds `gap` floats behind each innermost row and keeps the outer strides consistent.
  void widen(Layout layout, int64_t gap) {
    std::vector<size_t> order;  // innermost first
    if (layout.order == Order::kChannelsLast) {
      order = {1, 3, 2, 0};
    } else {
      for (size_t d = view_.dims.size(); d-- > 0;) order.push_back(d);
    }
    size_t inner = 0;
    while (inner + 1 < order.size() && view_.dims[order[inner]] == 1) ++inner;
    int64_t stride = (view_.dims[order[inner]] + kLineFloats - 1) / kLineFloats * kLineFloats + gap;
    for (size_t i = inner + 1; i < order.size(); ++i) {
      view_.strides[order[i]] = stride;
      stride *= view_.dims[order[i]];
    }
  }

  TensorView view_;
  AlignedFloats floats_;
};

// Every slice that the partition rule allows in some representative cuts, and the whole.
inline std::vector<Slice> slices_of(const Graph& graph, OperatorId op) {
  std::vector<Slice> slices = {{op, kNone, 0, 0}};
  for (const PartitionAxis& axis : partition_axes(graph, op)) {
    const int64_t extent = graph.output_of(op).dims[axis.axis];
    const int64_t units = (extent + axis.granularity - 1) / axis.granularity;
    const int64_t cuts[] = {0, units / 3 * axis.granularity,
                            std::min((units + 1) / 2 * axis.granularity, extent), extent};
    for (int i = 0; i < 3; ++i) {
      if (cuts[i] < cuts[i + 1]) slices.push_back({op, axis.axis, cuts[i], cuts[i + 1]});
    }
  }
  return slices;
}

// Runs the case's operator on each of `implementations` that supports it, whole and in slices, with
// teams of one and two. Returns the names of those that ran the whole operator.
inline std::set<std::string> check(const Case& c,
                                   const std::vector<const Implementation*>& implementations,
                                   const Options& options = {}) {
  std::set<std::string> ran;
  const Graph& graph = c.graph;
  if (const Status status = graph.validate(); !status.ok()) {
    ADD_FAILURE() << status.to_string();
    return ran;
  }
  const Operator& op = graph.op(0);
  const std::vector<ReferenceTensor> expected = reference(graph, c.values());

  std::vector<Memory> inputs;
  inputs.reserve(op.inputs.size());
  size_t next_value = 0;
  Problem p;
  p.graph = &graph;
  p.op = &op;
  for (size_t i = 0; i < op.inputs.size(); ++i) {
    const Tensor& tensor = graph.tensor(op.inputs[i]);
    if (tensor.kind == TensorKind::kConstant && is_packed_input(op, static_cast<int>(i))) {
      p.inputs.push_back({tensor.type, tensor.dims,
                          strides_of(tensor.dims, {Order::kRowMajor, false}),
                          const_cast<std::byte*>(tensor.value->bytes.data())});
      continue;
    }
    inputs.emplace_back(tensor, options.input_gap, kNaN);
    copy_to_view(tensor.kind == TensorKind::kConstant ? *tensor.value : c.values()[next_value++],
                 inputs.back().view());
    p.inputs.push_back(inputs.back().view());
  }
  const Tensor& y = graph.output_of(0);
  const ReferenceTensor& want = expected[op.output];

  for (const Slice& slice : slices_of(graph, 0)) {
    for (const int threads : {1, 2}) {
      for (const Implementation* implementation : implementations) {
        Memory output(y, options.output_gap, kUntouched);
        p.output = output.view();
        p.slice = slice;
        p.region = output_region(graph, slice);
        p.threads = threads;
        if (!implementation->supports(p).ok()) continue;
        SCOPED_TRACE(std::string(implementation->name()) + " " + to_string(graph, slice) +
                     " threads " + std::to_string(threads));
        Resources resources;
        StatusOr<std::unique_ptr<Kernel>> kernel = implementation->prepare(p, resources);
        if (!kernel.ok()) {
          ADD_FAILURE() << kernel.status().to_string();
          continue;
        }
        // Twice: what is prepared must survive a run.
        for (int run = 0; run < 2; ++run) {
          const Status status = (*kernel)->run();
          if (!status.ok()) ADD_FAILURE() << status.to_string();
        }
        if (slice.whole()) ran.insert(implementation->name());
        HostTensor got(y.type, y.dims);
        copy_from_view(output.view(), got);
        int wrong = 0;
        for (int64_t i = 0; i < got.size() && wrong < 3; ++i) {
          bool inside = true;
          int64_t rest = i;
          for (size_t d = y.dims.size(); d-- > 0;) {
            const int64_t position = rest % y.dims[d];
            rest /= y.dims[d];
            inside = inside && position >= p.region[d].begin && position < p.region[d].end;
          }
          if (y.type == DataType::kInt64) {
            if (inside && got.data<int64_t>()[i] != static_cast<int64_t>(want.values[i])) {
              ADD_FAILURE() << "element " << i << ": " << got.data<int64_t>()[i] << ", expected "
                            << want.values[i];
              ++wrong;
            }
            continue;
          }
          const double value = got.data<float>()[i];
          const double target = inside ? want.values[i] : kUntouched;
          const bool both_infinite = std::isinf(target) && value == target;
          if (!both_infinite &&
              !(std::fabs(value - target) <= options.tolerance * (1 + std::fabs(target)))) {
            ADD_FAILURE() << (inside ? "" : "outside of the slice, ") << "element " << i << ": "
                          << value << ", expected " << target;
            ++wrong;
          }
        }
        if (wrong > 0) return ran;
      }
    }
  }
  return ran;
}

}  // namespace tandem::cpu
