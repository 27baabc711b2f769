#include "tests/import/model_builder.h"

#include <algorithm>
#include <cmath>

namespace tandem::testing {
namespace {

void set_value(onnx::AttributeProto& proto, int64_t value) {
  proto.set_type(onnx::AttributeProto::INT);
  proto.set_i(value);
}
void set_value(onnx::AttributeProto& proto, float value) {
  proto.set_type(onnx::AttributeProto::FLOAT);
  proto.set_f(value);
}
void set_value(onnx::AttributeProto& proto, const std::string& value) {
  proto.set_type(onnx::AttributeProto::STRING);
  proto.set_s(value);
}
void set_value(onnx::AttributeProto& proto, const std::vector<int64_t>& values) {
  proto.set_type(onnx::AttributeProto::INTS);
  proto.mutable_ints()->Assign(values.begin(), values.end());
}
void set_value(onnx::AttributeProto& proto, const std::vector<float>& values) {
  proto.set_type(onnx::AttributeProto::FLOATS);
  proto.mutable_floats()->Assign(values.begin(), values.end());
}
void set_value(onnx::AttributeProto& proto, const HostTensor& value) {
  proto.set_type(onnx::AttributeProto::TENSOR);
  *proto.mutable_t() = to_proto(value);
}

ModelBuilder model_of(const NodeCase& node) {
  ModelBuilder model(node.opset);
  for (size_t i = 0; i < node.x.size(); ++i) {
    const HostTensor& x = node.x[i];
    model.input("x" + std::to_string(i), x.dims,
                x.type == DataType::kInt64 ? onnx::TensorProto::INT64 : onnx::TensorProto::FLOAT);
  }
  for (size_t i = 0; i < node.constants.size(); ++i) {
    model.initializer("c" + std::to_string(i), node.constants[i]);
  }
  model.node(node.op, node.inputs, {"y"}, node.attributes);
  model.output("y");
  return model;
}

}  // namespace

onnx::TensorProto to_proto(const HostTensor& tensor) {
  onnx::TensorProto proto;
  proto.set_data_type(tensor.type == DataType::kInt64 ? onnx::TensorProto::INT64
                                                      : onnx::TensorProto::FLOAT);
  proto.mutable_dims()->Assign(tensor.dims.begin(), tensor.dims.end());
  proto.set_raw_data(tensor.bytes.data(), tensor.bytes.size());
  return proto;
}

ModelBuilder::ModelBuilder(int64_t opset) {
  model_.set_ir_version(8);
  model_.add_opset_import()->set_version(opset);
  model_.mutable_graph()->set_name("test");
}

void ModelBuilder::input(const std::string& name, const Dims& dims, int type) {
  onnx::ValueInfoProto* input = graph().add_input();
  input->set_name(name);
  onnx::TypeProto::Tensor* tensor = input->mutable_type()->mutable_tensor_type();
  tensor->set_elem_type(type);
  tensor->mutable_shape();
  for (size_t d = 0; d < dims.size(); ++d) {
    auto* dimension = tensor->mutable_shape()->add_dim();
    if (dims[d] == -1) {
      dimension->set_dim_param(name + "_" + std::to_string(d));
    } else {
      dimension->set_dim_value(dims[d]);
    }
  }
}

void ModelBuilder::initializer(const std::string& name, const HostTensor& value) {
  onnx::TensorProto* proto = graph().add_initializer();
  *proto = to_proto(value);
  proto->set_name(name);
}

void ModelBuilder::floats(const std::string& name, Dims dims, std::vector<float> values) {
  initializer(name, HostTensor::floats(std::move(dims), std::move(values)));
}

void ModelBuilder::ints(const std::string& name, std::vector<int64_t> values) {
  const Dims dims = {static_cast<int64_t>(values.size())};
  initializer(name, HostTensor::ints(dims, std::move(values)));
}

onnx::NodeProto* ModelBuilder::node(const std::string& op, const std::vector<std::string>& inputs,
                                    const std::vector<std::string>& outputs,
                                    const std::vector<Attribute>& attributes) {
  onnx::NodeProto* node = graph().add_node();
  node->set_op_type(op);
  node->set_name(outputs.empty() ? op : op + "_" + outputs[0]);
  for (const std::string& input : inputs) node->add_input(input);
  for (const std::string& output : outputs) node->add_output(output);
  for (const Attribute& attribute : attributes) {
    onnx::AttributeProto* proto = node->add_attribute();
    proto->set_name(attribute.name);
    std::visit([&](const auto& value) { set_value(*proto, value); }, attribute.value);
  }
  return node;
}

void ModelBuilder::output(const std::string& name) { graph().add_output()->set_name(name); }

StatusOr<Model> ModelBuilder::load(const LoadOptions& options) const {
  return Model::parse(bytes(), "test.onnx", options);
}

std::vector<ReferenceTensor> run(const Model& model, const std::vector<HostTensor>& inputs) {
  std::vector<ReferenceTensor> values = reference(model.graph(), inputs);
  std::vector<ReferenceTensor> outputs;
  for (TensorId id : model.graph().outputs()) outputs.push_back(values[id]);
  return outputs;
}

HostTensor ramp(Dims dims, float first, float step) {
  HostTensor tensor(DataType::kFloat32, std::move(dims));
  for (int64_t i = 0; i < tensor.size(); ++i) {
    tensor.data<float>()[i] = first + step * static_cast<float>(i);
  }
  return tensor;
}

void expect_output(const NodeCase& node, const Dims& dims, const std::vector<double>& expected,
                   double tolerance) {
  SCOPED_TRACE(node.op + " of opset " + std::to_string(node.opset));
  for (const bool optimize : {false, true}) {
    LoadOptions options;
    options.optimize = optimize;
    const StatusOr<Model> model = model_of(node).load(options);
    ASSERT_TRUE(model.ok()) << model.status().to_string();
    const ReferenceTensor y = run(*model, node.x)[0];
    ASSERT_EQ(y.dims, dims);
    ASSERT_EQ(y.values.size(), expected.size());
    for (size_t i = 0; i < expected.size(); ++i) {
      EXPECT_NEAR(y.values[i], expected[i], tolerance)
          << "element " << i << (optimize ? ", optimized" : "");
    }
  }
}

void expect_error(const StatusOr<Model>& model, StatusCode code,
                  std::initializer_list<std::string> parts) {
  ASSERT_FALSE(model.ok());
  const std::string message = model.status().to_string();
  EXPECT_EQ(model.status().code(), code) << message;
  for (const std::string& part : parts) {
    EXPECT_NE(message.find(part), std::string::npos) << "'" << part << "' in " << message;
  }
}

void expect_node_error(const NodeCase& node, StatusCode code,
                       std::initializer_list<std::string> parts) {
  SCOPED_TRACE(node.op + " of opset " + std::to_string(node.opset));
  expect_error(model_of(node).load(), code, parts);
}

}  // namespace tandem::testing
