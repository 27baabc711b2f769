#include "import/onnx/node_order.h"

#include <queue>
#include <unordered_map>

#include "import/onnx/node.h"

namespace tandem {
namespace {

using Producers = std::unordered_map<std::string, int>;  // value name -> node

StatusOr<Producers> find_producers(const onnx::GraphProto& graph,
                                   const std::unordered_set<std::string>& known) {
  Producers producers;
  for (int n = 0; n < graph.node_size(); ++n) {
    for (const std::string& output : graph.node(n).output()) {
      if (output.empty()) continue;
      if (known.contains(output) || !producers.emplace(output, n).second) {
        return corrupt("the name '" + output + "' is defined twice (again by node '" +
                       node_name(graph.node(n)) + "')");
      }
    }
  }
  return producers;
}

// Marks what `names` depend on.
Status mark_needed(const onnx::GraphProto& graph, const Producers& producers,
                   const std::unordered_set<std::string>& known, std::vector<bool>& needed) {
  std::vector<int> stack;
  const auto require = [&](const std::string& name, const std::string& reader) -> Status {
    if (name.empty() || known.contains(name)) return {};
    const auto producer = producers.find(name);
    if (producer == producers.end()) {
      return corrupt(reader + " reads '" + name + "', which nothing defines");
    }
    if (!needed[producer->second]) {
      needed[producer->second] = true;
      stack.push_back(producer->second);
    }
    return {};
  };
  for (const onnx::ValueInfoProto& output : graph.output()) {
    TANDEM_RETURN_IF_ERROR(require(output.name(), "the model's list of outputs"));
  }
  while (!stack.empty()) {
    const onnx::NodeProto& node = graph.node(stack.back());
    stack.pop_back();
    for (const std::string& input : node.input()) {
      TANDEM_RETURN_IF_ERROR(require(input, "node '" + node_name(node) + "'"));
    }
  }
  return {};
}

}  // namespace

StatusOr<std::vector<const onnx::NodeProto*>> order_nodes(
    const onnx::GraphProto& graph, const std::unordered_set<std::string>& known) {
  TANDEM_ASSIGN_OR_RETURN(const Producers producers, find_producers(graph, known));
  std::vector<bool> needed(static_cast<size_t>(graph.node_size()), false);
  TANDEM_RETURN_IF_ERROR(mark_needed(graph, producers, known, needed));

  // Kahn's algorithm; of the nodes that are ready the first in the file comes next.
  std::vector<int> missing(needed.size(), 0);
  std::vector<std::vector<int>> readers(needed.size());
  std::priority_queue<int, std::vector<int>, std::greater<>> ready;
  size_t total = 0;
  for (int n = 0; n < graph.node_size(); ++n) {
    if (!needed[n]) continue;
    ++total;
    for (const std::string& input : graph.node(n).input()) {
      const auto producer = producers.find(input);
      if (producer == producers.end()) continue;
      readers[producer->second].push_back(n);
      ++missing[n];
    }
    if (missing[n] == 0) ready.push(n);
  }
  std::vector<const onnx::NodeProto*> order;
  while (!ready.empty()) {
    const int n = ready.top();
    ready.pop();
    order.push_back(&graph.node(n));
    for (int reader : readers[n]) {
      if (--missing[reader] == 0) ready.push(reader);
    }
  }
  if (order.size() == total) return order;
  for (int n = 0; n < graph.node_size(); ++n) {
    if (needed[n] && missing[n] > 0) {
      return corrupt("node '" + node_name(graph.node(n)) +
                     "' depends on its own output: the graph has a cycle");
    }
  }
  return internal_error("nodes were lost while they were put in order");
}

}  // namespace tandem
