// The order in which the nodes of a model are lowered.
#pragma once

#include <onnx/onnx_pb.h>

#include <string>
#include <unordered_set>
#include <vector>

#include "tandem/status.h"

namespace tandem {

// The nodes that outputs of the graph depend on, producers before consumers, otherwise as in the
// file. `known`: names of inputs and initializers. Cycles, names defined twice and names that
// nothing defines are kCorrupt.
StatusOr<std::vector<const onnx::NodeProto*>> order_nodes(
    const onnx::GraphProto& graph, const std::unordered_set<std::string>& known);

}  // namespace tandem
