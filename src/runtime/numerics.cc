#include "runtime/numerics.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <optional>

#include "graph/partition.h"

namespace tandem {
namespace {

// What of a tensor is not finite.
struct Odd {
  int64_t nans = 0;
  int64_t infinities = 0;
  Dims first_nan;
  Dims first_infinity;
  double infinity = 0;  // the first one

  bool any() const { return nans + infinities > 0; }
};

Odd scan(const TensorView& view) {
  Odd odd;
  if (view.type != DataType::kFloat32 || !view.data || element_count(view.dims) == 0) return odd;
  Dims index(view.dims.size(), 0);
  int64_t offset = 0;
  while (true) {
    const float value = view.as<float>()[offset];
    if (!std::isfinite(value)) {
      if (std::isnan(value)) {
        if (odd.nans++ == 0) odd.first_nan = index;
      } else if (odd.infinities++ == 0) {
        odd.first_infinity = index;
        odd.infinity = static_cast<double>(value);
      }
    }
    size_t d = index.size();
    while (d > 0) {
      offset += view.strides[d - 1];
      if (++index[d - 1] < view.dims[d - 1]) break;
      offset -= view.strides[d - 1] * view.dims[d - 1];
      index[--d] = 0;
    }
    if (d == 0) return odd;
  }
}

std::string describe(const Odd& odd, const Dims& dims) {
  const bool nan = odd.nans > 0;
  return fmt::format("{} NaN and {} infinite of {} values, the first {} at {}", odd.nans,
                     odd.infinities, element_count(dims),
                     nan ? "NaN" : fmt::format("infinity ({})", odd.infinity),
                     to_string(nan ? odd.first_nan : odd.first_infinity));
}

class NumericsCheck {
 public:
  NumericsCheck(const Graph& graph, const Schedule& schedule, const TensorBindings& bindings,
                const std::vector<std::string>& lane_names)
      : graph_(graph), schedule_(schedule), bindings_(bindings), lane_names_(lane_names) {
    odd_.resize(graph.tensors().size());
  }

  Status run() {
    for (const TensorId input : graph_.inputs()) {
      if (odd(input).any()) find("input", input);
    }
    for (size_t t = 0; t < graph_.tensors().size(); ++t) {
      const auto id = static_cast<TensorId>(t);
      if (graph_.tensor(id).kind == TensorKind::kConstant && odd(id).nans > 0) find("weight", id);
    }
    for (size_t op = 0; op < graph_.operators().size(); ++op) {
      if (makes_odd(static_cast<OperatorId>(op))) {
        find_operator(static_cast<OperatorId>(op));
        break;
      }
    }
    if (found_.empty()) find_infinite_weights();
    if (found_.empty()) return {};
    return invalid_argument(fmt::format("{}", fmt::join(found_, "; ")));
  }

 private:
  const Odd& odd(TensorId id) {
    if (!odd_[id]) {
      const Tensor& tensor = graph_.tensor(id);
      if (tensor.kind == TensorKind::kConstant) {
        // Read only: the cast fits the value into a view.
        auto* data = const_cast<std::byte*>(tensor.value->bytes.data());
        const Dims strides = strides_of(tensor.dims, {Order::kRowMajor, false});
        odd_[id] = scan({tensor.type, tensor.dims, strides, data});
      } else {
        odd_[id] = scan(bindings_[id]);
      }
    }
    return *odd_[id];
  }

  bool makes_odd(OperatorId id) {
    const Operator& op = graph_.op(id);
    bool nans = false;
    bool any = false;
    for (const TensorId input : op.inputs) {
      nans = nans || odd(input).nans > 0;
      any = any || odd(input).any();
    }
    const Odd& output = odd(op.output);
    return (output.nans > 0 && !nans) || (output.infinities > 0 && !any);
  }

  void find(const char* what, TensorId id) {
    const Tensor& tensor = graph_.tensor(id);
    found_.push_back(
        fmt::format("{} {} holds {}", what, tensor.name, describe(odd(id), tensor.dims)));
    if (what == std::string_view("weight") && !tensor.consumers.empty()) {
      found_.back() += " (read by " + graph_.op(tensor.consumers.front()).name + ")";
    }
  }

  void find_operator(OperatorId id) {
    const Operator& op = graph_.op(id);
    const Odd& output = odd(op.output);
    const bool nan = output.nans > 0;
    std::string from = "although its inputs are finite";
    for (const TensorId input : op.inputs) {
      if (!odd(input).any()) continue;
      from = fmt::format("while its input {} holds {}", graph_.tensor(input).name,
                         describe(odd(input), graph_.tensor(input).dims));
    }
    found_.push_back(fmt::format("{} {} is the first operator that makes {}, {}: {}, made by {}",
                                 to_string(op.kind()), op.name, nan ? "a NaN" : "an infinity", from,
                                 describe(output, graph_.tensor(op.output).dims),
                                 maker(id, nan ? output.first_nan : output.first_infinity)));
  }

  // The slice and the lane that wrote the element.
  std::string maker(OperatorId id, const Dims& element) const {
    for (size_t lane = 0; lane < schedule_.lanes.size(); ++lane) {
      for (const ScheduledSlice& scheduled : schedule_.lanes[lane]) {
        const Slice& slice = scheduled.slice;
        if (slice.op != id) continue;
        const bool holds = slice.whole() ||
                           (element[slice.axis] >= slice.begin && element[slice.axis] < slice.end);
        if (holds) {
          return fmt::format("slice {} on lane {}", to_string(graph_, slice), lane_names_[lane]);
        }
      }
    }
    return "no lane";
  }

  void find_infinite_weights() {
    bool reached = false;
    for (const TensorId output : graph_.outputs()) reached = reached || odd(output).any();
    for (size_t t = 0; reached && t < graph_.tensors().size(); ++t) {
      const auto id = static_cast<TensorId>(t);
      if (graph_.tensor(id).kind == TensorKind::kConstant && odd(id).any()) find("weight", id);
    }
  }

  const Graph& graph_;
  const Schedule& schedule_;
  const TensorBindings& bindings_;
  const std::vector<std::string>& lane_names_;
  std::vector<std::optional<Odd>> odd_;  // by TensorId; empty: not looked at yet
  std::vector<std::string> found_;
};

}  // namespace

Status check_numerics(const Graph& graph, const Schedule& schedule, const TensorBindings& bindings,
                      const std::vector<std::string>& lane_names) {
  return NumericsCheck(graph, schedule, bindings, lane_names).run();
}

}  // namespace tandem
