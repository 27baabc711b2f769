#include "cli/contest.h"

#include <algorithm>
#include <set>

#include "cli/interrupt.h"
#include "cli/progress.h"
#include "fmt/format.h"
#include "fmt/ranges.h"
#include "graph/graph.h"
#include "lane/opencl/opencl_lane.h"
#include "platform/simulated_platform.h"
#include "schedule/schedule.h"
#include "support/clock.h"
#include "support/stopwatch.h"

namespace tandem::cli {
namespace {

double megabytes(size_t bytes) { return static_cast<double>(bytes) / 1e6; }

nlohmann::json lanes_json(const SessionTimes& times) {
  nlohmann::json lanes = nlohmann::json::object();
  for (const LanePreparation& lane : times.lanes) {
    lanes[lane.lane] = {{"pack", lane.pack_ms},
                        {"compile", lane.compile_ms},
                        {"warm", lane.warm_ms},
                        {"programs_compiled", lane.programs_compiled},
                        {"programs_cached", lane.programs_cached}};
  }
  return lanes;
}

std::string lane_text(const LanePreparation& lane) {
  std::string text = fmt::format("{} packing {:.0f}", lane.lane, lane.pack_ms);
  if (lane.compile_ms > 0 || lane.warm_ms > 0) {
    text +=
        fmt::format(", programs {:.0f} ({} compiled, {} cached), first launches {:.0f}",
                    lane.compile_ms, lane.programs_compiled, lane.programs_cached, lane.warm_ms);
  }
  return text;
}

std::string memory_text(const SessionMemory& memory) {
  std::string text = fmt::format("arena {:.1f} MB", megabytes(memory.arena));
  if (memory.least > 0) text += fmt::format(" (at least {:.1f})", megabytes(memory.least));
  if (memory.constants > 0)
    text += fmt::format(", {:.1f} of it constants", megabytes(memory.constants));
  return text + fmt::format(", without reuse {:.1f} MB ({:.1f} of it padding)",
                            megabytes(memory.without_reuse), megabytes(memory.padding));
}

}  // namespace

StatusOr<Contender> prepare(const std::string& strategy, const Model& model,
                            const std::shared_ptr<Platform>& platform, SessionOptions options) {
  options.strategy = strategy;
  const Progress progress(fmt::format("{}: preparing {}", model.name(), strategy));
  Contender contender;
  contender.strategy = strategy;
  const Stopwatch stopwatch;
  TANDEM_ASSIGN_OR_RETURN(contender.session, Session::create(model, platform, options));
  contender.create_ms = stopwatch.milliseconds();
  contender.simulated = dynamic_cast<const SimulatedPlatform*>(platform.get()) != nullptr;
  return contender;
}

Status run_once(Contender& contender, const std::vector<HostTensor>& inputs, bool timed) {
  const PreemptionWatch watch;
  const Clock::time_point begin = Clock::now();
  TANDEM_RETURN_IF_ERROR(contender.session->run(inputs, &contender.outputs)
                             .with_context("strategy " + contender.strategy));
  const double call_us = microseconds(Clock::now() - begin);
  if (!timed) return {};
  const bool preempted = !contender.simulated && watch.preempted();
  contender.milliseconds.add(contender.session->last_run_us() / 1000, preempted);
  contender.call_milliseconds.add(call_us / 1000, preempted);
  return {};
}

Status take_turns(const std::vector<Turn>& turns, int warmup, int runs, const std::string& label) {
  const InterruptWatch interrupt;
  Progress progress(label, warmup + runs);
  for (int round = 0; round < warmup + runs; ++round, progress.step()) {
    if (InterruptWatch::seen()) return {};
    for (size_t i = 0; i < turns.size(); ++i) {
      TANDEM_RETURN_IF_ERROR(turns[(round + i) % turns.size()](round >= warmup));
    }
  }
  return {};
}

std::optional<Limit> limit_of(const std::vector<Contender>& contenders) {
  double cpu = 0;
  double gpu = 0;
  for (const Contender& contender : contenders) {
    const double median = contender.milliseconds.summary().median;
    if (contender.strategy == "cpu") cpu = median;
    if (contender.strategy == "gpu") gpu = median;
  }
  if (cpu <= 0 || gpu <= 0) return std::nullopt;
  return Limit{std::min(cpu, gpu), 1 + std::min(cpu, gpu) / std::max(cpu, gpu)};
}

Division divide(const Graph& graph, const Schedule& schedule) {
  Division division;
  std::vector<std::set<size_t>> lanes(graph.operators().size());
  for (size_t lane = 0; lane < schedule.lanes.size(); ++lane) {
    division.slices.push_back(static_cast<int>(schedule.lanes[lane].size()));
    for (const ScheduledSlice& scheduled : schedule.lanes[lane]) {
      lanes[scheduled.slice.op].insert(lane);
      division.waits += static_cast<int>(scheduled.waits.size());
    }
  }
  division.split = static_cast<int>(std::count_if(
      lanes.begin(), lanes.end(), [](const std::set<size_t>& set) { return set.size() > 1; }));
  return division;
}

nlohmann::json load_times_json(const LoadTimes& times) {
  return {{"parse", times.parse_ms}, {"import", times.import_ms}, {"passes", times.pass_ms}};
}

nlohmann::json memory_json(const SessionMemory& memory) {
  nlohmann::json json = {{"arena_bytes", memory.arena},
                         {"constant_bytes", memory.constants},
                         {"arena_bytes_without_reuse", memory.without_reuse},
                         {"padding_bytes_without_reuse", memory.padding}};
  if (memory.least > 0) json["least_bytes"] = memory.least;
  return json;
}

Initialization initialization_of(const Contender& contender, const Model& model) {
  return initialization_of(model.load_times(), contender.session->times(), contender.create_ms);
}

nlohmann::json program_cache_json(const Platform& platform) {
  ProgramCacheStats total;
  for (const auto& lane : platform.lanes()) {
    const auto* opencl = dynamic_cast<const OpenClLane*>(lane.get());
    if (opencl == nullptr) continue;
    total.hits += opencl->cache_stats().hits;
    total.misses += opencl->cache_stats().misses;
  }
  return {{"hits", total.hits}, {"misses", total.misses}};
}

nlohmann::json session_json(const Contender& contender, const Model& model,
                            const std::vector<std::string>& lane_names) {
  const Session& session = *contender.session;
  const Division division = divide(model.graph(), session.schedule());
  nlohmann::json slices;
  for (size_t lane = 0; lane < division.slices.size(); ++lane) {
    slices[lane_names[lane]] = division.slices[lane];
  }
  nlohmann::json packed = nlohmann::json::object();
  for (const LanePreparation& lane : session.times().lanes) packed[lane.lane] = lane.bytes;
  nlohmann::json memory = memory_json(session.memory());
  memory["packed_bytes"] = packed;
  return {{"sync", to_string(session.sync())},
          {"slices", slices},
          {"preempted_runs", contender.milliseconds.disturbed()},
          {"dropped_runs", contender.milliseconds.dropped()},
          {"split_operators", division.split},
          {"waits", division.waits},
          {"memory", memory},
          {"fall_back_reason", session.fall_back_reason()},
          {"init_parts", to_json(initialization_of(contender, model))["init_parts"]},
          {"init_lanes", lanes_json(session.times())}};
}

std::string session_text(const Contender& contender, const Model& model,
                         const std::vector<std::string>& lane_names, const std::string& indent) {
  const Session& session = *contender.session;
  const Division division = divide(model.graph(), session.schedule());
  std::vector<std::string> slices;
  for (size_t lane = 0; lane < division.slices.size(); ++lane) {
    slices.push_back(fmt::format("{} {}", lane_names[lane], division.slices[lane]));
  }
  const SessionTimes& times = session.times();
  std::vector<std::string> lanes;
  std::vector<std::string> packed;
  for (const LanePreparation& lane : times.lanes) {
    lanes.push_back(lane_text(lane));
    packed.push_back(fmt::format("{} {:.1f} MB", lane.lane, megabytes(lane.bytes)));
  }
  return fmt::format(
      "{0}slices: {1}; {2} operators split, {3} waits (sync {4})\n"
      "{0}memory: {5}; packed weights: {6}\n"
      "{0}{7}\n",
      indent, fmt::join(slices, ", "), division.split, division.waits, to_string(session.sync()),
      memory_text(session.memory()), fmt::join(packed, ", "),
      to_text(initialization_of(contender, model), fmt::format("{}", fmt::join(lanes, "; "))));
}

}  // namespace tandem::cli
