// The simulator against published measurements.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "lane/sim/coefficients.h"
#include "simulate/published.h"

namespace tandem::simulate {

// Microseconds of one inference on a lane by itself.
double network_us(const sim::PlatformModel& model, const std::vector<sim::CoreGroup>& cores,
                  const Network& network);

// An entry with what it takes to simulate it.
struct Case {
  const Entry* entry = nullptr;
  size_t model = 0;  // of Cases::models
  std::vector<sim::CoreGroup> cores;
  const Network* network = nullptr;
  sim::Workload work;
};

// All entries that are times; for ratios see speed_ups.h.
struct Cases {
  std::vector<sim::PlatformModel> models;  // one for each platform and runtime that entries name
  std::vector<std::string> runtimes;       // of the models
  std::vector<Case> cases;

  // Gives all models these coefficients.
  Status resolve(const sim::Coefficients& coefficients);
  double simulate_us(const Case& which) const;
};
// `published` must outlive the cases.
StatusOr<Cases> make_cases(const Published& published);

struct Comparison {
  const Entry* entry = nullptr;
  double simulated = 0;  // in the entry's unit

  double error() const { return simulated / entry->value - 1; }
};

struct ErrorSummary {
  int entries = 0;
  double median = 0;  // of |error|
  double p90 = 0;
  double bias = 0;  // median of signed errors
};
ErrorSummary summarize_errors(const std::vector<Comparison>& comparisons);

// Of pairs of entries that are the same work on different lanes or platforms, by the same runtime,
// and that measurements set apart by more than 5%: how many the simulator ranks as they do.
struct Ranking {
  int pairs = 0;
  int right = 0;

  double share() const { return pairs == 0 ? 1 : static_cast<double>(right) / pairs; }
};
// Pairs of CPU and GPU of one platform; `best` takes the CPU's fastest measured combination only.
Ranking rank_cpu_and_gpu(const std::vector<Comparison>& comparisons, bool best);
// Pairs of platforms: GPUs with GPUs, and with CPUs the fastest combination of each.
Ranking rank_platforms(const std::vector<Comparison>& comparisons);

}  // namespace tandem::simulate
