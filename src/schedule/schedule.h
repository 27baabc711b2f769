// Schedules: per lane, the ordered slices, each with the waits that it needs. Knows nothing of how
// lanes work.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "graph/partition.h"

namespace tandem {

// "Lane `lane` has finished its first `count` slices."
struct Wait {
  int lane = 0;
  int count = 0;

  bool operator==(const Wait&) const = default;
};

struct ScheduledSlice {
  Slice slice;
  int threads = 0;            // CPU lanes; 0: the lane's maximum
  double predicted_us = 0;    // 0: unknown
  std::vector<Wait> waits{};  // at most one per other lane, by ascending lane
};

struct Schedule {
  std::string strategy;
  std::vector<std::vector<ScheduledSlice>> lanes;  // indexed like the platform's lanes
};

// Fills in every slice's waits from the region rules: exactly those dependencies on other lanes
// that are not implied by lane order and earlier waits. Waits found in the schedule are replaced.
// Fails, naming the cycle, if lane orders and dependencies contradict each other.
Status derive_waits(const Graph& graph, Schedule* schedule);

// True where operator `op` is never launched: a kReshape that the memory plan makes an alias.
// Schedules must not contain such operators; their consumers depend on whatever made the source.
bool is_alias(const Graph& graph, OperatorId op);

// Every element of every output of every operator (aliases apart) is made by exactly one slice;
// slices pass check_slice(); waits are in range, imply every dependency, and are acyclic together
// with lane orders. The first violation, named.
Status check_schedule(const Graph& graph, const Schedule& schedule);

// For each lane and position, how many slices of every lane are known to have finished once that
// slice has finished: the schedule's happens-before relation, after derive_waits().
std::vector<std::vector<std::vector<int>>> finished_before(const Schedule& schedule);

}  // namespace tandem
