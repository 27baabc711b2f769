// What creating a session takes on a platform's model.
#pragma once

#include "graph/graph.h"
#include "lane/sim/platform_model.h"

namespace tandem::simulate {

struct StartTime {
  int programs = 0;  // of the GPU; kernels that differ in what they do or in their work-group
  double weights_ms = 0;
  double compile_ms = 0;  // all programs
  double load_ms = 0;     // all programs, if they were compiled before

  double cold_ms() const { return weights_ms + compile_ms; }
  double warm_ms() const { return weights_ms + load_ms; }
};

// Every operator that is launched is made ready on every lane, since a plan may divide each: the
// GPU's programs, as for whole operators, are compiled or loaded one after another, and weights are
// copied once into the order that the lane reads them in, by the core that copies fastest. Reading
// the model and planning come on top.
StartTime start_time(const Graph& graph, const sim::PlatformModel& model);

}  // namespace tandem::simulate
