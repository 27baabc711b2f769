#include "simulate/start_time.h"

#include <array>
#include <set>
#include <string>
#include <tuple>

#include "lane/sim/slice_time.h"
#include "lane/sim/world.h"
#include "schedule/placement.h"

namespace tandem::simulate {

StartTime start_time(const Graph& graph, const sim::PlatformModel& model) {
  StartTime start;
  double bytes = 0;
  for (const Tensor& tensor : graph.tensors()) {
    if (tensor.kind != TensorKind::kConstant) continue;
    bytes += static_cast<double>(element_count(tensor.dims) * element_size(tensor.type));
  }
  start.weights_ms =
      1e-3 * bytes * sim::copy_us_per_byte(model) * static_cast<double>(model.lanes.size());
  const Placement placement = analyse(graph);
  std::set<std::tuple<std::string, int64_t, int64_t, int64_t>> programs;
  for (int lane = 0; lane < static_cast<int>(model.lanes.size()); ++lane) {
    if (!model.lanes[lane].cores.empty()) continue;
    for (size_t op = 0; op < graph.operators().size(); ++op) {
      if (!placement.launched[op]) continue;
      const Slice whole{.op = static_cast<OperatorId>(op)};
      const ImplementationInfo info =
          sim::slice_time(model, lane, sim::workload_of(graph, whole)).implementation;
      const auto& [x, y, z] = info.local_size;
      if (!programs.emplace(info.name, x, y, z).second) continue;
      start.programs += static_cast<int>(info.dispatches);
    }
  }
  start.compile_ms = start.programs * model.start.compile_ms;
  start.load_ms = start.programs * model.start.load_ms;
  return start;
}

}  // namespace tandem::simulate
