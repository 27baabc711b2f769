// The extents of a model's inputs.
#pragma once

#include <onnx/onnx_pb.h>

#include <map>
#include <string>
#include <vector>

#include "tandem/model.h"

namespace tandem {

struct InputSpec {
  std::string name;
  int onnx_type = onnx::TensorProto::UNDEFINED;
  Dims dims;
};

// Fixes the symbolic dimensions of `inputs` by `shapes`; a symbol fixed by one input is known in
// the others. A leading dimension that stays open becomes 1. One error lists everything that stays
// open, with what to type.
StatusOr<std::vector<InputSpec>> resolve_inputs(
    const std::vector<const onnx::ValueInfoProto*>& inputs,
    const std::map<std::string, Dims>& shapes);

}  // namespace tandem
