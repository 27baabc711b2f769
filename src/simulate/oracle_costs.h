// Costs straight from the simulator: what predictors could know at best.
#pragma once

#include <cstdint>
#include <unordered_map>

#include "lane/sim/slice_time.h"
#include "schedule/scheduler.h"

namespace tandem::simulate {

// How lanes tell each other of progress, of what the platform's driver offers.
enum class Mechanism : uint8_t { kSvm, kEvent, kFinish };
const char* to_string(Mechanism mechanism);
// Svm where there are fine-grained atomics, else whichever of the others costs less.
Mechanism best_mechanism(const sim::PlatformModel& model);
// kUnsupported where the driver does not have it.
StatusOr<Mechanism> parse_mechanism(const sim::PlatformModel& model, const std::string& name);

// Not to be called from two threads at once: answers are kept.
class OracleCosts : public CostModel {
 public:
  // Graph and model must outlive it.
  OracleCosts(const Graph& graph, const sim::PlatformModel& model, Mechanism mechanism)
      : graph_(graph), model_(model), mechanism_(mechanism) {}

  double slice_us(int lane, const Slice& slice, int threads = 0) const override;
  // memory_share: of the memory bus that it takes. Slowdowns: while all other lanes stream, or
  // compute.
  Contention contention(int lane, const Slice& slice) const override;
  double crossing_us(int from, int to) const override;
  double copy_us(int lane, const CopySize& size) const override;
  double enqueue_us(int lane) const override;

 private:
  const Graph& graph_;
  const sim::PlatformModel& model_;
  const Mechanism mechanism_;
  mutable std::unordered_map<uint64_t, double> known_;
};

// The platform's lanes as schedulers see them.
Problem problem_of(const Graph& graph, const sim::PlatformModel& model, const CostModel* costs);

}  // namespace tandem::simulate
