#include "simulate/oracle_costs.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "lane/sim/world.h"

namespace tandem::simulate {
namespace {

constexpr std::array<const char*, 3> kNames = {"svm", "event", "finish"};

bool is_gpu(const sim::PlatformModel& model, int lane) { return model.lanes[lane].cores.empty(); }

const sim::CrossingCost& cost_of(const sim::PlatformModel& model, Mechanism mechanism) {
  switch (mechanism) {
    case Mechanism::kSvm:
      return model.sync.svm;
    case Mechanism::kEvent:
      return model.sync.event;
    case Mechanism::kFinish:
      break;
  }
  return model.sync.finish;
}

double round_trip(const sim::CrossingCost& cost) { return cost.cpu_to_gpu + cost.gpu_to_cpu; }

}  // namespace

const char* to_string(Mechanism mechanism) { return kNames[static_cast<size_t>(mechanism)]; }

Mechanism best_mechanism(const sim::PlatformModel& model) {
  if (model.sync.shared_memory == sim::SharedMemory::kFineAtomics) return Mechanism::kSvm;
  return round_trip(model.sync.event) <= round_trip(model.sync.finish) ? Mechanism::kEvent
                                                                       : Mechanism::kFinish;
}

StatusOr<Mechanism> parse_mechanism(const sim::PlatformModel& model, const std::string& name) {
  if (name == "auto") return best_mechanism(model);
  const auto* found = std::find(kNames.begin(), kNames.end(), name);
  if (found == kNames.end()) {
    return invalid_argument(
        fmt::format("there is no mechanism '{}': there are auto, svm, event, finish", name));
  }
  const auto mechanism = static_cast<Mechanism>(found - kNames.begin());
  if (mechanism == Mechanism::kSvm && model.sync.shared_memory != sim::SharedMemory::kFineAtomics) {
    return unsupported(
        fmt::format("{}'s driver has no fine-grained atomics: use event or finish", model.name));
  }
  return mechanism;
}

double OracleCosts::slice_us(int lane, const Slice& slice, int threads) const {
  const std::array<int64_t, 6> parts = {lane,        slice.op,  slice.axis,
                                        slice.begin, slice.end, threads};
  uint64_t key = 0;
  for (const int64_t part : parts) key = sim::mix(key, static_cast<uint64_t>(part));
  const auto [entry, fresh] = known_.try_emplace(key, 0);
  if (fresh) {
    const sim::Workload work = sim::workload_of(graph_, slice);
    entry->second = sim::slice_time(model_, lane, work, threads).us;
  }
  return entry->second;
}

Contention OracleCosts::contention(int lane, const Slice& slice) const {
  const sim::Workload work = sim::workload_of(graph_, slice);
  const sim::SliceTime alone = sim::slice_time(model_, lane, work);
  const auto slowdown = [&](sim::OtherWork others) {
    sim::Load load;
    for (int other = 0; other < static_cast<int>(model_.lanes.size()); ++other) {
      if (other != lane) load.memory_gbps += sim::bus_gbps(model_, other, others);
    }
    return std::max(1.0, sim::slice_time(model_, lane, work, 0, load).us / alone.us);
  };
  Contention contention;
  const double gbps = alone.dram_bytes / (alone.us * 1e3);
  const double most = std::max(1e-9, sim::bus_gbps(model_, lane, sim::OtherWork::kMemory));
  contention.memory_share = std::clamp(gbps / most, 0.0, 1.0);
  contention.slowdown_memory = slowdown(sim::OtherWork::kMemory);
  contention.slowdown_compute = slowdown(sim::OtherWork::kCompute);
  return contention;
}

double OracleCosts::crossing_us(int from, int to) const {
  if (is_gpu(model_, from) == is_gpu(model_, to)) return model_.sync.core_crossing_us;
  const sim::CrossingCost& cost = cost_of(model_, mechanism_);
  return is_gpu(model_, from) ? cost.gpu_to_cpu : cost.cpu_to_gpu;
}

double OracleCosts::copy_us(int lane, const CopySize& size) const {
  const bool copies = is_gpu(model_, lane) && model_.sync.shared_memory < sim::SharedMemory::kFine;
  if (!copies) return 0;
  return model_.sync.map_us + static_cast<double>(size.bytes) * sim::copy_us_per_byte(model_);
}

double OracleCosts::enqueue_us(int lane) const {
  return is_gpu(model_, lane) ? model_.sync.enqueue_us : 0;
}

Problem problem_of(const Graph& graph, const sim::PlatformModel& model, const CostModel* costs) {
  Problem problem;
  problem.graph = &graph;
  problem.cost = costs;
  for (int lane = 0; lane < static_cast<int>(model.lanes.size()); ++lane) {
    LaneTraits& traits = problem.lanes.emplace_back();
    traits.name = model.lanes[lane].name;
    traits.asynchronous = is_gpu(model, lane);
    traits.own_memory = traits.asynchronous && model.sync.shared_memory < sim::SharedMemory::kFine;
    if (!traits.asynchronous) traits.max_threads = sim::core_count(model.lanes[lane].cores);
  }
  return problem;
}

}  // namespace tandem::simulate
