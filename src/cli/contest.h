// Strategies on one model, timed in turn: what `tandem run` and `tandem bench model` share.
#pragma once

#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cli/initialization.h"
#include "cli/samples.h"
#include "tandem/session.h"

namespace tandem::cli {

// At least this share of a network's runs must be undisturbed for the others to be left out: where
// most are disturbed, the engine's own threads are in each other's way, and that is its time.
inline constexpr double kLeastCleanShare = 0.5;

// One strategy under measurement.
struct Contender {
  std::string strategy;
  std::unique_ptr<Session> session;
  double create_ms = 0;                         // that the session took
  bool simulated = false;                       // a clock of its own, which nothing disturbs
  Samples milliseconds{kLeastCleanShare};       // of inferences
  Samples call_milliseconds{kLeastCleanShare};  // of run(), copies of inputs and outputs included
  std::vector<HostTensor> outputs;              // of the last run
};

StatusOr<Contender> prepare(const std::string& strategy, const Model& model,
                            const std::shared_ptr<Platform>& platform, SessionOptions options);

// One inference. `timed`: its time is kept.
Status run_once(Contender& contender, const std::vector<HostTensor>& inputs, bool timed);

// Something that has its turn in every round.
using Turn = std::function<Status(bool timed)>;

// All in turn, so that whatever disturbs the machine disturbs all alike; each round starts with the
// next one. The first `warmup` rounds are not timed. Ends early, after a whole round, if the user
// interrupts it: there are fewer samples then. `label` is shown meanwhile.
Status take_turns(const std::vector<Turn>& turns, int warmup, int runs, const std::string& label);

// The bound on what two lanes can reach together: each does its share at the speed it has alone.
struct Limit {
  double best_ms = 0;   // of the lanes alone
  double speed_up = 0;  // over the best: 1 + t_fast / t_slow
};
// Known where the strategies cpu and gpu are among the contenders.
std::optional<Limit> limit_of(const std::vector<Contender>& contenders);

// What a schedule looks like.
struct Division {
  std::vector<int> slices;  // per lane
  int split = 0;            // operators on more than one lane
  int waits = 0;            // crossings between lanes
};
Division divide(const Graph& graph, const Schedule& schedule);

nlohmann::json load_times_json(const LoadTimes& times);
nlohmann::json memory_json(const SessionMemory& memory);
// Programs that an earlier session of this process needed are loaded already.
Initialization initialization_of(const Contender& contender, const Model& model);
// Of the programs of all OpenCL lanes since the process began: {"hits": 3, "misses": 0}.
nlohmann::json program_cache_json(const Platform& platform);

// Everything about a session but its times: how it divides the work, how it got ready, its memory.
nlohmann::json session_json(const Contender& contender, const Model& model,
                            const std::vector<std::string>& lane_names);
// The same for people, some lines that begin with `indent`.
std::string session_text(const Contender& contender, const Model& model,
                         const std::vector<std::string>& lane_names, const std::string& indent);

}  // namespace tandem::cli
