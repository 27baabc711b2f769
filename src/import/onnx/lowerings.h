// How each ONNX operator becomes operators of the graph.
//
// To add one: a function in the file of its family, and a row in that file's table. To read a newer
// opset: tools/list_operator_versions.py says how.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "import/onnx/node.h"

namespace tandem {

// Emits operators and sets the node's outputs. kUnsupported: this node asks for something that
// Tandem lacks (the message says what); other errors: the model is wrong.
using Lower = Status (*)(Node&);

// The newest opset whose definitions of operators the lowerings were checked against.
inline constexpr int64_t kLastOpset = 28;

struct Lowering {
  std::string_view op_type;
  // The opset of the operator's newest definition up to kLastOpset. The lowering does what that
  // asks for, and what older ones do, by Node::opset().
  int version = 0;
  Lower lower = nullptr;
  int required_inputs = 1;
};

// The families.
std::span<const Lowering> attention_lowerings();
std::span<const Lowering> constant_lowerings();
std::span<const Lowering> convolution_lowerings();
std::span<const Lowering> einsum_lowerings();
std::span<const Lowering> elementwise_lowerings();
std::span<const Lowering> matmul_lowerings();
std::span<const Lowering> movement_lowerings();
std::span<const Lowering> normalization_lowerings();
std::span<const Lowering> pool_lowerings();
std::span<const Lowering> reduction_lowerings();
std::span<const Lowering> resize_lowerings();
std::span<const Lowering> shape_lowerings();

std::vector<Lowering> all_lowerings();
// nullptr if there is none.
const Lowering* find_lowering(std::string_view op_type);

}  // namespace tandem
