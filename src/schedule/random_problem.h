// Random mode problems of the kinds that networks bring: for benchmarks of schedulers, and tests.
// No graph and no lanes are behind them; the same options always make the same problem.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "schedule/mode_problem.h"

namespace tandem {

// Which operator reads what.
enum class GraphFamily {
  kSeriesParallel,  // nested forks and joins
  kInception,       // modules of branches that all of the next module's branches read
  kResidual,        // chains, whose blocks end in a sum with the block's input
  kHrnet,           // chains side by side that exchange results now and then
  kLayered,         // layers of random widths, each operator with one to three inputs before it
};
std::string_view to_string(GraphFamily family);
std::span<const GraphFamily> graph_families();

// The inputs of each of `operators` operators, all earlier ones, ascending.
std::vector<std::vector<int>> random_topology(GraphFamily family, int operators, uint64_t seed);

struct RandomProblemOptions {
  GraphFamily family = GraphFamily::kSeriesParallel;
  int operators = 20;
  int lanes = 2;  // at least 1
  int max_modes = 12;
  uint64_t seed = 1;
};

// Operators are like convolutions (cut along channels, their parts read all of the input; cut along
// rows, some more rows than they make), like depthwise ones (parts read the same region), or
// uncuttable. Modes are the whole operator on each lane, and cuts over sets of lanes, even, uneven,
// and where a producer is cut. Lanes differ in speed, by operator, too; every part has an overhead.
// Some problems have a lane that is fed, or that computes on memory of its own.
ModeProblem random_problem(const RandomProblemOptions& options);

}  // namespace tandem
