#include "schedule/transfers.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace tandem {
namespace {

// What is copied of one maker's tensor into one memory, and where it is listed.
struct Copy {
  std::vector<TensorRegion>* list = nullptr;
  size_t index = 0;
};

class Planner {
 public:
  Planner(const Graph& graph, const Schedule& schedule, const std::vector<bool>& own_memory)
      : graph_(graph), own_memory_(own_memory) {
    transfers_.lanes.resize(schedule.lanes.size());
    for (size_t lane = 0; lane < schedule.lanes.size(); ++lane) {
      if (own_memory[lane]) transfers_.lanes[lane].resize(schedule.lanes[lane].size());
    }
  }

  // Slices of one lane come in order: the first that needs something is the one that fetches it.
  void add_reader(Position reader, const std::vector<Need>& needs) {
    for (const Need& need : needs) {
      if (graph_.tensor(need.tensor).kind == TensorKind::kConstant) continue;
      if (need.maker.lane == reader.lane) continue;
      leave(need);
      if (own_memory_[reader.lane]) {
        copy(need, reader.lane, &transfers_.lanes[reader.lane][reader.index].before);
      }
    }
  }
  void add_host_reader(const std::vector<Need>& needs) {
    for (const Need& need : needs) leave(need);
  }

  Transfers result() && { return std::move(transfers_); }

 private:
  using Key = std::tuple<int, int, TensorId, int, int>;  // maker, tensor, part, where to

  // To the host's memory, if the maker computes elsewhere.
  void leave(const Need& need) {
    if (need.maker.lane == kNone || !own_memory_[need.maker.lane]) return;
    copy(need, kNone, &transfers_.lanes[need.maker.lane][need.maker.index].after);
  }

  // Everything that is copied of one maker into one memory is one box, in the list where it came
  // first.
  void copy(const Need& need, int to, std::vector<TensorRegion>* list) {
    const Key key{need.maker.lane, need.maker.index, need.tensor, need.part, to};
    const auto [entry, added] = copies_.try_emplace(key, Copy{list, list->size()});
    if (added) {
      list->push_back({need.tensor, need.region});
      return;
    }
    Region& region = (*entry->second.list)[entry->second.index].region;
    for (size_t d = 0; d < region.size(); ++d) {
      region[d] = {std::min(region[d].begin, need.region[d].begin),
                   std::max(region[d].end, need.region[d].end)};
    }
  }

  const Graph& graph_;
  const std::vector<bool>& own_memory_;
  Transfers transfers_;
  std::map<Key, Copy> copies_;
};

}  // namespace

Transfers plan_transfers(const Graph& graph, const Schedule& schedule,
                         const std::vector<bool>& own_memory, bool everything) {
  Planner planner(graph, schedule, own_memory);
  if (std::find(own_memory.begin(), own_memory.end(), true) == own_memory.end()) {
    return std::move(planner).result();
  }
  const Dependencies dependencies(graph, schedule);
  for (size_t l = 0; l < schedule.lanes.size(); ++l) {
    const auto lane = static_cast<int>(l);
    for (size_t i = 0; i < schedule.lanes[l].size(); ++i) {
      planner.add_reader({lane, static_cast<int>(i)},
                         dependencies.needs_of(schedule.lanes[l][i].slice));
    }
  }
  for (size_t t = 0; t < graph.tensors().size(); ++t) {
    const auto id = static_cast<TensorId>(t);
    if (graph.is_output(id) || (everything && graph.tensor(id).kind == TensorKind::kActivation)) {
      planner.add_host_reader(dependencies.needs_of(id));
    }
  }
  return std::move(planner).result();
}

}  // namespace tandem
