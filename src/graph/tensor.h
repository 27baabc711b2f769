// Tensors of the graph: logical shape, element type, and where elements lie in memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tandem/tensor.h"

namespace tandem {

using TensorId = int32_t;
using OperatorId = int32_t;
inline constexpr int32_t kNone = -1;

// Floats in a cache line. Padded innermost extents are multiples of it, and slices of channels
// start at multiples of it, so that no two lanes write one cache line.
inline constexpr int64_t kLineFloats = 16;

// The physical order of a tensor's elements.
enum class Order : uint8_t {
  kRowMajor,      // as ONNX: the last dimension is innermost
  kChannelsLast,  // rank 4 only: N, H, W, C with C innermost
};

// How a tensor is laid out when it has memory of its own. (A tensor that lives inside another one,
// as the operands of a Concat done in place, has the other's strides: see TensorView.)
struct Layout {
  Order order = Order::kRowMajor;
  // True: the extent of the innermost dimension of extent > 1 is padded to a multiple of
  // kLineFloats. What the padding holds is undefined, NaN included. False: dense.
  bool padded = true;

  bool operator==(const Layout&) const = default;
};

// Strides in elements, per logical dimension, of a tensor of extents `dims` laid out as `layout`.
Dims strides_of(const Dims& dims, Layout layout);
// Elements from the first to one past the last, padding included: what has to be allocated.
int64_t span_of(const Dims& dims, Layout layout);

enum class TensorKind : uint8_t {
  kInput,       // given by the caller at each run
  kConstant,    // known at load; `value` is set
  kActivation,  // made by an operator
};

struct Tensor {
  std::string name;
  DataType type = DataType::kFloat32;
  Dims dims;
  TensorKind kind = TensorKind::kActivation;
  Layout layout;
  std::shared_ptr<const HostTensor> value;  // kConstant only
  OperatorId producer = kNone;              // kActivation only
  std::vector<OperatorId> consumers;        // ascending, an operator once even if it reads it twice
};

// A tensor in memory, as kernels see it. data points at element (0, 0, ...).
struct TensorView {
  DataType type = DataType::kFloat32;
  Dims dims;
  Dims strides;  // elements, per logical dimension; 0 never occurs here
  void* data = nullptr;

  template <typename T>
  T* as() const {
    return static_cast<T*>(data);
  }
};

// A view of dense or padded memory at `data`.
TensorView view_of(const Tensor& tensor, void* data);
// Copies between a dense row-major buffer and a view, any strides.
void copy_to_view(const HostTensor& from, const TensorView& to);
void copy_from_view(const TensorView& from, HostTensor& to);

}  // namespace tandem
