// How long it takes from a model's file to a session that is ready, by part.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tandem/model.h"
#include "tandem/session.h"
#include "tandem/status.h"

namespace tandem::cli {

// In milliseconds; the parts add up to the whole.
struct Initialization {
  double whole = 0;
  double read = 0;  // the model's: LoadTimes
  double import = 0;
  double passes = 0;
  double predictors = 0;  // the session's: SessionTimes
  double calibrate = 0;
  double search = 0;  // predicting what slices cost, and the strategy's search
  double memory = 0;
  double lanes = 0;  // packing, programs, first launches
  double other = 0;  // threads of lanes, how they synchronise

  double search_share() const { return whole > 0 ? search / whole : 0; }
};

// `create_ms`: what Session::create() took, by the clock.
Initialization initialization_of(const LoadTimes& load, const SessionTimes& session,
                                 double create_ms);

// {"init_ms": .., "init_parts": {..}, "search_ms": .., "search_share": ..}.
nlohmann::json to_json(const Initialization& initialization);
// kCorrupt if it lacks anything.
StatusOr<Initialization> initialization_from_json(const nlohmann::json& json);
// "ready after 120 ms: reading 4, ...". `lanes` says more about that part; it may be empty.
std::string to_text(const Initialization& initialization, const std::string& lanes);

// Of strategy joint, with the model of this file, as `tandem run` says it in a process of its own:
// no program is loaded there. The first start is not counted, since it puts what is missing into
// the caches on disk; the median of three further ones, or a single one where they take long.
// `arguments`: more of that command. Files that are needed on the way lie in `folder`.
StatusOr<Initialization> measure_initialization(const std::string& file,
                                                const std::vector<std::string>& arguments,
                                                const std::string& folder);

}  // namespace tandem::cli
