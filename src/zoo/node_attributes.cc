#include "zoo/node_attributes.h"

#include <vector>

namespace tandem::zoo {
namespace {

using onnx::AttributeProto;
using onnx::NodeProto;

AttributeProto* add_attribute(NodeProto* node, const char* name,
                              AttributeProto::AttributeType type) {
  AttributeProto* attribute = node->add_attribute();
  attribute->set_name(name);
  attribute->set_type(type);
  return attribute;
}

}  // namespace

void set_int(NodeProto* node, const char* name, int64_t value) {
  add_attribute(node, name, AttributeProto::INT)->set_i(value);
}

void set_float(NodeProto* node, const char* name, float value) {
  add_attribute(node, name, AttributeProto::FLOAT)->set_f(value);
}

void set_string(NodeProto* node, const char* name, const char* value) {
  add_attribute(node, name, AttributeProto::STRING)->set_s(value);
}

void set_tensor(NodeProto* node, const char* name, const onnx::TensorProto& value) {
  *add_attribute(node, name, AttributeProto::TENSOR)->mutable_t() = value;
}

void set_ints(NodeProto* node, const char* name, std::span<const int64_t> values) {
  AttributeProto* attribute = add_attribute(node, name, AttributeProto::INTS);
  for (const int64_t value : values) attribute->add_ints(value);
}

void set_hw(NodeProto* node, const char* name, Hw hw) {
  set_ints(node, name, std::vector{hw.h, hw.w});
}

void set_pads(NodeProto* node, Hw pad) {
  set_ints(node, "pads", std::vector{pad.h, pad.w, pad.h, pad.w});
}

}  // namespace tandem::zoo
