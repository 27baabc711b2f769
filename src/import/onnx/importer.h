// From an ONNX model to a graph.
#pragma once

#include <onnx/onnx_pb.h>

#include <optional>
#include <string>

#include "graph/graph.h"
#include "tandem/model.h"

namespace tandem {

// Every node of the model becomes operators of its own; nothing is fused. What depends on shapes
// and constants alone is computed here. Tensors have no layout yet, but inputs are dense. Errors
// begin with `label`. `folder` is where files that the model names lie; nullopt if it came as
// bytes.
StatusOr<Graph> import_onnx(onnx::ModelProto model, const std::string& label,
                            std::optional<std::string> folder, const LoadOptions& options);

}  // namespace tandem
