// Graphs of the operator table's cases, and what they must yield.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <utility>

#include "graph/partition.h"
#include "tests/support/operator_table.h"
#include "tests/support/random.h"

namespace tandem::testing {
namespace {

// How much an activation can stretch an error of its argument.
double slope(const Activation& activation) {
  switch (activation.function) {
    case Function::kLeakyRelu:
    case Function::kElu:
    case Function::kHardSigmoid:
      return std::max(1.0, std::abs(static_cast<double>(activation.alpha)));
    default:
      return 1.5;  // hard swish; everything else in use as an epilogue is flatter
  }
}

double largest(const ReferenceTensor& tensor) {
  double most = 0;
  for (double value : tensor.values) most = std::max(most, std::abs(value));
  return most;
}

// Summands of an output element, and the sum of their magnitudes per element.
struct Sums {
  double count = 1;
  std::vector<double> magnitude;
};

// The same operator on magnitudes, without its activation.
template <typename A>
std::vector<double> sum_of_magnitudes(const BuiltCase& built, const A& attributes,
                                      const std::vector<ReferenceTensor>& values) {
  A plain = attributes;
  if constexpr (requires { plain.activation; }) plain.activation = {};
  if constexpr (requires { plain.alpha; }) plain.alpha = std::abs(plain.alpha);
  const Operator& op = built.graph.op(0);
  Graph graph;
  std::vector<TensorId> inputs;
  std::vector<ReferenceTensor> magnitudes;
  for (TensorId id : op.inputs) {
    inputs.push_back(graph.add_input("", DataType::kFloat32, values[id].dims));
    magnitudes.push_back(values[id]);
    for (double& value : magnitudes.back().values) value = std::abs(value);
  }
  std::vector<const ReferenceTensor*> operands;
  for (const ReferenceTensor& magnitude : magnitudes) operands.push_back(&magnitude);
  if (!graph.add("", plain, inputs, built.graph.output_of(0).dims).ok()) std::abort();
  return reference(graph, 0, operands).values;
}

Sums sums_of(const BuiltCase& built, const std::vector<ReferenceTensor>& values) {
  const Operator& op = built.graph.op(0);
  const ReferenceTensor& x = values[op.inputs[0]];
  const ReferenceTensor& y = values[op.output];
  const auto per_output = [&] {
    return static_cast<double>(x.values.size()) / static_cast<double>(y.values.size());
  };
  Sums sums;
  switch (op.kind()) {
    case OperatorKind::kConv: {
      const Dims& w = values[op.inputs[1]].dims;
      sums.count = static_cast<double>(w[1] * w[2] * w[3] + 2);
      sums.magnitude = sum_of_magnitudes(built, op.as<ConvAttributes>(), values);
      return sums;
    }
    case OperatorKind::kConvTranspose: {
      const Dims& w = values[op.inputs[1]].dims;
      sums.count = static_cast<double>(w[0] * w[2] * w[3] + 1);
      sums.magnitude = sum_of_magnitudes(built, op.as<ConvTransposeAttributes>(), values);
      return sums;
    }
    case OperatorKind::kLinear:
      sums.count = static_cast<double>(x.dims.back() + 2);
      sums.magnitude = sum_of_magnitudes(built, op.as<LinearAttributes>(), values);
      return sums;
    case OperatorKind::kMatMul:
      sums.count = work_of(built.graph, 0).flops / (2 * static_cast<double>(y.values.size()));
      sums.magnitude = sum_of_magnitudes(built, op.as<MatMulAttributes>(), values);
      return sums;
    case OperatorKind::kReduce:
      sums.count = per_output();
      sums.magnitude = sum_of_magnitudes(built, op.as<ReduceAttributes>(), values);
      return sums;
    default:
      break;
  }
  // Neither long sums nor cancellation beyond the size of the operands.
  double scale = 1;
  for (TensorId input : op.inputs) scale += largest(values[input]);
  if (op.kind() == OperatorKind::kSoftmax) {
    sums.count = static_cast<double>(x.dims[op.as<SoftmaxAttributes>().axis]);
  } else if (op.kind() == OperatorKind::kLayerNorm) {
    sums.count = static_cast<double>(x.dims.back());
  } else if (op.kind() == OperatorKind::kPool) {
    const PoolAttributes& pool = op.as<PoolAttributes>();
    sums.count = static_cast<double>(pool.kernel[0] * pool.kernel[1]);
  } else if (op.kind() == OperatorKind::kResize) {
    // Weights come from positions, whose error grows with the extents.
    sums.count = 16 * static_cast<double>(std::max(y.dims[2], y.dims[3]));
  }
  // A softmax multiplies: its errors are relative to its small values.
  const bool relative = op.kind() == OperatorKind::kSoftmax && !op.as<SoftmaxAttributes>().log;
  for (double value : y.values) {
    sums.magnitude.push_back(relative ? scale * std::abs(value) : scale + std::abs(value));
  }
  return sums;
}

Activation epilogue_of(const Attributes& attributes) {
  return std::visit(
      [](const auto& a) -> Activation {
        if constexpr (requires { a.activation; }) {
          return a.activation;
        } else {
          return {};
        }
      },
      attributes);
}

bool is_exact(const Operator& op) {
  switch (op.kind()) {
    case OperatorKind::kConcat:
    case OperatorKind::kCopy:
    case OperatorKind::kReshape:
    case OperatorKind::kGather:
    case OperatorKind::kPad:
      return true;
    case OperatorKind::kPool:
      return op.as<PoolAttributes>().kind == PoolAttributes::Kind::kMax;
    case OperatorKind::kReduce:
      return op.as<ReduceAttributes>().kind == ReduceAttributes::Kind::kMax ||
             op.as<ReduceAttributes>().kind == ReduceAttributes::Kind::kMin;
    case OperatorKind::kResize:
      return op.as<ResizeAttributes>().mode == ResizeAttributes::Mode::kNearest;
    default:
      return false;
  }
}

HostTensor random_values(const Operand& operand, Random& r) {
  HostTensor tensor(operand.type, operand.dims);
  for (int64_t i = 0; i < tensor.size(); ++i) {
    if (operand.type == DataType::kFloat32) {
      tensor.data<float>()[i] = static_cast<float>(r.real(operand.low, operand.high));
    } else {
      tensor.data<int64_t>()[i] =
          r.integer(static_cast<int64_t>(operand.low), static_cast<int64_t>(operand.high));
    }
  }
  return tensor;
}

}  // namespace

StatusOr<BuiltCase> build(const OperatorCase& c, uint64_t seed) {
  Random r(seed);
  BuiltCase built;
  built.graph.name = c.name;
  std::vector<TensorId> inputs;
  for (const Operand& operand : c.operands) {
    const std::string name = "operand" + std::to_string(inputs.size());
    HostTensor value = random_values(operand, r);
    if (operand.constant) {
      inputs.push_back(built.graph.add_constant(name, std::move(value)));
      built.graph.mutable_tensor(inputs.back()).layout = operand.layout;
    } else {
      inputs.push_back(built.graph.add_input(name, operand.type, operand.dims, operand.layout));
      built.inputs.push_back(std::move(value));
    }
  }
  TANDEM_ASSIGN_OR_RETURN(TensorId output,
                          built.graph.add(c.name, c.attributes, inputs, c.output, c.output_layout));
  built.graph.mark_output(output);
  TANDEM_RETURN_IF_ERROR(built.graph.validate());
  return built;
}

Expected expected_output(const BuiltCase& built) {
  const Operator& op = built.graph.op(0);
  std::vector<ReferenceTensor> values = reference(built.graph, built.inputs);
  Expected expected;
  expected.tolerance.resize(values[op.output].values.size(), 0);
  if (!is_exact(op)) {
    constexpr double kEpsilon = std::numeric_limits<float>::epsilon();
    const Sums sums = sums_of(built, values);
    const double stretch = slope(epilogue_of(op.attributes));
    for (size_t i = 0; i < expected.tolerance.size(); ++i) {
      const double y = std::abs(values[op.output].values[i]);
      expected.tolerance[i] =
          kEpsilon *
          (stretch * (16 + 4 * std::sqrt(sums.count)) * sums.magnitude[i] + 32 * (1 + y));
    }
  }
  expected.output = std::move(values[op.output]);
  return expected;
}

}  // namespace tandem::testing
