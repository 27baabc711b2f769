#include "zoo/zoo.h"

#include "zoo/graph_builder.h"
#include "zoo/networks.h"

namespace tandem::zoo {
namespace {

struct Network {
  const char* name;
  const char* description;
  void (*add)(GraphBuilder&);
};

constexpr Network kNetworks[] = {
    {"vgg16", "VGG-16 without batch normalization (torchvision)", vgg16},
    {"resnet18", "ResNet-18 (torchvision)", resnet18},
    {"resnet34", "ResNet-34 (torchvision)", resnet34},
    {"resnet50", "ResNet-50 v1.5 (torchvision)", resnet50},
    {"inception_v3", "Inception v3 without auxiliary classifier (torchvision)", inception_v3},
    {"mobilenet_v2", "MobileNet v2, width 1.0 (torchvision)", mobilenet_v2},
    {"squeezenet1_1", "SqueezeNet 1.1 (torchvision)", squeezenet1_1},
    {"vit_b_16", "ViT-Base, patches of 16 (torchvision)", vit_b_16},
    {"vit_b_32", "ViT-Base, patches of 32 (torchvision)", vit_b_32},
    {"deit_tiny", "DeiT-Tiny, patches of 16 (timm)", deit_tiny},
    {"inception_v4", "Inception v4 (timm)", inception_v4},
    {"inception_resnet_v2", "Inception-ResNet v2 (timm)", inception_resnet_v2},
    {"hrnet_w18", "HRNet-W18 for classification (timm)", hrnet_w18},
    {"peleenet", "PeleeNet", peleenet},
    {"efficientnet_b0", "EfficientNet-B0 (torchvision)", efficientnet_b0},
    {"shufflenet_v2_x1_0", "ShuffleNet v2, width 1.0 (torchvision)", shufflenet_v2_x1_0},
    {"unet", "U-Net with transposed convolutions, two classes", unet},
    {"yolov5n", "YOLOv5n detector with decoded boxes", yolov5n},
    {"bert_base", "BERT-Base uncased with pooler, 128 tokens", bert_base},
    {"tiny_linear", "for tests: linear layers on a batch of vectors", tiny_linear},
    {"tiny_conv", "for tests: a chain of convolutions and poolings", tiny_conv},
    {"tiny_residual", "for tests: ResNet's basic blocks", tiny_residual},
    {"tiny_bottleneck", "for tests: ResNet's bottleneck blocks", tiny_bottleneck},
    {"tiny_concat", "for tests: SqueezeNet's fire modules, nested concatenation", tiny_concat},
    {"tiny_inception", "for tests: branches with 1x7, 3x1 and 5x5 windows", tiny_inception},
    {"tiny_mobilenet", "for tests: depthwise convolutions and Clip", tiny_mobilenet},
    {"tiny_vit", "for tests: a transformer with torch.nn's attention", tiny_vit},
    {"tiny_deit", "for tests: a transformer with timm's attention", tiny_deit},
    {"tiny_efficientnet", "for tests: SiLU, squeeze and excitation", tiny_efficientnet},
    {"tiny_shufflenet", "for tests: Split and channel shuffles", tiny_shufflenet},
    {"tiny_hrnet", "for tests: branches of several resolutions, Resize", tiny_hrnet},
    {"tiny_unet", "for tests: transposed convolutions", tiny_unet},
    {"tiny_yolo", "for tests: a detector's pyramid and box decoding", tiny_yolo},
    {"tiny_bert", "for tests: a transformer on token ids, two outputs", tiny_bert},
};

// The graph cannot fail to build on any input: an error here is a mistake in a network's function,
// which the tests would have found.
Entry describe(const Network& network) {
  GraphBuilder g(network.name, 0, Weights::kShapesOnly);
  network.add(g);
  Entry entry;
  entry.name = network.name;
  entry.description = network.description;
  entry.parameters = g.parameters();
  entry.gflops = 2e-9 * static_cast<double>(g.multiply_accumulates());
  const StatusOr<onnx::ModelProto> model = std::move(g).finish();
  if (!model.ok()) return entry;
  const onnx::ValueInfoProto& input = model->graph().input(0);
  entry.input_name = input.name();
  const int32_t type = input.type().tensor_type().elem_type();
  entry.input_type = type == onnx::TensorProto::INT64 ? "int64" : "float32";
  for (const auto& dim : input.type().tensor_type().shape().dim()) {
    entry.input_dims.push_back(dim.dim_value());
  }
  return entry;
}

}  // namespace

std::vector<Entry> list() {
  std::vector<Entry> entries;
  for (const Network& network : kNetworks) entries.push_back(describe(network));
  return entries;
}

StatusOr<onnx::ModelProto> build(std::string_view name, uint64_t seed) {
  std::string known;
  for (const Network& network : kNetworks) {
    if (name == network.name) {
      GraphBuilder g(network.name, seed, Weights::kGenerate);
      network.add(g);
      return std::move(g).finish();
    }
    known += (known.empty() ? "" : ", ") + std::string(network.name);
  }
  return not_found("no network called '" + std::string(name) + "' in the zoo; it has " + known);
}

}  // namespace tandem::zoo
