// Tensors as callers hand them over: dense, row-major, in host memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace tandem {

// Extents or strides per logical dimension, outermost first, in ONNX order (N, C, H, W for images).
using Dims = std::vector<int64_t>;

enum class DataType : uint8_t { kFloat32, kInt64 };

size_t element_size(DataType type);  // bytes
const char* to_string(DataType type);
std::string to_string(const Dims& dims);  // "[1, 3, 224, 224]"
int64_t element_count(const Dims& dims);  // product; 1 for a scalar (rank 0)

// A dense row-major tensor in host memory that owns its bytes: weights, inputs, outputs.
struct HostTensor {
  DataType type = DataType::kFloat32;
  Dims dims;
  std::vector<std::byte> bytes;

  HostTensor() = default;
  HostTensor(DataType type, Dims dims);  // zeros
  static HostTensor floats(Dims dims, std::vector<float> values);
  static HostTensor ints(Dims dims, std::vector<int64_t> values);

  int64_t size() const { return element_count(dims); }
  template <typename T>
  T* data() {
    return reinterpret_cast<T*>(bytes.data());
  }
  template <typename T>
  const T* data() const {
    return reinterpret_cast<const T*>(bytes.data());
  }
};

}  // namespace tandem
