#include "simulate/layer_split.h"

#include <algorithm>

#include "lane/sim/world.h"
#include "simulate/oracle_costs.h"

namespace tandem::simulate {
namespace {

constexpr int kSteps = 32;

std::vector<LayerCut> cuts_of(const Graph& graph, OperatorId op) {
  const Dims& dims = graph.tensor(graph.op(op).output).dims;
  // Of images, channels are dimension 1; of matrices too.
  constexpr int kChannels = 1;
  std::vector<LayerCut> cuts;
  for (const PartitionAxis& axis : partition_axes(graph, op)) {
    if (axis.axis != kChannels) continue;
    const int64_t extent = dims[kChannels];
    int64_t last = 0;
    for (int step = 1; step < kSteps; ++step) {
      const int64_t at = extent * step / kSteps / axis.granularity * axis.granularity;
      if (at <= last || at >= extent) continue;
      cuts.push_back({{op, kChannels, 0, at}, {op, kChannels, at, extent}});
      last = at;
    }
  }
  return cuts;
}

double gpu_bytes(const DivisibleLayer& layer, const Slice& slice) {
  double bytes = 4;
  for (const Range& range : output_region(layer.graph(), slice)) {
    bytes *= static_cast<double>(range.size());
  }
  return bytes;
}

}  // namespace

DivisibleLayer::DivisibleLayer(const Graph& graph)
    : graph_(graph), placement_(analyse(graph)), cuts_(cuts_of(graph, whole().op)) {}

Slice DivisibleLayer::whole() const {
  return {static_cast<OperatorId>(graph_.operators().size()) - 1, kNone, 0, 0};
}

std::vector<Exchange> exchanges(const sim::PlatformModel& model) {
  const auto slower = [](const sim::CrossingCost& cost) {
    return std::max(cost.cpu_to_gpu, cost.gpu_to_cpu);
  };
  const Mechanism best = best_mechanism(model);
  const sim::SyncCosts& sync = model.sync;
  const sim::CrossingCost& cost = best == Mechanism::kSvm     ? sync.svm
                                  : best == Mechanism::kEvent ? sync.event
                                                              : sync.finish;
  std::vector<Exchange> all = {{"best", slower(cost)},
                               {"event", slower(sync.event)},
                               {"event_to_cpu", sync.event.gpu_to_cpu}};
  if (sync.shared_memory >= sim::SharedMemory::kFine) return all;
  for (Exchange& exchange : all) {
    exchange.us += sync.map_us;
    exchange.us_per_byte = sim::copy_us_per_byte(model);
  }
  return all;
}

double divided_us(const sim::PlatformModel& model, const DivisibleLayer& layer, const LayerCut& cut,
                  int threads, const Exchange& exchange) {
  const sim::Workload cpu = sim::workload_of(layer.graph(), cut.cpu);
  const sim::Workload gpu = sim::workload_of(layer.graph(), cut.gpu);
  const auto load_of = [](const sim::SliceTime& time) {
    sim::Load load;
    load.memory_gbps = time.dram_bytes / (time.us * 1e3);
    return load;
  };
  const sim::Load by_cpu = load_of(sim::slice_time(model, kCpu, cpu, threads));
  const sim::Load by_gpu = load_of(sim::slice_time(model, kGpu, gpu));
  const double cpu_us = sim::slice_time(model, kCpu, cpu, threads, by_gpu).us;
  const double gpu_us = sim::slice_time(model, kGpu, gpu, 0, by_cpu).us;
  return std::max(cpu_us, gpu_us) + exchange.us + gpu_bytes(layer, cut.gpu) * exchange.us_per_byte;
}

double alone_us(const sim::PlatformModel& model, const DivisibleLayer& layer, int lane,
                int threads) {
  const sim::Workload work = sim::workload_of(layer.graph(), layer.whole());
  return sim::slice_time(model, lane, work, lane == kCpu ? threads : 0).us;
}

double best_us(const sim::PlatformModel& model, const DivisibleLayer& layer, int threads,
               const Exchange& exchange) {
  double best =
      std::min(alone_us(model, layer, kCpu, threads), alone_us(model, layer, kGpu, threads));
  for (const LayerCut& cut : layer.cuts()) {
    best = std::min(best, divided_us(model, layer, cut, threads, exchange));
  }
  return best;
}

}  // namespace tandem::simulate
