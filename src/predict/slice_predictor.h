// Predictors of this engine's own lanes: one regressor a lane and operator family, and a model of
// how lanes slow each other down.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "predict/regressor.h"
#include "predict/shared_text.h"
#include "predict/slice_features.h"

namespace tandem::predict {

// A measurement to learn from.
struct SliceSample {
  SliceCase slice;
  double us = 0;         // median
  double low_us = 0;     // first quartile
  double high_us = 0;    // third quartile
  double alone_us = 0;   // with a load: the median without, measured in turn with this one
  std::string networks;  // that have the operator, joined by commas
};

// What predictors are told about slices.
enum class SliceKnowledge : uint8_t {
  kKernels,    // everything
  kArguments,  // what is known without asking the lane
  kFlops,      // a line through the FLOPs, without trees
};

struct SlicePredictorOptions {
  BoostingOptions boosting = {};
  SliceKnowledge knowledge = SliceKnowledge::kKernels;
};

// One lane's.
class SlicePredictor {
 public:
  // Families with fewer rows or shapes than these are predicted by a model of all of the lane's.
  static constexpr size_t kFewestRows = 60;
  static constexpr size_t kFewestShapes = 6;

  // Rows of one lane; `groups` of equal length: of shape_groups(). Rows under load teach slowdowns,
  // the others times.
  static StatusOr<SlicePredictor> fit(std::span<const SliceSample* const> samples,
                                      std::span<const std::string> groups,
                                      const SlicePredictorOptions& options);

  // Microseconds, alone. Rows of a family that was not learned from, on a lane whose rows were too
  // few for a model of all families, are an error that names it.
  StatusOr<std::vector<double>> predict(std::span<const SliceCase* const> slices) const;
  // By how much the slices take longer under their `load`, at least 1: 1 without load, and where no
  // rows under load were learned from.
  StatusOr<std::vector<double>> slowdowns(std::span<const SliceCase* const> slices) const;

  // One slice without load, and how other lanes' loads slow it down if that is wanted: the same as
  // predict() and slowdowns() say, for those who ask for one slice after another.
  struct Prediction {
    double us = 0;
    double slowdown_memory = 1;
    double slowdown_compute = 1;
  };
  StatusOr<Prediction> predict_one(const SliceCase& slice, bool with_slowdowns) const;

  // Families with models of their own, and what they were trained on.
  std::map<SliceFamily, TrainingStatistics> statistics() const;
  bool has_own_model(SliceFamily family) const { return families_.contains(family); }
  bool knows_slowdowns() const { return slowdown_.has_value(); }

  // Every model, packed, by name: families, "all" and "slowdown"; and back. parse() also takes
  // those that are JSON alone, and refuses as Regressor::parse() does.
  std::map<std::string, SharedText> to_texts(const Fingerprints& made_for) const;
  static StatusOr<SlicePredictor> parse(const std::map<std::string, SharedText>& texts,
                                        const Regressor::Expectation& expected);

 private:
  // kFailedPrecondition if there is none.
  StatusOr<const Regressor*> model_of(SliceFamily family) const;
  Frame columns_of(Frame frame) const;
  StatusOr<Frame> frame_of(std::span<const SliceCase* const> slices) const;

  SliceKnowledge knowledge_ = SliceKnowledge::kKernels;
  std::map<SliceFamily, Regressor> families_;
  std::optional<Regressor> all_families_;
  std::optional<Regressor> slowdown_;
};

// The names of the features that predictors with kernel features are trained with.
std::vector<std::string> slice_feature_names();

// Groups for splits: all slices of one operator shape, whatever the lane, load and threads, and
// shapes that hardly differ (every extent by at most a sixteenth, all else equal), have one group.
std::vector<std::string> shape_groups(std::span<const SliceSample> samples);

}  // namespace tandem::predict
