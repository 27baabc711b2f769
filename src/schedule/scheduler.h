// Schedulers by name. Each fills a Schedule, waits included, that passes check_schedule().
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "schedule/cost_table.h"
#include "schedule/schedule.h"

namespace tandem {

// What a scheduler may know of a lane.
struct LaneTraits {
  std::string name;
  bool asynchronous = false;
  // The lane whose thread enqueues this lane's slices, all of them before its own first slice;
  // kNone if a thread of its own does.
  int fed_by = kNone;
  // The lane computes on memory of its own: what crosses to or from it is copied.
  bool own_memory = false;
  // That a slice can be given; queues divide their work themselves.
  int max_threads = 1;
};

struct Problem {
  const Graph* graph = nullptr;
  std::vector<LaneTraits> lanes;
  const CostModel* cost = nullptr;  // null is fine for single-lane strategies
};

class Scheduler {
 public:
  virtual ~Scheduler() = default;
  virtual StatusOr<Schedule> schedule(const Problem& problem) const = 0;
};

// `cpu`, `gpu`: every operator whole on the first lane that is synchronous / asynchronous.
// `intra`: every operator cut over the lanes at its cheapest ratio, or whole on one lane where that
// is cheaper, one operator after another.
// `inter`, `inter_heft`, `inter_lookahead`, `chain`, `joint`, `exact`: see mode_scheduler.h.
// All but `cpu` and `gpu` fall back on the best single lane where nothing faster was found. plan()
// does the same, with more to ask and to tell.
// Unknown name: kNotFound, listing the known ones.
StatusOr<std::unique_ptr<Scheduler>> make_scheduler(std::string_view strategy);
std::vector<std::string_view> scheduler_names();

}  // namespace tandem
