// Timelines as text.
#pragma once

#include <string>
#include <vector>

#include "graph/graph.h"
#include "report/timeline.h"

namespace tandem {

// One line per lane of at most `width` columns, and one with the time: slices that are long enough
// as "[name==]", where several share a column "#", waits and copies ".", nothing " ".
std::string gantt(const Graph& graph, const Schedule& schedule, const Timeline& timeline,
                  const std::vector<std::string>& lane_names, int width);

}  // namespace tandem
