// The problems of `tandem bench schedule`.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "schedule/mode_problem.h"

namespace tandem::cli {

struct BenchProblem {
  std::string kind;  // "random", "network", "stage" or "file"
  ModeProblem problem;
};

// `count` problems of schedule/random_problem.h and of random_network.h, in turn: all families, 2
// to 4 lanes, 5 to 60 operators with as many sizes below 17 as above, lists of 4 to 12 modes.
StatusOr<std::vector<BenchProblem>> generated_problems(int count, uint64_t seed);

// Every file *.json of the folder, by name.
StatusOr<std::vector<BenchProblem>> problems_in(const std::string& folder);

// bench/problems above this program; empty if there is none.
std::string default_problem_folder();

// The makespans of no scheduler depend on contention that costs know: it is left out.
void remove_contention(ModeProblem* problem);

}  // namespace tandem::cli
