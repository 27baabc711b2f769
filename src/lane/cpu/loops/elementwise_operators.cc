// Functions of one and of two tensors.
#include <algorithm>

#include "lane/cpu/loops/elementwise.h"
#include "lane/cpu/loops/loops.h"
#include "lane/cpu/loops/nest.h"

namespace tandem::cpu {
namespace {

// Values moved at a time through a buffer on the stack where memory is not contiguous.
constexpr int64_t kChunk = 256;

// A run of `count` values as combine() takes it: contiguous, or one value. Other strides are
// gathered into `buffer`.
struct Operand {
  const float* values;
  int64_t stride;
};
Operand gathered(const float* from, int64_t stride, int64_t count, float* buffer) {
  if (stride == 0 || stride == 1) return {from, stride};
  for (int64_t i = 0; i < count; ++i) buffer[i] = from[i * stride];
  return {buffer, 1};
}

std::unique_ptr<Kernel> prepare_unary(const Problem& p) {
  using Loops = Nest<2>;
  std::vector<Loops::Loop> dims;
  for (size_t d = 0; d < p.region.size(); ++d) {
    dims.push_back({p.region[d].size(), {p.output.strides[d], p.inputs[0].strides[d]}});
  }
  return make_kernel([nest = Loops::of(dims), y = at(p.output, p.region),
                      x = at<const float>(p.inputs[0], p.region),
                      f = p.op->as<UnaryAttributes>().function, threads = p.threads] {
    const auto [y_stride, x_stride] = nest.inner().strides;
    nest.for_each_run(threads, [&](const Loops::Offsets& at, int64_t count) {
      if (y_stride == 1 && x_stride == 1) {
        apply(f, x + at[1], y + at[0], count);
        return;
      }
      float buffer[kChunk];
      for (int64_t i = 0; i < count; i += kChunk) {
        const int64_t n = std::min(kChunk, count - i);
        const float* from = x + at[1] + i * x_stride;
        float* to = y + at[0] + i * y_stride;
        for (int64_t j = 0; j < n; ++j) buffer[j] = from[j * x_stride];
        apply(f, buffer, buffer, n);
        for (int64_t j = 0; j < n; ++j) to[j * y_stride] = buffer[j];
      }
    });
    return Status();
  });
}

std::unique_ptr<Kernel> prepare_binary(const Problem& p) {
  using Loops = Nest<3>;
  const size_t rank = p.region.size();
  std::vector<Loops::Loop> dims;
  for (size_t d = 0; d < rank; ++d) {
    dims.push_back({p.region[d].size(),
                    {p.output.strides[d], broadcast_stride(p.inputs[0], rank, d),
                     broadcast_stride(p.inputs[1], rank, d)}});
  }
  const auto& attributes = p.op->as<BinaryAttributes>();
  return make_kernel([nest = Loops::of(dims), y = at(p.output, p.region),
                      a = broadcast_corner(p.inputs[0], p.region),
                      b = broadcast_corner(p.inputs[1], p.region), kind = attributes.kind,
                      f = attributes.activation, threads = p.threads] {
    const auto [y_stride, a_stride, b_stride] = nest.inner().strides;
    nest.for_each_run(threads, [&](const Loops::Offsets& at, int64_t count) {
      float a_buffer[kChunk], b_buffer[kChunk], y_buffer[kChunk];
      for (int64_t i = 0; i < count; i += kChunk) {
        const int64_t n = std::min(kChunk, count - i);
        const Operand u = gathered(a + at[1] + i * a_stride, a_stride, n, a_buffer);
        const Operand v = gathered(b + at[2] + i * b_stride, b_stride, n, b_buffer);
        float* to = y + at[0] + i * y_stride;
        float* result = y_stride == 1 ? to : y_buffer;
        combine(kind, u.values, u.stride, v.values, v.stride, result, n);
        if (f.function != Function::kIdentity) apply(f, result, result, n);
        if (y_stride == 1) continue;
        for (int64_t j = 0; j < n; ++j) to[j * y_stride] = y_buffer[j];
      }
    });
    return Status();
  });
}

class ElementwiseLoops : public Implementation {
 public:
  const char* name() const override { return "loops_elementwise"; }

  Status supports(const Problem& p) const override {
    const OperatorKind kind = p.op->kind();
    if (kind != OperatorKind::kUnary && kind != OperatorKind::kBinary) {
      return unsupported(std::string("elementwise loops do not do ") + to_string(kind));
    }
    for (const TensorView& x : p.inputs) {
      if (x.type != DataType::kFloat32) {
        return unsupported(p.op->name + ": only float32 is supported by the CPU lane");
      }
    }
    return {};
  }

  StatusOr<std::unique_ptr<Kernel>> prepare(const Problem& p, Resources&) const override {
    return p.op->kind() == OperatorKind::kUnary ? prepare_unary(p) : prepare_binary(p);
  }
};

}  // namespace

const Implementation& elementwise_loops() {
  static const ElementwiseLoops implementation;
  return implementation;
}

}  // namespace tandem::cpu
