#include "runtime/session_inputs.h"

#include <fmt/format.h>

namespace tandem {

Status check_inputs(const Graph& graph, const std::vector<HostTensor>& inputs) {
  if (inputs.size() != graph.inputs().size()) {
    return invalid_argument(fmt::format("the model has {} inputs, and {} were given",
                                        graph.inputs().size(), inputs.size()));
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Tensor& wanted = graph.tensor(graph.inputs()[i]);
    const HostTensor& given = inputs[i];
    if (given.type != wanted.type || given.dims != wanted.dims ||
        given.bytes.size() != static_cast<size_t>(given.size()) * element_size(given.type)) {
      return invalid_argument(fmt::format("input {} must be {} {}, and is {} {} of {} bytes",
                                          wanted.name, to_string(wanted.type),
                                          to_string(wanted.dims), to_string(given.type),
                                          to_string(given.dims), given.bytes.size()));
    }
  }
  return {};
}

}  // namespace tandem
