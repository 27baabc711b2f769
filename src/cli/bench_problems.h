// The problems of `tandem bench schedule`.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "schedule/mode_problem.h"

namespace tandem::cli {

struct BenchProblem {
  std::string kind;  // "random", "network", "stage", "file" or "adversary"
  ModeProblem problem;
};

// `count` problems of schedule/random_problem.h: all families, 2 to 4 lanes, 5 to 60 operators with
// as many sizes below 17 as above, lists of 4 to 12 modes.
StatusOr<std::vector<BenchProblem>> generated_problems(int count, uint64_t seed);

// Every file *.json of the folder, by name.
StatusOr<std::vector<BenchProblem>> problems_in(const std::string& folder, const std::string& kind);

// What the adversary found: bench/problems above this program; empty if there is none.
std::string default_problem_folder();

// Comparisons with optima are made without: exact methods cannot express it.
void remove_contention(ModeProblem* problem);

}  // namespace tandem::cli
