// Damaged files: whatever is wrong with one, loading it ends with a Status. Run under ASan to learn
// more than that it did not crash.
#include <string>

#include "tests/import/model_builder.h"
#include "tests/support/random.h"
#include "zoo/zoo.h"

namespace tandem::testing {
namespace {

std::string bytes_of(const char* network) {
  const StatusOr<onnx::ModelProto> proto = zoo::build(network);
  EXPECT_TRUE(proto.ok()) << proto.status().to_string();
  return proto.ok() ? proto->SerializeAsString() : "";
}

// Small, but with shape arithmetic, weights of every kind, and attributes of every type.
std::string varied_model() {
  ModelBuilder model(13);
  model.input("x", {-1, 4, 6, 6});
  model.floats("w", {4, 2, 3, 3}, std::vector<float>(72, 0.5f));
  model.floats("v", {4, 1, 2, 2}, std::vector<float>(16, 0.5f));
  model.floats("s", {4}, {1, 2, 3, 4});
  model.ints("two", {2});
  model.ints("axis", {0});
  model.floats("scales", {4}, {1, 1, 2, 2});
  model.node("Conv", {"x", "w", "s"}, {"a"},
             {{"group", int64_t{2}}, {"pads", std::vector<int64_t>{1, 1, 1, 1}}});
  model.node("BatchNormalization", {"a", "s", "s", "s", "s"}, {"b"}, {{"epsilon", 0.1f}});
  model.node("ConvTranspose", {"b", "v"}, {"c"}, {{"group", int64_t{4}}});
  model.node("MaxPool", {"c"}, {"d"}, {{"kernel_shape", std::vector<int64_t>{2, 2}}});
  model.node("Resize", {"d", "", "scales"}, {"e"}, {{"mode", "linear"}});
  model.node("Pad", {"e", "pads"}, {"f"}, {{"mode", "edge"}});
  model.ints("pads", {0, 0, 1, 1, 0, 0, 1, 1});
  model.node("Shape", {"f"}, {"g"});
  model.node("Slice", {"g", "axis", "two"}, {"h"});
  model.node("Constant", {}, {"rest"}, {{"value", HostTensor::ints({1}, {-1})}});
  model.node("Concat", {"h", "rest"}, {"i"}, {{"axis", int64_t{0}}});
  model.node("Reshape", {"f", "i"}, {"j"});
  model.node("Split", {"j", "halves"}, {"k", "l"}, {{"axis", int64_t{1}}});
  model.ints("halves", {2, 2});
  model.node("Transpose", {"l"}, {"m"}, {{"perm", std::vector<int64_t>{0, 2, 1}}});
  model.node("MatMul", {"k", "m"}, {"n"});
  model.node("Softmax", {"n"}, {"o"}, {{"axis", int64_t{-1}}});
  model.node("ReduceMean", {"o"}, {"y"}, {{"axes", std::vector<int64_t>{1}}});
  model.output("y");
  return model.bytes();
}

// Loads what may be damaged. The only demand is that this returns, and that a graph that comes out
// is a valid one (Model::parse() has validated it).
bool loads(const std::string& bytes) { return Model::parse(bytes, "damaged").ok(); }

TEST(Robustness, TheModelsAreSound) {
  EXPECT_TRUE(loads(varied_model()));
  EXPECT_TRUE(loads(bytes_of("tiny_vit")));
}

TEST(Robustness, TruncatedAnywhere) {
  const std::string varied = varied_model();
  for (size_t size = 0; size < varied.size(); ++size) loads(varied.substr(0, size));
  const std::string vit = bytes_of("tiny_vit");
  for (int i = 0; i < 200; ++i) loads(vit.substr(0, vit.size() * i / 200));
}

TEST(Robustness, OneByteChanged) {
  const std::string sound = varied_model();
  Random random(1);
  int loaded = 0;
  for (size_t i = 0; i < sound.size(); ++i) {
    std::string bytes = sound;
    bytes[i] = static_cast<char>(random.integer(0, 255));
    loaded += loads(bytes);
  }
  // Many bytes are weights or names: were none of these accepted, nothing would have been tested.
  EXPECT_GT(loaded, 100);
  EXPECT_LT(loaded, static_cast<int>(sound.size()));
}

TEST(Robustness, SeveralBytesChanged) {
  const std::string sound = varied_model();
  Random random(2);
  for (int round = 0; round < 3000; ++round) {
    std::string bytes = sound;
    for (int64_t n = random.integer(1, 8); n > 0; --n) {
      const int64_t at = random.integer(0, static_cast<int64_t>(bytes.size()) - 1);
      // Often one bit: that turns extents and axes into their neighbours, signs included.
      bytes[at] = static_cast<char>(random.coin() ? random.integer(0, 255)
                                                  : bytes[at] ^ (1 << random.integer(0, 7)));
    }
    loads(bytes);
  }
}

TEST(Robustness, IntegersReplaced) {
  // Attributes and constants take the values that are most likely to overflow something.
  constexpr int64_t kMin = std::numeric_limits<int64_t>::min();
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  onnx::ModelProto sound;
  ASSERT_TRUE(sound.ParseFromString(varied_model()));
  for (const int64_t value : {kMin, kMax, int64_t{-1}, int64_t{0}, int64_t{1} << 31,
                              int64_t{1} << 40, int64_t{1} << 62}) {
    for (int n = 0; n < sound.graph().node_size(); ++n) {
      for (int a = 0; a < sound.graph().node(n).attribute_size(); ++a) {
        const int entries = std::max(1, sound.graph().node(n).attribute(a).ints_size());
        for (int e = 0; e < entries; ++e) {
          onnx::ModelProto model = sound;
          auto* attribute = model.mutable_graph()->mutable_node(n)->mutable_attribute(a);
          if (attribute->ints_size() > 0) attribute->set_ints(e, value);
          if (attribute->type() == onnx::AttributeProto::INT) attribute->set_i(value);
          loads(model.SerializeAsString());
        }
      }
    }
    for (int t = 0; t < sound.graph().initializer_size(); ++t) {
      const onnx::TensorProto& tensor = sound.graph().initializer(t);
      if (tensor.data_type() != onnx::TensorProto::INT64) continue;
      for (size_t at = 0; at < tensor.raw_data().size(); at += sizeof value) {
        onnx::ModelProto model = sound;
        std::string* raw = model.mutable_graph()->mutable_initializer(t)->mutable_raw_data();
        raw->replace(at, sizeof value, reinterpret_cast<const char*>(&value), sizeof value);
        loads(model.SerializeAsString());
      }
    }
    for (int d = 0; d < 4; ++d) {
      onnx::ModelProto model = sound;
      model.mutable_graph()
          ->mutable_input(0)
          ->mutable_type()
          ->mutable_tensor_type()
          ->mutable_shape()
          ->mutable_dim(d)
          ->set_dim_value(value);
      loads(model.SerializeAsString());
    }
  }
}

}  // namespace
}  // namespace tandem::testing
