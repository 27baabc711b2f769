// Which kernels compute a slice, and with which arguments: decided from shapes, strides and the
// kind of device alone, before anything is compiled or packed.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "lane/lane.h"

namespace tandem::opencl {

struct DeviceTraits {
  // True: the device is a CPU, and runs work-items one after another: a group has a single one,
  // with wide vectors. False: groups of many work-items, as GPUs want them.
  bool single_item_groups = true;
  int compute_units = 1;
  size_t local_bytes = size_t{1} << 20;  // of local memory that a group may have
  // For tests and measurements: patches of this many pixels each way wherever possible, 0 for no
  // Winograd at all. Not set: by the rule of winograd.h.
  std::optional<int> winograd_outputs;
};

// Data that the lane makes once per operator, the same for all of its slices (packing.h).
enum class PackedKind : uint8_t {
  kWeights,
  kWinograd2,  // weights transformed for patches of 2x2, and of 4x4 pixels
  kWinograd4,
  kBias,
  kScale,
  kResizeLines,
  kResizeLineWeights,
  kResizeColumns,
  kResizeColumnWeights,
};

struct SharedArgument {  // memory that lanes share
  void* data = nullptr;
};
struct PackedArgument {
  PackedKind kind;
  int64_t offset = 0;  // in elements of four bytes
};
struct LocalArgument {
  size_t bytes = 0;
};
struct ValueArgument {
  std::vector<std::byte> bytes;
};
using Argument = std::variant<SharedArgument, PackedArgument, LocalArgument, ValueArgument>;

template <typename T>
ValueArgument value_argument(const T& value) {
  const auto* bytes = reinterpret_cast<const std::byte*>(&value);
  return {std::vector<std::byte>(bytes, bytes + sizeof(T))};
}

struct KernelPlan {
  std::vector<std::string> files;  // of kernels/, in the order of inclusion
  std::string options;
  std::string kernel;
  std::vector<Argument> arguments;
  std::array<size_t, 3> groups{1, 1, 1};
  std::array<size_t, 3> local{1, 1, 1};
};

struct SlicePlan {
  std::string name;  // of the implementation
  std::vector<KernelPlan> kernels;
  double computed_flops = 0;

  ImplementationInfo info() const;
};

// kUnsupported, naming the operator, where no kernel takes its layout.
StatusOr<SlicePlan> plan_slice(const Graph& graph, const TensorBindings& bindings,
                               const Slice& slice, const DeviceTraits& device);

}  // namespace tandem::opencl
