#include "graph/tensor.h"

#include <algorithm>
#include <cassert>
#include <cstring>

namespace tandem {
namespace {

// Logical dimensions from the innermost in memory to the outermost.
std::vector<size_t> innermost_first(size_t rank, Order order) {
  if (order == Order::kChannelsLast) {
    assert(rank == 4);
    return {1, 3, 2, 0};
  }
  std::vector<size_t> dimensions(rank);
  for (size_t d = 0; d < rank; ++d) dimensions[d] = rank - 1 - d;
  return dimensions;
}

int64_t padded_extent(int64_t extent) {
  return (extent + kLineFloats - 1) / kLineFloats * kLineFloats;
}

// Strides, and behind them the span.
struct Placement {
  Dims strides;
  int64_t span = 1;
};

Placement place(const Dims& dims, Layout layout) {
  Placement result;
  result.strides.resize(dims.size());
  bool pad = layout.padded;
  for (size_t d : innermost_first(dims.size(), layout.order)) {
    result.strides[d] = result.span;
    if (pad && dims[d] > 1) {
      result.span *= padded_extent(dims[d]);
      pad = false;
    } else {
      result.span *= dims[d];
    }
  }
  return result;
}

// Copies between a dense row-major buffer and strided memory, a row of the last dimension at a
// time. `Dense` and `Strided` are T* and const T*, in one order or the other.
template <typename Dense, typename Strided, typename CopyRow>
Dense* for_each_row(const Dims& dims, const Dims& strides, size_t d, Dense* dense, Strided* strided,
                    const CopyRow& copy_row) {
  if (d + 1 >= dims.size()) {
    const int64_t n = dims.empty() ? 1 : dims[d];
    copy_row(dense, strided, n, dims.empty() ? 1 : strides[d]);
    return dense + n;
  }
  for (int64_t i = 0; i < dims[d]; ++i) {
    dense = for_each_row(dims, strides, d + 1, dense, strided + i * strides[d], copy_row);
  }
  return dense;
}

template <typename T>
void to_view(const HostTensor& from, const TensorView& to) {
  for_each_row(to.dims, to.strides, 0, from.data<T>(), to.as<T>(),
               [](const T* dense, T* strided, int64_t n, int64_t stride) {
                 if (stride == 1) {
                   std::memcpy(strided, dense, static_cast<size_t>(n) * sizeof(T));
                   return;
                 }
                 for (int64_t i = 0; i < n; ++i) strided[i * stride] = dense[i];
               });
}

template <typename T>
void from_view(const TensorView& from, HostTensor& to) {
  for_each_row(from.dims, from.strides, 0, to.data<T>(), from.as<const T>(),
               [](T* dense, const T* strided, int64_t n, int64_t stride) {
                 if (stride == 1) {
                   std::memcpy(dense, strided, static_cast<size_t>(n) * sizeof(T));
                   return;
                 }
                 for (int64_t i = 0; i < n; ++i) dense[i] = strided[i * stride];
               });
}

template <typename T>
HostTensor host_tensor_of(DataType type, Dims dims, const std::vector<T>& values) {
  HostTensor tensor(type, std::move(dims));
  assert(tensor.size() == static_cast<int64_t>(values.size()));
  if (!values.empty()) std::memcpy(tensor.bytes.data(), values.data(), tensor.bytes.size());
  return tensor;
}

}  // namespace

size_t element_size(DataType type) {
  return type == DataType::kFloat32 ? sizeof(float) : sizeof(int64_t);
}

const char* to_string(DataType type) { return type == DataType::kFloat32 ? "float32" : "int64"; }

std::string to_string(const Dims& dims) {
  std::string text = "[";
  for (size_t d = 0; d < dims.size(); ++d) {
    if (d > 0) text += ", ";
    text += std::to_string(dims[d]);
  }
  return text + "]";
}

int64_t element_count(const Dims& dims) {
  int64_t count = 1;
  for (int64_t extent : dims) count *= extent;
  return count;
}

HostTensor::HostTensor(DataType t, Dims d)
    : type(t),
      dims(std::move(d)),
      bytes(static_cast<size_t>(element_count(dims)) * element_size(type)) {}

HostTensor HostTensor::floats(Dims dims, std::vector<float> values) {
  return host_tensor_of(DataType::kFloat32, std::move(dims), values);
}

HostTensor HostTensor::ints(Dims dims, std::vector<int64_t> values) {
  return host_tensor_of(DataType::kInt64, std::move(dims), values);
}

Dims strides_of(const Dims& dims, Layout layout) { return place(dims, layout).strides; }

int64_t span_of(const Dims& dims, Layout layout) { return place(dims, layout).span; }

TensorView view_of(const Tensor& tensor, void* data) {
  return {tensor.type, tensor.dims, strides_of(tensor.dims, tensor.layout), data};
}

void copy_to_view(const HostTensor& from, const TensorView& to) {
  assert(from.dims == to.dims && from.type == to.type);
  if (to.type == DataType::kFloat32) {
    to_view<float>(from, to);
  } else {
    to_view<int64_t>(from, to);
  }
}

void copy_from_view(const TensorView& from, HostTensor& to) {
  if (to.type != from.type || to.dims != from.dims ||
      to.bytes.size() != static_cast<size_t>(to.size()) * element_size(to.type)) {
    to = HostTensor(from.type, from.dims);
  }
  if (from.type == DataType::kFloat32) {
    from_view<float>(from, to);
  } else {
    from_view<int64_t>(from, to);
  }
}

}  // namespace tandem
