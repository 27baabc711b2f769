#include "cli/verify.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "cli/progress.h"
#include "fmt/format.h"
#include "graph/graph.h"
#include "graph/reference.h"
#include "schedule/schedule.h"

namespace tandem::cli {
namespace {

// Tensor values of the run, each read once.
class Values {
 public:
  Values(const Graph& graph, const Session& session, const std::vector<HostTensor>& inputs)
      : graph_(graph), session_(session) {
    for (size_t i = 0; i < inputs.size(); ++i) {
      known_[graph.inputs()[i]] = to_reference(inputs[i]);
    }
    for (size_t id = 0; id < graph.tensors().size(); ++id) {
      for (const OperatorId op : graph.tensors()[id].consumers) {
        last_use_[static_cast<TensorId>(id)] = op;
      }
    }
  }

  StatusOr<const ReferenceTensor*> get(TensorId id) {
    const auto at = known_.find(id);
    if (at != known_.end()) return &at->second;
    const Tensor& tensor = graph_.tensor(id);
    if (tensor.kind == TensorKind::kConstant) {
      return &(known_[id] = to_reference(*tensor.value));
    }
    TANDEM_ASSIGN_OR_RETURN(const HostTensor value, session_.tensor(tensor.name));
    return &(known_[id] = to_reference(value));
  }

  // Doubles of a whole network would not fit into memory.
  void forget_before(OperatorId op) {
    std::erase_if(known_, [this, op](const auto& entry) {
      const auto use = last_use_.find(entry.first);
      return use == last_use_.end() || use->second < op;
    });
  }

 private:
  const Graph& graph_;
  const Session& session_;
  std::map<TensorId, ReferenceTensor> known_;
  std::map<TensorId, OperatorId> last_use_;
};

std::string lanes_of(const Graph& graph, const Schedule& schedule, OperatorId op,
                     const std::vector<std::string>& lane_names) {
  std::string text;
  for (size_t lane = 0; lane < schedule.lanes.size(); ++lane) {
    for (const ScheduledSlice& scheduled : schedule.lanes[lane]) {
      if (scheduled.slice.op != op) continue;
      text += fmt::format("{}{}: {}", text.empty() ? "" : ", ", lane_names[lane],
                          to_string(graph, scheduled.slice));
    }
  }
  return text.empty() ? "no lane (an alias)" : text;
}

}  // namespace

StatusOr<Verification> verify(const Model& model, const Session& session,
                              const std::vector<HostTensor>& inputs,
                              const std::vector<std::string>& lane_names) {
  const Graph& graph = model.graph();
  const int count = static_cast<int>(graph.operators().size());
  Progress progress("comparing with the reference", count);
  Values values(graph, session, inputs);
  Verification result;
  for (OperatorId id = 0; id < count; ++id, progress.step()) {
    const Operator& op = graph.op(id);
    std::vector<const ReferenceTensor*> operands;
    for (const TensorId input : op.inputs) {
      TANDEM_ASSIGN_OR_RETURN(const ReferenceTensor* value, values.get(input));
      operands.push_back(value);
    }
    const ReferenceTensor expected = reference(graph, id, operands);
    TANDEM_ASSIGN_OR_RETURN(const ReferenceTensor* actual, values.get(op.output));
    if (actual->dims != expected.dims) {
      return internal_error(op.name + ": the run and the reference disagree about its shape");
    }

    double largest = 0;
    for (const double value : expected.values) {
      if (std::isfinite(value)) largest = std::max(largest, std::abs(value));
    }
    const double tolerance = kVerifyTolerance * largest;
    double worst = 0;
    for (size_t i = 0; i < expected.values.size(); ++i) {
      const double want = expected.values[i];
      const double have = actual->values[i];
      if (want == have || (std::isnan(want) && std::isnan(have))) continue;
      const double error = std::abs(want - have);
      // Written so that a NaN or an infinity on one side only is a divergence.
      if (!(error <= tolerance) && !result.first) {
        result.first = Divergence{op.name,
                                  to_string(op.kind()),
                                  lanes_of(graph, session.schedule(), id, lane_names),
                                  error,
                                  tolerance,
                                  static_cast<int64_t>(i),
                                  have,
                                  want};
      }
      if (std::isfinite(error)) worst = std::max(worst, error);
    }
    ++result.checked;
    if (largest > 0 && worst / largest > result.worst_error) {
      result.worst_error = worst / largest;
      result.worst_op = op.name;
    }
    values.forget_before(id);
  }
  return result;
}

}  // namespace tandem::cli
