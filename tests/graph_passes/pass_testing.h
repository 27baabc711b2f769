// What tests of passes share: short ways to build graphs, and to see that a pass changed the form
// of a graph but not its meaning.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "graph/reference.h"
#include "tests/support/random.h"

namespace tandem::testing {

// Numbers in [-2, 2), or [low, high).
inline HostTensor random_tensor(Random& random, Dims dims, double low = -2, double high = 2) {
  HostTensor tensor(DataType::kFloat32, std::move(dims));
  for (int64_t i = 0; i < tensor.size(); ++i) {
    tensor.data<float>()[i] = static_cast<float>(random.real(low, high));
  }
  return tensor;
}

// A graph under construction. A wrong operator fails the test.
class Builder {
 public:
  TensorId input(Dims dims) { return graph_.add_input("", DataType::kFloat32, std::move(dims)); }
  TensorId weights(Dims dims) { return graph_.add_constant("", random_tensor(random_, dims)); }
  TensorId constant(Dims dims, std::vector<float> values) {
    return graph_.add_constant("", HostTensor::floats(std::move(dims), std::move(values)));
  }
  TensorId scalar(float value) { return constant({}, {value}); }
  TensorId add(Attributes attributes, std::vector<TensorId> inputs, Dims dims = {},
               std::string name = "") {
    StatusOr<TensorId> id =
        graph_.add(std::move(name), std::move(attributes), std::move(inputs), std::move(dims));
    EXPECT_TRUE(id.ok()) << id.status().to_string();
    return id.ok() ? *id : 0;
  }
  TensorId unary(Function function, TensorId x, float alpha = 0, float beta = 0) {
    return add(UnaryAttributes{{function, alpha, beta}}, {x});
  }
  TensorId binary(BinaryAttributes::Kind kind, TensorId a, TensorId b) {
    return add(BinaryAttributes{kind, {}}, {a, b});
  }
  TensorId sum(TensorId a, TensorId b) { return binary(BinaryAttributes::Kind::kAdd, a, b); }
  TensorId product(TensorId a, TensorId b) { return binary(BinaryAttributes::Kind::kMul, a, b); }
  // A convolution to `channels` channels by a square kernel.
  TensorId conv(TensorId x, int64_t channels, int64_t kernel, int64_t pad = 0, int64_t groups = 1) {
    ConvAttributes conv;
    conv.kernel = {kernel, kernel};
    conv.pads = {pad, pad, pad, pad};
    conv.groups = groups;
    const int64_t inputs = graph_.tensor(x).dims[1] / groups;
    return add(conv, {x, weights({channels, inputs, kernel, kernel})});
  }
  TensorId linear(TensorId x, int64_t columns) {
    return add(LinearAttributes{}, {x, weights({graph_.tensor(x).dims.back(), columns})});
  }

  Graph finish(std::vector<TensorId> outputs) {
    for (TensorId output : outputs) graph_.mark_output(output);
    return std::move(graph_);
  }
  const Graph& graph() const { return graph_; }

 private:
  Graph graph_;
  Random random_{1};
};

inline std::vector<HostTensor> random_inputs(const Graph& graph) {
  Random random(2);
  std::vector<HostTensor> inputs;
  for (TensorId id : graph.inputs()) {
    const Tensor& tensor = graph.tensor(id);
    if (tensor.type == DataType::kFloat32) {
      inputs.push_back(random_tensor(random, tensor.dims));
    } else {
      // Indices: small enough for every table in a test.
      HostTensor indices(DataType::kInt64, tensor.dims);
      for (int64_t i = 0; i < indices.size(); ++i) {
        indices.data<int64_t>()[i] = random.integer(0, 3);
      }
      inputs.push_back(std::move(indices));
    }
  }
  return inputs;
}

// The outputs of both graphs on the same inputs agree to `tolerance`, relative to the largest.
inline void expect_same_outputs(const Graph& before, const Graph& after, double tolerance = 1e-5) {
  ASSERT_EQ(before.inputs().size(), after.inputs().size());
  ASSERT_EQ(before.outputs().size(), after.outputs().size());
  const std::vector<HostTensor> inputs = random_inputs(before);
  const std::vector<ReferenceTensor> expected = reference(before, inputs);
  const std::vector<ReferenceTensor> actual = reference(after, inputs);
  for (size_t k = 0; k < before.outputs().size(); ++k) {
    const ReferenceTensor& a = actual[after.outputs()[k]];
    const ReferenceTensor& e = expected[before.outputs()[k]];
    EXPECT_EQ(after.tensor(after.outputs()[k]).name, before.tensor(before.outputs()[k]).name);
    ASSERT_EQ(a.dims, e.dims);
    double largest = 1e-30;
    for (double value : e.values) largest = std::max(largest, std::abs(value));
    for (size_t i = 0; i < a.values.size(); ++i) {
      ASSERT_NEAR(a.values[i], e.values[i], tolerance * largest)
          << "output " << k << ", element " << i;
    }
  }
}

using Pass = StatusOr<Graph> (*)(const Graph&);

// The graph behind the pass, which is valid and has the same meaning.
inline Graph after(Pass pass, const Graph& graph) {
  StatusOr<Graph> result = pass(graph);
  EXPECT_TRUE(result.ok()) << result.status().to_string();
  if (!result.ok()) return graph;
  expect_same_outputs(graph, *result);
  return std::move(*result);
}

inline std::vector<OperatorKind> kinds(const Graph& graph) {
  std::vector<OperatorKind> kinds;
  for (const Operator& op : graph.operators()) kinds.push_back(op.kind());
  return kinds;
}

// The operator that makes the graph's first output.
inline const Operator& last(const Graph& graph) {
  return graph.op(graph.tensor(graph.outputs()[0]).producer);
}

}  // namespace tandem::testing
