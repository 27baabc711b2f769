// A layer divided between the two lanes of a platform's model by output channels.
#pragma once

#include <string>
#include <vector>

#include "graph/graph.h"
#include "graph/partition.h"
#include "lane/sim/slice_time.h"
#include "schedule/placement.h"

namespace tandem::simulate {

inline constexpr int kCpu = 0;
inline constexpr int kGpu = 1;

// The CPU's part of a layer comes first.
struct LayerCut {
  Slice cpu;
  Slice gpu;
};

// One operator, which ends the graph. The graph must outlive it.
class DivisibleLayer {
 public:
  explicit DivisibleLayer(const Graph& graph);

  const Graph& graph() const { return graph_; }
  const Placement& placement() const { return placement_; }
  Slice whole() const;
  // In steps of 1/32 of the output channels, or of the granularity where that is more.
  const std::vector<LayerCut>& cuts() const { return cuts_; }

 private:
  const Graph& graph_;
  Placement placement_;
  std::vector<LayerCut> cuts_;
};

// How the parts' results are exchanged after both have ended.
struct Exchange {
  std::string name;
  double us = 0;           // per layer
  double us_per_byte = 0;  // of the GPU's part, where it computes on memory of its own
};
// "best": the platform's best mechanism; "event": OpenCL events; both until either lane has the
// other's part. "event_to_cpu": events, until the CPU has the GPU's part.
std::vector<Exchange> exchanges(const sim::PlatformModel& model);

// Microseconds until both parts have ended and are exchanged. Each is slowed down by what the
// other, if alone, takes of the memory bus on average.
double divided_us(const sim::PlatformModel& model, const DivisibleLayer& layer, const LayerCut& cut,
                  int threads, const Exchange& exchange);

// The whole layer on one lane.
double alone_us(const sim::PlatformModel& model, const DivisibleLayer& layer, int lane,
                int threads);

// The least of both lanes alone and every cut.
double best_us(const sim::PlatformModel& model, const DivisibleLayer& layer, int threads,
               const Exchange& exchange);

}  // namespace tandem::simulate
