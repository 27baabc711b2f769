#include "schedule/placement.h"

#include <algorithm>

#include "schedule/schedule.h"

namespace tandem {
namespace {

// True if the concat along `axis` keeps rows of one pitch in every operand: see analyse().
bool keeps_pitch(const Tensor& output, int axis) {
  const Dims strides = strides_of(output.dims, output.layout);
  if (strides[axis] == 1) return true;
  for (size_t d = 0; d < strides.size(); ++d) {
    if (strides[d] > strides[axis] && output.dims[d] > 1) return false;
  }
  return true;
}

class Analysis {
 public:
  explicit Analysis(const Graph& graph) : graph_(graph) {
    const size_t tensors = graph.tensors().size();
    views_.resize(graph.operators().size());
    placement_.launched.assign(graph.operators().size(), true);
    placement_.tensors.resize(tensors);
    for (size_t op = 0; op < graph.operators().size(); ++op) {
      views_[op] = alias_strides(graph, static_cast<OperatorId>(op));
      if (views_[op]) placement_.launched[op] = false;
    }
    for (size_t t = 0; t < tensors; ++t) {
      const Tensor& tensor = graph.tensor(static_cast<TensorId>(t));
      placement_.tensors[t] = {static_cast<TensorId>(t), 0, strides_of(tensor.dims, tensor.layout)};
    }
  }

  Placement run() && {
    // Consumers first: when an operand is placed, its concat's own place is known.
    for (auto op = static_cast<OperatorId>(graph_.operators().size()); op-- > 0;) {
      if (graph_.op(op).kind() == OperatorKind::kConcat) place_operands(op);
      if (graph_.op(op).kind() == OperatorKind::kCopy && !views_[op]) place_source(op);
    }
    // Producers first: a view's source may be a view.
    for (size_t op = 0; op < views_.size(); ++op) {
      if (views_[op]) place_view(static_cast<OperatorId>(op), *views_[op]);
    }
    return std::move(placement_);
  }

 private:
  void place_operands(OperatorId id) {
    const Operator& op = graph_.op(id);
    const Tensor& output = graph_.tensor(op.output);
    const int axis = op.as<ConcatAttributes>().axis;
    const TensorPlace parent = placement_.tensors[op.output];
    bool all =
        output.type == DataType::kFloat32 && output.layout.padded && keeps_pitch(output, axis);
    if (!all) return;
    int64_t begin = 0;
    for (size_t i = 0; i < op.inputs.size(); ++i) {
      const int64_t extent = graph_.input_of(id, static_cast<int>(i)).dims[axis];
      const bool last = i + 1 == op.inputs.size();
      const int64_t offset = begin * parent.strides[axis];
      const bool on_lines = offset % kLineFloats == 0 &&
                            (parent.strides[axis] != 1 || last || extent % kLineFloats == 0);
      if (on_lines && may_be_placed(id, op.inputs[i])) {
        placement_.tensors[op.inputs[i]] = {parent.root, parent.offset + offset, parent.strides};
      } else {
        all = false;
      }
      begin += extent;
    }
    if (all) placement_.launched[id] = false;
  }

  // The source of a copy that only moves dimensions.
  void place_source(OperatorId id) {
    const auto& copy = graph_.op(id).as<CopyAttributes>();
    const TensorId from = graph_.op(id).inputs[0];
    const Tensor& source = graph_.tensor(from);
    const Tensor& output = graph_.output_of(id);
    const bool fits = source.producer != kNone && source.consumers.size() == 1 &&
                      !graph_.is_output(from) && !graph_.is_output(graph_.op(id).output) &&
                      graph_.op(source.producer).kind() == OperatorKind::kMatMul &&
                      output.layout.padded;
    if (!fits) return;
    const TensorPlace parent = placement_.tensors[graph_.op(id).output];
    Dims strides(source.dims.size(), 0);
    for (size_t d = 0; d < output.dims.size(); ++d) {
      if (output.dims[d] == 1) continue;
      const int axis = copy.source_axis[d];
      if (axis == kNone || strides[axis] != 0 || copy.step[d] != 1 || copy.start[axis] != 0 ||
          source.dims[axis] != output.dims[d]) {
        return;
      }
      strides[axis] = parent.strides[d];
    }
    for (size_t a = 0; a < strides.size(); ++a) {
      if (strides[a] != 0) continue;
      if (source.dims[a] > 1) return;
      strides[a] = strides_of(source.dims, source.layout)[a];
    }
    if (parent.offset % kLineFloats != 0 || !has_whole_rows(source.dims, strides)) return;
    placement_.tensors[from] = {parent.root, parent.offset, strides};
    placement_.launched[id] = false;
  }

  bool may_be_placed(OperatorId concat, TensorId operand) const {
    const Tensor& tensor = graph_.tensor(operand);
    if (tensor.producer == kNone || views_[tensor.producer]) return false;
    if (tensor.layout != graph_.output_of(concat).layout) return false;
    const std::vector<TensorId>& operands = graph_.op(concat).inputs;
    if (std::count(operands.begin(), operands.end(), operand) != 1) return false;
    return std::none_of(tensor.consumers.begin(), tensor.consumers.end(), [&](OperatorId c) {
      return views_[c] || (c != concat && graph_.op(c).kind() == OperatorKind::kConcat);
    });
  }

  void place_view(OperatorId op, const AliasView& view) {
    const TensorPlace& source = placement_.tensors[graph_.op(op).inputs[0]];
    placement_.tensors[graph_.op(op).output] = {source.root, source.offset + view.offset,
                                                view.strides};
  }

  const Graph& graph_;
  std::vector<std::optional<AliasView>> views_;  // by operator
  Placement placement_;
};

}  // namespace

Placement analyse(const Graph& graph) { return Analysis(graph).run(); }

bool is_alone(const Placement& placement) {
  return std::count(placement.launched.begin(), placement.launched.end(), true) == 1;
}

bool is_alias(const Graph& graph, OperatorId op) {
  const OperatorKind kind = graph.op(op).kind();
  // Nothing else is ever left out, and the answer for these depends on the rest of the graph.
  if (kind != OperatorKind::kConcat && kind != OperatorKind::kCopy) {
    return alias_strides(graph, op).has_value();
  }
  return !analyse(graph).launched[op];
}

void resolve(const Graph& graph, const Placement& placement, TensorId tensor, const Region& region,
             std::vector<TensorRegion>* parts) {
  if (is_empty(region)) return;
  const OperatorId producer = graph.tensor(tensor).producer;
  if (producer == kNone || placement.launched[producer]) {
    parts->push_back({tensor, region});
    return;
  }
  const Operator& op = graph.op(producer);
  for (size_t i = 0; i < op.inputs.size(); ++i) {
    resolve(graph, placement, op.inputs[i],
            input_region(graph, producer, static_cast<int>(i), region), parts);
  }
}

}  // namespace tandem
