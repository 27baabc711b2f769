// This machine's predictors on disk: one JSON file a platform.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "predict/slice_predictor.h"

namespace tandem::predict {

struct LanePredictorTexts {
  LaneFacts facts;
  std::map<std::string, std::string> models;  // SlicePredictor::to_texts()
  double memory_gbps = 0;  // that one core reads at, as probed beside the measurements; 0: unknown
};

// What was trained, and with what success.
struct PredictorFile {
  static constexpr int kSchemaVersion = 1;

  Fingerprints made_for;
  std::string trained;  // date and time, UTC
  std::map<std::string, LanePredictorTexts> lanes;
  std::string errors;  // held-out errors as JSON, for people; empty: not evaluated

  std::string to_text() const;
  // kFailedPrecondition for another schema version, platform or engine, unless others are allowed:
  // then the log warns. kCorrupt for what to_text() cannot have made.
  static StatusOr<PredictorFile> parse(const std::string& text, const Fingerprints& expected,
                                       bool allow_other_fingerprints);

  // kNotFound if there is none: says how to make one.
  static StatusOr<PredictorFile> load(const std::string& path, const Fingerprints& expected,
                                      bool allow_other_fingerprints);
  Status save(const std::string& path) const;
};

// $XDG_DATA_HOME/tandem/predictors/HASH.json of the platform, else in ~/.local/share; "none"
// without a home.
std::string default_predictor_path(const std::string& platform);

}  // namespace tandem::predict
