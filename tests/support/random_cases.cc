// Random cases of the operator table.
#include <algorithm>
#include <utility>

#include "tests/support/operator_makers.h"
#include "tests/support/random.h"

namespace tandem::testing {
namespace {

using namespace makers;  // NOLINT: cases are written in them

Layout random_layout(Random& r) { return r.coin() ? kImage : kRows; }
int64_t random_channels(Random& r) {
  return r.pick<int64_t>({1, 3, 7, 16, 18, 24, 32, 40, 48, 64, 100});
}
Dims random_image(Random& r) {
  return {r.pick<int64_t>({1, 1, 1, 2, 3}), random_channels(r), r.integer(1, 14), r.integer(1, 14)};
}
Dims random_dims(Random& r, int64_t most_rank) {
  Dims dims;
  for (int64_t rank = r.integer(1, most_rank); rank > 0; --rank) {
    dims.push_back(rank == 1 ? r.integer(1, 50) : r.integer(1, 6));
  }
  return dims;
}
Activation random_activation(Random& r) {
  return r.pick<Activation>({{},
                             {},
                             kRelu,
                             kRelu6,
                             {Function::kLeakyRelu, 0.1f},
                             {Function::kSigmoid},
                             {Function::kTanh},
                             {Function::kSilu},
                             {Function::kHardSwish},
                             {Function::kGelu}});
}

OperatorCase random_conv(Random& r) {
  ConvAttributes a;
  a.has_bias = r.coin();
  a.has_residual = r.integer(0, 3) == 0;
  a.activation = random_activation(r);
  Dims x = random_image(r);
  int64_t m = random_channels(r);
  const int64_t style = r.integer(0, 5);  // 0, 1: 1x1; 2: depthwise; 3: grouped; 4, 5: dense
  if (style >= 2) {
    for (int i = 0; i < 2; ++i) {
      a.kernel[i] = r.integer(1, 5);
      a.stride[i] = r.integer(1, 3);
      a.dilation[i] = r.pick<int64_t>({1, 1, 2});
      a.pads[i] = r.integer(0, a.kernel[i] - 1);
      a.pads[2 + i] = r.integer(0, a.kernel[i] - 1);
      x[2 + i] = std::max(x[2 + i], a.dilation[i] * (a.kernel[i] - 1) + 1);
    }
  }
  if (style == 2) a.groups = m = x[1];
  if (style == 3) {
    a.groups = r.integer(2, 4);
    x[1] = a.groups * r.pick<int64_t>({1, 4, 6, 16});
    m = a.groups * r.pick<int64_t>({1, 4, 6, 16});
  }
  return conv("random", x, m, a);
}

OperatorCase random_conv_transpose(Random& r) {
  ConvTransposeAttributes a;
  a.has_bias = r.coin();
  a.activation = random_activation(r);
  a.groups = r.pick<int64_t>({1, 1, 2, 3});
  Dims x = random_image(r);
  x[1] = a.groups * r.pick<int64_t>({1, 6, 16, 24});
  for (int i = 0; i < 2; ++i) {
    a.kernel[i] = r.integer(1, 4);
    a.stride[i] = r.integer(1, 3);
    a.dilation[i] = r.pick<int64_t>({1, 1, 2});
    a.output_padding[i] = r.integer(0, a.stride[i] - 1);
    // The output keeps at least one element.
    const int64_t reach = a.dilation[i] * (a.kernel[i] - 1);
    a.pads[i] = r.integer(0, reach / 2);
    a.pads[2 + i] = r.integer(0, reach / 2);
  }
  return conv_transpose("random", x, a.groups * r.pick<int64_t>({1, 8, 16, 20}), a);
}

OperatorCase random_linear(Random& r) {
  LinearAttributes a{r.coin(), r.integer(0, 3) == 0, random_activation(r)};
  Dims x = random_dims(r, 3);
  x.back() = r.integer(1, 300);
  return linear("random", x, r.integer(1, 120), a);
}

OperatorCase random_matmul(Random& r) {
  const MatMulAttributes m{r.coin(), r.coin(), r.pick({1.0f, 0.125f})};
  Dims a;
  Dims b;
  for (int64_t batch = r.integer(0, 2); batch > 0; --batch) {
    const int64_t extent = r.integer(1, 4);
    const int64_t how = r.integer(0, 3);
    a.push_back(how == 0 ? 1 : extent);
    b.push_back(how == 1 ? 1 : extent);
  }
  const int64_t rows = r.integer(1, 40);
  const int64_t inner = r.integer(1, 70);
  const int64_t columns = r.integer(1, 60);
  a.insert(a.end(), {m.transpose_a ? inner : rows, m.transpose_a ? rows : inner});
  b.insert(b.end(), {m.transpose_b ? columns : inner, m.transpose_b ? inner : columns});
  return matmul("random", a, b, m);
}

OperatorCase random_pool(Random& r) {
  PoolAttributes a;
  a.kind = r.coin() ? PoolAttributes::Kind::kMax : PoolAttributes::Kind::kAverage;
  a.count_include_pad = a.kind == PoolAttributes::Kind::kAverage && r.coin();
  Dims x = random_image(r);
  for (int i = 0; i < 2; ++i) {
    a.kernel[i] = r.integer(1, 4);
    a.stride[i] = r.integer(1, 3);
    a.dilation[i] = r.pick<int64_t>({1, 1, 2});
    const int64_t reach = a.dilation[i] * (a.kernel[i] - 1);
    x[2 + i] = std::max(x[2 + i], reach + 1);
    // No window lies in the pads altogether: its maximum would be that of no elements.
    a.pads[i] = r.integer(0, a.dilation[i] == 1 ? reach / 2 : 0);
    a.pads[2 + i] = r.integer(0, a.dilation[i] == 1 ? reach / 2 : 0);
  }
  return pool("random", x, a);
}

OperatorCase random_reduce(Random& r) {
  using Kind = ReduceAttributes::Kind;
  ReduceAttributes a;
  a.kind = r.pick({Kind::kMean, Kind::kSum, Kind::kMax, Kind::kMin, Kind::kProd, Kind::kL2});
  a.keep_dims = r.coin();
  const bool image = r.coin();
  const Dims x = image ? random_image(r) : random_dims(r, 5);
  for (int d = 0; d < static_cast<int>(x.size()); ++d) {
    if (r.coin()) a.axes.push_back(d);
  }
  if (a.axes.empty()) a.axes.push_back(static_cast<int>(x.size()) - 1);
  return reduce("random", x, a, image ? random_layout(r) : kRows,
                image && a.keep_dims ? random_layout(r) : kRows);
}

OperatorCase random_softmax(Random& r) {
  const bool image = r.coin();
  const Dims x = image ? random_image(r) : random_dims(r, 4);
  const int axis = static_cast<int>(r.integer(0, static_cast<int64_t>(x.size()) - 1));
  return softmax("random", x, axis, r.coin(), image ? random_layout(r) : kRows);
}

OperatorCase random_layer_norm(Random& r) {
  Dims x = random_dims(r, 3);
  x.back() = r.integer(2, 200);
  return layer_norm("random", x);
}

OperatorCase random_unary(Random& r) {
  const bool image = r.coin();
  return unary("random", image ? random_image(r) : random_dims(r, 5), random_activation(r),
               image ? random_layout(r) : kRows);
}

OperatorCase random_binary(Random& r) {
  using Kind = BinaryAttributes::Kind;
  const bool image = r.coin();
  const Dims y = image ? random_image(r) : random_dims(r, 4);
  const auto operand = [&] {
    Operand o;
    o.dims = y;
    o.layout = image ? random_layout(r) : kRows;
    if (r.integer(0, 2) == 0) return o;
    for (int64_t& extent : o.dims) {
      if (r.integer(0, 2) == 0) extent = 1;
    }
    if (r.coin()) {
      o.dims.erase(o.dims.begin(), o.dims.begin() + r.integer(0, static_cast<int64_t>(y.size())));
      o.constant = r.coin();
    }
    if (o.dims.size() != 4) o.layout = kRows;
    return o;
  };
  Operand a = operand();
  Operand b = operand();
  const size_t rank = std::max(a.dims.size(), b.dims.size());
  return binary("random", r.pick({Kind::kAdd, Kind::kSub, Kind::kMul, Kind::kDiv, Kind::kMax}), a,
                b, image && rank == 4 ? random_layout(r) : kRows, random_activation(r));
}

OperatorCase random_concat(Random& r) {
  const bool image = r.coin();
  const Dims x = image ? random_image(r) : random_dims(r, 4);
  const int axis = static_cast<int>(r.integer(0, static_cast<int64_t>(x.size()) - 1));
  std::vector<Operand> parts;
  for (int64_t n = r.integer(1, 4); n > 0; --n) {
    Operand part{x, image ? random_layout(r) : kRows};
    part.dims[axis] = r.pick<int64_t>({1, 3, 7, 16, 24, 32});
    parts.push_back(part);
  }
  return concat("random", axis, parts, image ? random_layout(r) : kRows);
}

OperatorCase random_copy(Random& r) {
  const bool image = r.coin();
  const Dims x = image ? random_image(r) : random_dims(r, 4);
  CopyAttributes a;
  Dims y;
  // A random permutation of the axes of x, each walked forwards or backwards over a part of it.
  std::vector<int> axes;
  for (int i = 0; i < static_cast<int>(x.size()); ++i) {
    axes.insert(axes.begin() + r.integer(0, i), i);
  }
  a.start.resize(x.size());
  for (int axis : axes) {
    const int64_t step = r.pick<int64_t>({1, 1, 1, 2, -1});
    const int64_t magnitude = std::abs(step);
    const int64_t extent = r.integer(1, (x[axis] + magnitude - 1) / magnitude);
    const int64_t slack = x[axis] - (extent - 1) * magnitude - 1;
    const int64_t low = r.integer(0, slack);
    a.start[axis] = step > 0 ? low : low + (extent - 1) * magnitude;
    a.source_axis.push_back(axis);
    a.step.push_back(step);
    y.push_back(extent);
  }
  if (!image && r.coin()) {
    a.source_axis.insert(a.source_axis.begin(), kNone);
    a.step.insert(a.step.begin(), 1);
    y.insert(y.begin(), r.integer(1, 4));
  }
  return copy("random", {x, image ? random_layout(r) : kRows}, y, a,
              y.size() == 4 ? random_layout(r) : r.pick({kRows, kDense}));
}

OperatorCase random_reshape(Random& r) {
  const bool image = r.coin();
  const Dims x = image ? random_image(r) : random_dims(r, 4);
  // Deal the prime factors of the element count to the dimensions of the output.
  Dims y(static_cast<size_t>(r.integer(1, 4)), 1);
  int64_t left = element_count(x);
  for (int64_t factor = 2; left > 1;) {
    if (left % factor == 0) {
      y[r.integer(0, static_cast<int64_t>(y.size()) - 1)] *= factor;
      left /= factor;
    } else {
      ++factor;
    }
  }
  return reshape("random", {x, image ? random_layout(r) : kRows}, y,
                 y.size() == 4 ? random_layout(r) : kRows);
}

OperatorCase random_gather(Random& r) {
  const Dims x = random_dims(r, 4);
  Dims indices;
  for (int64_t rank = r.integer(0, 2); rank > 0; --rank) indices.push_back(r.integer(1, 6));
  return gather("random", {x, kRows, r.coin()}, indices,
                static_cast<int>(r.integer(0, static_cast<int64_t>(x.size()) - 1)));
}

OperatorCase random_pad(Random& r) {
  const bool image = r.coin();
  const Dims x = image ? random_image(r) : random_dims(r, 4);
  PadAttributes a;
  a.mode = r.pick(
      {PadAttributes::Mode::kConstant, PadAttributes::Mode::kReflect, PadAttributes::Mode::kEdge});
  a.value = 0.25f;
  for (int64_t extent : x) {
    const int64_t most =
        a.mode == PadAttributes::Mode::kReflect ? std::min<int64_t>(extent - 1, 4) : 4;
    a.before.push_back(r.integer(0, most));
    a.after.push_back(r.integer(0, most));
  }
  return pad("random", x, a, image ? random_layout(r) : kRows);
}

OperatorCase random_resize(Random& r) {
  using Coordinates = ResizeAttributes::Coordinates;
  ResizeAttributes a;
  a.mode = r.pick({ResizeAttributes::Mode::kLinear, ResizeAttributes::Mode::kCubic,
                   ResizeAttributes::Mode::kNearest});
  a.coordinates = r.pick({Coordinates::kHalfPixel, Coordinates::kPytorchHalfPixel,
                          Coordinates::kAlignCorners, Coordinates::kAsymmetric});
  const Dims x = random_image(r);
  return resize("random", x, r.integer(1, 20), r.integer(1, 20), a);
}

}  // namespace

OperatorCase random_case(uint64_t seed) {
  using Generator = OperatorCase (*)(Random&);
  static constexpr Generator kGenerators[kOperatorKinds] = {
      random_conv,    random_conv_transpose, random_linear,  random_matmul,
      random_pool,    random_reduce,         random_softmax, random_layer_norm,
      random_unary,   random_binary,         random_concat,  random_copy,
      random_reshape, random_gather,         random_pad,     random_resize};
  Random r(seed);
  OperatorCase c = kGenerators[seed % kOperatorKinds](r);
  c.name += "_" + std::to_string(seed);
  return c;
}

}  // namespace tandem::testing
