#include "graph/passes/layout.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "graph/passes/copies.h"
#include "graph/passes/editor.h"

namespace tandem {
namespace {

constexpr Layout kDense = {Order::kRowMajor, false};
constexpr Layout kRows = {Order::kRowMajor, true};
constexpr Layout kImage = {Order::kChannelsLast, true};
constexpr Layout kDenseImage = {Order::kChannelsLast, false};

// Images of so few channels are dense, where that is allowed.
constexpr int64_t kFewChannels = 4;

// What an operator asks of the tensors around it.
enum class Role {
  kImage,        // all of them channels-last
  kRows,         // all of them row-major
  kElementwise,  // all of the output's shape like the output
  kFollow,       // nothing, but it is fastest where in and out are alike
  kFree,         // nothing
};

Role role_of(const Operator& op) {
  switch (op.kind()) {
    case OperatorKind::kConv:
    case OperatorKind::kConvTranspose:
    case OperatorKind::kPool:
    case OperatorKind::kResize:
      return Role::kImage;
    case OperatorKind::kLinear:
    case OperatorKind::kMatMul:
    case OperatorKind::kLayerNorm:
      return Role::kRows;
    case OperatorKind::kUnary:
    case OperatorKind::kBinary:
      return Role::kElementwise;
    case OperatorKind::kConcat:
    case OperatorKind::kPad:
    case OperatorKind::kReduce:
    case OperatorKind::kSoftmax:
      return Role::kFollow;
    case OperatorKind::kCopy: {
      const CopyAttributes& copy = op.as<CopyAttributes>();
      const bool slice = copy.source_axis == plain_copy(copy.start.size()).source_axis;
      return slice ? Role::kFollow : Role::kFree;
    }
    case OperatorKind::kReshape:
    case OperatorKind::kGather:
      return Role::kFree;
  }
  return Role::kFree;
}

// Whether both layouts put the tensor's elements in the same places.
bool same_places(const Dims& dims, Layout a, Layout b) {
  if (a == b) return true;
  const Dims strides_a = strides_of(dims, a);
  const Dims strides_b = strides_of(dims, b);
  for (size_t d = 0; d < dims.size(); ++d) {
    if (dims[d] > 1 && strides_a[d] != strides_b[d]) return false;
  }
  return true;
}

// What only convolutions read, as their x.
bool feeds_convolutions_only(const Graph& graph, TensorId id) {
  const std::vector<OperatorId>& consumers = graph.tensor(id).consumers;
  return !consumers.empty() && !graph.is_output(id) &&
         std::all_of(consumers.begin(), consumers.end(), [&](OperatorId consumer) {
           const Operator& op = graph.op(consumer);
           return op.kind() == OperatorKind::kConv &&
                  std::count(op.inputs.begin(), op.inputs.end(), id) == 1 && op.inputs[0] == id;
         });
}

// How the tensor, or its conversion, is laid out as an image.
Layout image_layout(const Graph& graph, TensorId id) {
  const Tensor& tensor = graph.tensor(id);
  const bool made_by_image =
      tensor.producer != kNone && role_of(graph.op(tensor.producer)) == Role::kImage;
  const bool may_be_dense = !made_by_image && feeds_convolutions_only(graph, id);
  return may_be_dense ? convolution_input_layout(tensor.dims[1]) : kImage;
}

// The layout that the operator demands of input number `index`, or the tensor's own.
Layout demanded(const Graph& graph, OperatorId id, int index, const std::vector<Layout>& layouts) {
  const Operator& op = graph.op(id);
  const TensorId input = op.inputs[index];
  const Tensor& tensor = graph.tensor(input);
  const Tensor& output = graph.output_of(id);
  const Layout own = layouts[input];
  if (is_packed_input(op, index)) return own;
  switch (role_of(op)) {
    case Role::kImage:
      if (own == kDenseImage && op.kind() == OperatorKind::kConv && index == 0) return own;
      return own == kImage ? own : image_layout(graph, input);
    case Role::kRows:
      return own.order == Order::kRowMajor ? own : kRows;
    case Role::kElementwise:
      if (tensor.dims != output.dims || same_places(tensor.dims, own, layouts[op.output])) {
        return own;
      }
      return layouts[op.output];
    case Role::kFollow:
    case Role::kFree:
      return own;
  }
  return own;
}

// True for each tensor of rank 4 that operators on images read, directly or behind others that
// would rather not change the order.
std::vector<bool> leads_to_image(const Graph& graph) {
  std::vector<bool> result(graph.tensors().size(), false);
  for (size_t i = graph.operators().size(); i-- > 0;) {
    const Operator& op = graph.operators()[i];
    const Role role = role_of(op);
    const bool passes_on = role == Role::kElementwise || role == Role::kFollow;
    const bool wants = role == Role::kImage || (passes_on && result[op.output]);
    for (size_t k = 0; wants && k < op.inputs.size(); ++k) {
      const bool image = graph.tensor(op.inputs[k]).dims.size() == 4;
      if (image && !is_packed_input(op, static_cast<int>(k))) result[op.inputs[k]] = true;
    }
  }
  return result;
}

Layout choose(const Graph& graph, OperatorId id, bool leads_to_image,
              const std::vector<Layout>& layouts) {
  const Operator& op = graph.op(id);
  const Tensor& output = graph.output_of(id);
  const Role role = role_of(op);
  if (output.dims.size() != 4 || role == Role::kRows) return kRows;
  if (role == Role::kImage) return kImage;
  const Layout image = image_layout(graph, op.output);
  if (role == Role::kFree) return leads_to_image ? image : kRows;
  int variable = 0;
  for (TensorId input : op.inputs) {
    const Tensor& tensor = graph.tensor(input);
    const bool counts = role == Role::kFollow || tensor.dims == output.dims;
    if (!counts || tensor.kind == TensorKind::kConstant) continue;
    if (layouts[input].order == Order::kChannelsLast) return kImage;
    ++variable;
  }
  // One conversion, before or behind; before it several operands would need one each.
  const bool cheap = role == Role::kFollow || variable <= 1;
  return leads_to_image && cheap ? image : kRows;
}

std::vector<Layout> choose_all(const Graph& graph) {
  std::vector<Layout> layouts;
  for (const Tensor& tensor : graph.tensors()) {
    layouts.push_back(tensor.kind == TensorKind::kInput ? kDense : kRows);
  }
  const std::vector<bool> to_image = leads_to_image(graph);
  for (size_t i = 0; i < graph.operators().size(); ++i) {
    const OperatorId id = static_cast<OperatorId>(i);
    const TensorId output = graph.op(id).output;
    layouts[output] = choose(graph, id, to_image[output], layouts);
  }
  // Outputs that can be made dense right away.
  for (TensorId output : graph.outputs()) {
    const Tensor& tensor = graph.tensor(output);
    if (layouts[output].order != Order::kRowMajor || tensor.producer == kNone) continue;
    const Role role = role_of(graph.op(tensor.producer));
    if (role == Role::kFollow || role == Role::kFree ||
        same_places(tensor.dims, layouts[output], kDense)) {
      layouts[output] = kDense;
    }
  }
  return layouts;
}

class Converter {
 public:
  explicit Converter(const Graph& graph)
      : graph_(graph), editor_(graph), layouts_(choose_all(graph)) {}

