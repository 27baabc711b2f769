// This machine's predictors on disk: one file a platform.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "predict/shared_text.h"
#include "predict/slice_predictor.h"

namespace tandem::predict {

struct LanePredictorTexts {
  LaneFacts facts;
  std::map<std::string, SharedText> models;  // SlicePredictor::to_texts()
  double memory_gbps = 0;  // that one core reads at, as probed beside the measurements; 0: unknown
};

// What was trained, and with what success.
//
// Files have two lines and then bytes, so that reading takes no longer than what is read of them:
// - "tandem predictors 2 HASH": the version, and hash_of() the second line, in hexadecimal.
// - JSON: everything but `errors` and the models, of which it says where they lie: [first byte
//   after the second line, bytes]. "checksum" is of all those bytes.
// - Regressor::to_packed() of each model, and `errors`.
// Those of version 1, a single JSON document with every number as text, are read too.
struct PredictorFile {
  static constexpr int kSchemaVersion = 2;

  Fingerprints made_for;
  std::string trained;  // date and time, UTC
  std::map<std::string, LanePredictorTexts> lanes;
  std::string errors;  // held-out errors as JSON, for people; empty: not evaluated

  std::string to_text() const;
  // kFailedPrecondition for another schema version, platform or engine, unless others are allowed:
  // then the log warns. kCorrupt for what to_text() cannot have made.
  static StatusOr<PredictorFile> parse(SharedText text, const Fingerprints& expected,
                                       bool allow_other_fingerprints);

  // kNotFound if there is none: says how to make one.
  static StatusOr<PredictorFile> load(const std::string& path, const Fingerprints& expected,
                                      bool allow_other_fingerprints);
  Status save(const std::string& path) const;
};

// Where predictors of the platform are saved: $XDG_DATA_HOME/tandem/predictors/HASH.predictors,
// else in ~/.local/share; "none" without a home.
std::string default_predictor_path(const std::string& platform);
// And where they are: there, or where earlier versions saved them (HASH.json).
std::string find_default_predictors(const std::string& platform);

}  // namespace tandem::predict
