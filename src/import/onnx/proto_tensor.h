// Tensors as ONNX files hold them.
#pragma once

#include <onnx/onnx_pb.h>

#include <string>

#include "import/onnx/external_data.h"
#include "tandem/status.h"
#include "tandem/tensor.h"

namespace tandem {

// "float32", "uint8", ..., or "type 42".
std::string type_name(int onnx_type);

// What Tandem makes of a constant's type: int32 and bool become int64; double, float16 and bfloat16
// become float32.
// Anything else is kUnsupported.
StatusOr<DataType> constant_type(int onnx_type);

// Extents that are not negative and whose product is small enough to compute with; else kCorrupt.
Status check_dims(const Dims& dims);
// The same for constants that a few bytes of a file can ask for (ConstantOfShape, Expand, Pad,
// ...): they must not exhaust memory either; kUnsupported if they might.
Status check_computed_dims(const Dims& dims);

// kCorrupt where the data does not match the extents, or `files` are not what the tensor says of
// them; kUnsupported for types.
StatusOr<HostTensor> to_host_tensor(const onnx::TensorProto& proto, ExternalData& files);

}  // namespace tandem