  StatusOr<Graph> run() {
    for (size_t t = 0; t < layouts_.size(); ++t) {
      editor_.set_layout(static_cast<TensorId>(t), layouts_[t]);
    }
    for (size_t i = 0; i < graph_.operators().size(); ++i) {
      TANDEM_RETURN_IF_ERROR(convert_inputs(static_cast<OperatorId>(i)));
    }
    for (size_t i = 0; i < graph_.outputs().size(); ++i) {
      TANDEM_RETURN_IF_ERROR(convert_output(i));
    }
    return editor_.finish();
  }

 private:
  Status convert_inputs(OperatorId id) {
    if (editor_.removed(id)) return {};
    const std::vector<TensorId> inputs = graph_.op(id).inputs;
    for (size_t k = 0; k < inputs.size(); ++k) {
      const Layout layout = demanded(graph_, id, static_cast<int>(k), layouts_);
      if (layout == layouts_[inputs[k]]) continue;
      TANDEM_ASSIGN_OR_RETURN(const TensorId converted, convert(inputs[k], layout));
      editor_.set_input(id, static_cast<int>(k), converted);
    }
    return {};
  }

  // The tensor in another layout, made once however many operators ask for it.
  StatusOr<TensorId> convert(TensorId id, Layout layout) {
    const auto [found, added] =
        converted_.try_emplace({id, static_cast<int>(layout.order), layout.padded}, kNone);
    if (!added) return found->second;
    const Tensor& tensor = graph_.tensor(id);
    if (tensor.kind == TensorKind::kConstant) {
      found->second = editor_.copy_constant(id, layout);
      return found->second;
    }
    const bool image = layout.order == Order::kChannelsLast;
    TANDEM_ASSIGN_OR_RETURN(found->second,
                            editor_.add(tensor.name + (image ? "/channels_last" : "/row_major"),
                                        plain_copy(tensor.dims.size()), {id}, tensor.dims, layout));
    return found->second;
  }

  Status convert_output(size_t index) {
    const TensorId id = graph_.outputs()[index];
    const Tensor& tensor = graph_.tensor(id);
    if (layouts_[id] == kDense) return {};
    const bool image = layouts_[id].order == Order::kChannelsLast;
    TANDEM_ASSIGN_OR_RETURN(const TensorId dense,
                            editor_.add(tensor.name + "/output", plain_copy(tensor.dims.size()),
                                        {id}, tensor.dims, kDense));
    editor_.set_output(index, dense, tensor.name + (image ? "/channels_last" : "/padded"));
    return {};
  }

  const Graph& graph_;
  GraphEditor editor_;
  const std::vector<Layout> layouts_;
  std::map<std::tuple<TensorId, int, bool>, TensorId> converted_;
};

}  // namespace

Layout convolution_input_layout(int64_t channels) {
  return channels <= kFewChannels ? kDenseImage : kImage;
}

StatusOr<Graph> assign_layouts(const Graph& graph) { return Converter(graph).run(); }

Status check_layouts(const Graph& graph) {
  std::vector<Layout> layouts;
  for (const Tensor& tensor : graph.tensors()) layouts.push_back(tensor.layout);
  for (const std::vector<TensorId>* ends : {&graph.inputs(), &graph.outputs()}) {
    for (TensorId id : *ends) {
      if (layouts[id] == kDense) continue;
      return internal_error(graph.tensor(id).name + " is no dense row-major tensor");
    }
  }
  for (size_t i = 0; i < graph.operators().size(); ++i) {
    const OperatorId id = static_cast<OperatorId>(i);
    const Operator& op = graph.op(id);
    const Role role = role_of(op);
    const Order order = layouts[op.output].order;
    if ((role == Role::kImage && layouts[op.output] != kImage) ||
        (role == Role::kRows && order != Order::kRowMajor)) {
      return internal_error(op.name + ": its output has the wrong layout");
    }
    for (size_t k = 0; k < op.inputs.size(); ++k) {
      if (demanded(graph, id, static_cast<int>(k), layouts) == layouts[op.inputs[k]]) continue;
      return internal_error(op.name + ": input " + graph.tensor(op.inputs[k]).name +
                            " has the wrong layout");
    }
  }
  return {};
}

}  // namespace tandem
