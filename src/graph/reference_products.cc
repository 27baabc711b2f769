#include "graph/reference_products.h"

#include "graph/tensor_loops.h"

namespace tandem {

void evaluate(const ConvAttributes& conv, const ReferenceInputs& in, ReferenceTensor& y) {
  const ReferenceTensor& x = *in[0];
  const ReferenceTensor& w = *in[1];
  const Dims xs = dense_strides(x.dims);
  const Dims ws = dense_strides(w.dims);
  const int64_t per_group = y.dims[1] / conv.groups;
  size_t next = 0;
  for_each_index(y.dims, [&](const Dims& at) {
    const int64_t m = at[1];
    const int64_t first_channel = m / per_group * w.dims[1];
    double sum = conv.has_bias ? in[2]->values[m] : 0;
    for (int64_t kh = 0; kh < conv.kernel[0]; ++kh) {
      const int64_t h = at[2] * conv.stride[0] - conv.pads[0] + kh * conv.dilation[0];
      if (h < 0 || h >= x.dims[2]) continue;
      for (int64_t kw = 0; kw < conv.kernel[1]; ++kw) {
        const int64_t v = at[3] * conv.stride[1] - conv.pads[1] + kw * conv.dilation[1];
        if (v < 0 || v >= x.dims[3]) continue;
        const double* px = &x.values[at[0] * xs[0] + first_channel * xs[1] + h * xs[2] + v];
        const double* pw = &w.values[m * ws[0] + kh * ws[2] + kw];
        for (int64_t c = 0; c < w.dims[1]; ++c) sum += px[c * xs[1]] * pw[c * ws[1]];
      }
    }
    if (conv.has_residual) sum += in.back()->values[next];
    y.values[next++] = apply(conv.activation, sum);
  });
}

void evaluate(const ConvTransposeAttributes& conv, const ReferenceInputs& in, ReferenceTensor& y) {
  const ReferenceTensor& x = *in[0];
  const ReferenceTensor& w = *in[1];
  const Dims ws = dense_strides(w.dims);
  const Dims ys = dense_strides(y.dims);
  const int64_t in_per_group = x.dims[1] / conv.groups;
  const int64_t out_per_group = w.dims[1];
  generate(y, [&](const Dims& at) { return conv.has_bias ? in[2]->values[at[1]] : 0; });
  size_t next = 0;
  for_each_index(x.dims, [&](const Dims& at) {
    const double value = x.values[next++];
    const int64_t first_channel = at[1] / in_per_group * out_per_group;
    for (int64_t kh = 0; kh < conv.kernel[0]; ++kh) {
      const int64_t h = at[2] * conv.stride[0] - conv.pads[0] + kh * conv.dilation[0];
      if (h < 0 || h >= y.dims[2]) continue;
      for (int64_t kw = 0; kw < conv.kernel[1]; ++kw) {
        const int64_t v = at[3] * conv.stride[1] - conv.pads[1] + kw * conv.dilation[1];
        if (v < 0 || v >= y.dims[3]) continue;
        double* py = &y.values[at[0] * ys[0] + first_channel * ys[1] + h * ys[2] + v];
        const double* pw = &w.values[at[1] * ws[0] + kh * ws[2] + kw];
        for (int64_t m = 0; m < out_per_group; ++m) py[m * ys[1]] += value * pw[m * ws[1]];
      }
    }
  });
  for (double& value : y.values) value = apply(conv.activation, value);
}

void evaluate(const LinearAttributes& linear, const ReferenceInputs& in, ReferenceTensor& y) {
  const ReferenceTensor& x = *in[0];
  const ReferenceTensor& w = *in[1];
  const int64_t inner = w.dims[0];
  const int64_t columns = w.dims[1];
  const int64_t rows = element_count(y.dims) / columns;
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t n = 0; n < columns; ++n) {
      double sum = linear.has_bias ? in[2]->values[n] : 0;
      for (int64_t k = 0; k < inner; ++k)
        sum += x.values[r * inner + k] * w.values[k * columns + n];
      if (linear.has_residual) sum += in.back()->values[r * columns + n];
      y.values[r * columns + n] = apply(linear.activation, sum);
    }
  }
}

void evaluate(const MatMulAttributes& matmul, const ReferenceInputs& in, ReferenceTensor& y) {
  const ReferenceTensor& a = *in[0];
  const ReferenceTensor& b = *in[1];
  const size_t rank = y.dims.size();
  const auto split = [rank](const ReferenceTensor& operand, const Dims& y_dims, bool transpose,
                            int64_t* row, int64_t* column) {
    const Dims own = dense_strides(operand.dims);
    *row = own[transpose ? rank - 1 : rank - 2];
    *column = own[transpose ? rank - 2 : rank - 1];
    Dims batch = broadcast_strides(operand.dims, y_dims);
    batch[rank - 2] = batch[rank - 1] = 0;
    return batch;
  };
  int64_t a_row, a_column, b_row, b_column;
  const Dims a_batch = split(a, y.dims, matmul.transpose_a, &a_row, &a_column);
  const Dims b_batch = split(b, y.dims, matmul.transpose_b, &b_row, &b_column);
  const int64_t inner = a.dims[matmul.transpose_a ? rank - 2 : rank - 1];
  generate(y, [&](const Dims& at) {
    const double* pa = &a.values[offset_of(at, a_batch) + at[rank - 2] * a_row];
    const double* pb = &b.values[offset_of(at, b_batch) + at[rank - 1] * b_column];
    double sum = 0;
    for (int64_t k = 0; k < inner; ++k) sum += pa[k * a_column] * pb[k * b_row];
    return matmul.alpha * sum;
  });
}

}  // namespace tandem
