#include "graph/reference.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "graph/reference_products.h"
#include "graph/resize.h"
#include "graph/tensor_loops.h"

namespace tandem {
namespace {

double maximum(double a, double b) { return a > b || std::isnan(a) ? a : b; }
double minimum(double a, double b) { return a < b || std::isnan(a) ? a : b; }

void evaluate(const PoolAttributes& pool, const ReferenceInputs& in, ReferenceTensor& y) {
  const ReferenceTensor& x = *in[0];
  const Dims xs = dense_strides(x.dims);
  const int64_t height = x.dims[2];
  const int64_t width = x.dims[3];
  generate(y, [&](const Dims& at) {
    double best = -std::numeric_limits<double>::infinity();
    double sum = 0;
    int64_t count = 0;
    for (int64_t kh = 0; kh < pool.kernel[0]; ++kh) {
      const int64_t h = at[2] * pool.stride[0] - pool.pads[0] + kh * pool.dilation[0];
      for (int64_t kw = 0; kw < pool.kernel[1]; ++kw) {
        const int64_t v = at[3] * pool.stride[1] - pool.pads[1] + kw * pool.dilation[1];
        const bool inside = h >= 0 && h < height && v >= 0 && v < width;
        // A window begins at or behind the start of the pads, but may end behind theirs.
        const bool in_pads = h < height + pool.pads[2] && v < width + pool.pads[3];
        if (inside || (pool.count_include_pad && in_pads)) ++count;
        if (!inside) continue;
        const double value = x.values[at[0] * xs[0] + at[1] * xs[1] + h * xs[2] + v];
        best = maximum(value, best);
        sum += value;
      }
    }
    return pool.kind == PoolAttributes::Kind::kMax ? best : sum / static_cast<double>(count);
  });
}

double reduce_start(ReduceAttributes::Kind kind) {
  switch (kind) {
    case ReduceAttributes::Kind::kMax:
      return -std::numeric_limits<double>::infinity();
    case ReduceAttributes::Kind::kMin:
      return std::numeric_limits<double>::infinity();
    case ReduceAttributes::Kind::kProd:
      return 1;
    case ReduceAttributes::Kind::kMean:
    case ReduceAttributes::Kind::kSum:
    case ReduceAttributes::Kind::kL2:
      return 0;
  }
  return 0;
}

double reduce_step(ReduceAttributes::Kind kind, double so_far, double x) {
  switch (kind) {
    case ReduceAttributes::Kind::kMax:
      return maximum(x, so_far);
    case ReduceAttributes::Kind::kMin:
      return minimum(x, so_far);
    case ReduceAttributes::Kind::kProd:
      return so_far * x;
    case ReduceAttributes::Kind::kL2:
      return so_far + x * x;
    case ReduceAttributes::Kind::kMean:
    case ReduceAttributes::Kind::kSum:
      return so_far + x;
  }
  return 0;
}

void evaluate(const ReduceAttributes& reduce, const ReferenceInputs& in, ReferenceTensor& y) {
  const ReferenceTensor& x = *in[0];
  // Strides in y of the axes of x: 0 for those reduced.
  Dims kept = x.dims;
  for (int axis : reduce.axes) kept[axis] = 1;
  const Dims strides = broadcast_strides(kept, x.dims);
  std::fill(y.values.begin(), y.values.end(), reduce_start(reduce.kind));
  size_t next = 0;
  for_each_index(x.dims, [&](const Dims& at) {
    double& value = y.values[offset_of(at, strides)];
    value = reduce_step(reduce.kind, value, x.values[next++]);
  });
  const double count = static_cast<double>(x.values.size()) / static_cast<double>(y.values.size());
  for (double& value : y.values) {
    if (reduce.kind == ReduceAttributes::Kind::kMean) value /= count;
    if (reduce.kind == ReduceAttributes::Kind::kL2) value = std::sqrt(value);
  }
}

void evaluate(const SoftmaxAttributes& softmax, const ReferenceInputs& in, ReferenceTensor& y) {
  const ReferenceTensor& x = *in[0];
  const int64_t extent = x.dims[softmax.axis];
  const int64_t stride = dense_strides(x.dims)[softmax.axis];
  Dims starts = x.dims;
  starts[softmax.axis] = 1;
  const Dims strides = dense_strides(x.dims);
  for_each_index(starts, [&](const Dims& at) {
    const int64_t start = offset_of(at, strides);
    double most = -std::numeric_limits<double>::infinity();
    for (int64_t i = 0; i < extent; ++i) most = maximum(x.values[start + i * stride], most);
    double sum = 0;
    for (int64_t i = 0; i < extent; ++i) sum += std::exp(x.values[start + i * stride] - most);
    for (int64_t i = 0; i < extent; ++i) {
      const double shifted = x.values[start + i * stride] - most;
      y.values[start + i * stride] =
          softmax.log ? shifted - std::log(sum) : std::exp(shifted) / sum;
    }
  });
}

void evaluate(const LayerNormAttributes& norm, const ReferenceInputs& in, ReferenceTensor& y) {
  const int64_t extent = y.dims.back();
  const int64_t rows = element_count(y.dims) / extent;
  for (int64_t r = 0; r < rows; ++r) {
    const double* x = &in[0]->values[r * extent];
    const double mean = std::accumulate(x, x + extent, 0.0) / static_cast<double>(extent);
    double squares = 0;
    for (int64_t i = 0; i < extent; ++i) squares += (x[i] - mean) * (x[i] - mean);
    const double scale = 1 / std::sqrt(squares / static_cast<double>(extent) + norm.epsilon);
    for (int64_t i = 0; i < extent; ++i) {
      y.values[r * extent + i] = (x[i] - mean) * scale * in[1]->values[i] + in[2]->values[i];
    }
  }
}

void evaluate(const UnaryAttributes& unary, const ReferenceInputs& in, ReferenceTensor& y) {
  for (size_t i = 0; i < y.values.size(); ++i) {
    y.values[i] = apply(unary.function, in[0]->values[i]);
  }
}

double combine(BinaryAttributes::Kind kind, double a, double b) {
  switch (kind) {
    case BinaryAttributes::Kind::kAdd:
      return a + b;
    case BinaryAttributes::Kind::kSub:
      return a - b;
    case BinaryAttributes::Kind::kMul:
      return a * b;
    case BinaryAttributes::Kind::kDiv:
      return a / b;
    case BinaryAttributes::Kind::kPow:
      return std::pow(a, b);
    case BinaryAttributes::Kind::kMax:
      return std::isnan(b) ? b : maximum(a, b);
    case BinaryAttributes::Kind::kMin:
      return std::isnan(b) ? b : minimum(a, b);
  }
  return 0;
}

void evaluate(const BinaryAttributes& binary, const ReferenceInputs& in, ReferenceTensor& y) {
  const Dims a = broadcast_strides(in[0]->dims, y.dims);
  const Dims b = broadcast_strides(in[1]->dims, y.dims);
  generate(y, [&](const Dims& at) {
    return apply(binary.activation, combine(binary.kind, in[0]->values[offset_of(at, a)],
                                            in[1]->values[offset_of(at, b)]));
  });
}

void evaluate(const ConcatAttributes& concat, const ReferenceInputs& in, ReferenceTensor& y) {
  const Dims strides = dense_strides(y.dims);
  int64_t begin = 0;
  for (const ReferenceTensor* x : in) {
    size_t next = 0;
    for_each_index(x->dims, [&](const Dims& at) {
      y.values[offset_of(at, strides) + begin * strides[concat.axis]] = x->values[next++];
    });
    begin += x->dims[concat.axis];
  }
}

void evaluate(const CopyAttributes& copy, const ReferenceInputs& in, ReferenceTensor& y) {
  const Dims own = dense_strides(in[0]->dims);
  const int64_t start = offset_of(copy.start, own);
  Dims strides(y.dims.size(), 0);
  for (size_t d = 0; d < strides.size(); ++d) {
    if (copy.source_axis[d] != kNone) strides[d] = copy.step[d] * own[copy.source_axis[d]];
  }
  generate(y, [&](const Dims& at) { return in[0]->values[start + offset_of(at, strides)]; });
}

void evaluate(const ReshapeAttributes&, const ReferenceInputs& in, ReferenceTensor& y) {
  y.values = in[0]->values;
}

void evaluate(const GatherAttributes& gather, const ReferenceInputs& in, ReferenceTensor& y) {
  const size_t axis = static_cast<size_t>(gather.axis);
  const size_t index_rank = in[1]->dims.size();
  const int64_t extent = in[0]->dims[axis];
  const Dims xs = dense_strides(in[0]->dims);
  const Dims is = dense_strides(in[1]->dims);
  generate(y, [&](const Dims& at) {
    int64_t index = 0;
    for (size_t i = 0; i < index_rank; ++i) index += at[axis + i] * is[i];
    int64_t row = static_cast<int64_t>(in[1]->values[index]);
    if (row < 0) row += extent;
    int64_t offset = row * xs[axis];
    for (size_t d = 0; d < axis; ++d) offset += at[d] * xs[d];
    for (size_t d = axis + 1; d < xs.size(); ++d) offset += at[d + index_rank - 1] * xs[d];
    return in[0]->values[offset];
  });
}

void evaluate(const PadAttributes& pad, const ReferenceInputs& in, ReferenceTensor& y) {
  const Dims& extents = in[0]->dims;
  const Dims strides = dense_strides(extents);
  generate(y, [&](const Dims& at) -> double {
    int64_t offset = 0;
    for (size_t d = 0; d < extents.size(); ++d) {
      int64_t i = at[d] - pad.before[d];
      const int64_t last = extents[d] - 1;
      if (i < 0 || i > last) {
        if (pad.mode == PadAttributes::Mode::kConstant) return pad.value;
        const bool reflect = pad.mode == PadAttributes::Mode::kReflect;
        i = i < 0 ? (reflect ? -i : 0) : (reflect ? 2 * last - i : last);
      }
      offset += i * strides[d];
    }
    return in[0]->values[offset];
  });
}

void evaluate(const ResizeAttributes& resize, const ReferenceInputs& in, ReferenceTensor& y) {
  const Dims& extents = in[0]->dims;
  const Dims strides = dense_strides(extents);
  std::array<std::vector<ResizeTaps>, 2> taps;
  for (int i = 0; i < 2; ++i) {
    for (int64_t o = 0; o < y.dims[2 + i]; ++o) {
      taps[i].push_back(resize_taps(resize, i, extents[2 + i], y.dims[2 + i], o));
    }
  }
  generate(y, [&](const Dims& at) {
    const ResizeTaps& rows = taps[0][at[2]];
    const ResizeTaps& columns = taps[1][at[3]];
    double sum = 0;
    for (int r = 0; r < rows.count; ++r) {
      for (int c = 0; c < columns.count; ++c) {
        sum += rows.weight[r] * columns.weight[c] *
               in[0]->values[at[0] * strides[0] + at[1] * strides[1] + rows.index[r] * strides[2] +
                             columns.index[c]];
      }
    }
    return sum;
  });
}

}  // namespace

ReferenceTensor to_reference(const HostTensor& tensor) {
  ReferenceTensor result{tensor.dims, {}};
  const auto n = static_cast<size_t>(tensor.size());
  if (tensor.type == DataType::kFloat32) {
    result.values.assign(tensor.data<float>(), tensor.data<float>() + n);
  } else {
    result.values.assign(tensor.data<int64_t>(), tensor.data<int64_t>() + n);
  }
  return result;
}

ReferenceTensor reference(const Graph& graph, OperatorId op, const ReferenceInputs& inputs) {
  ReferenceTensor y;
  y.dims = graph.output_of(op).dims;
  y.values.resize(static_cast<size_t>(element_count(y.dims)));
  std::visit([&](const auto& attributes) { evaluate(attributes, inputs, y); },
             graph.op(op).attributes);
  return y;
}

std::vector<ReferenceTensor> reference(const Graph& graph, const std::vector<HostTensor>& inputs) {
  std::vector<ReferenceTensor> values(graph.tensors().size());
  for (size_t i = 0; i < inputs.size(); ++i) values[graph.inputs()[i]] = to_reference(inputs[i]);
  for (size_t t = 0; t < values.size(); ++t) {
    const Tensor& tensor = graph.tensor(static_cast<TensorId>(t));
    if (tensor.value) values[t] = to_reference(*tensor.value);
  }
  for (size_t i = 0; i < graph.operators().size(); ++i) {
    const Operator& op = graph.operators()[i];
    ReferenceInputs operands;
    for (TensorId input : op.inputs) operands.push_back(&values[input]);
    values[op.output] = reference(graph, static_cast<OperatorId>(i), operands);
  }
  return values;
}

}  // namespace tandem
