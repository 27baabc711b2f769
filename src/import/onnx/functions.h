// Functions that a model defines itself.
#pragma once

#include <onnx/onnx_pb.h>

#include "tandem/status.h"

namespace tandem {

// Replaces every node that calls a function of the model by the function's nodes, whose names begin
// with that of the node. kCorrupt for functions that call themselves or unfold without end;
// kUnsupported where one relies on another opset than the model does.
Status inline_functions(onnx::ModelProto& model);

}  // namespace tandem
