// Attributes of ONNX nodes.
#pragma once

#include <onnx/onnx_pb.h>

#include <cstdint>
#include <span>

#include "zoo/graph_builder.h"

namespace tandem::zoo {

void set_int(onnx::NodeProto* node, const char* name, int64_t value);
void set_float(onnx::NodeProto* node, const char* name, float value);
void set_string(onnx::NodeProto* node, const char* name, const char* value);
void set_tensor(onnx::NodeProto* node, const char* name, const onnx::TensorProto& value);
void set_ints(onnx::NodeProto* node, const char* name, std::span<const int64_t> values);
void set_hw(onnx::NodeProto* node, const char* name, Hw hw);
// The same before and behind each axis.
void set_pads(onnx::NodeProto* node, Hw pad);

}  // namespace tandem::zoo
