// Single layers on the models of phones, divided between CPU and GPU by output channels: by the
// best cut that there is, and by cuts that predictors choose.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/shapes.h"
#include "lane/sim/platform_model.h"
#include "predict/slice_predictor.h"

namespace tandem::cli {

// A platform, its lanes being "cpu" (0) with the cores that one, two, three threads run on, and
// "gpu" (1).
struct PaperPlatform {
  sim::PlatformModel model;
  std::string cores;  // "prime:1+big:2", in the order of threads
};

struct LayerStudyOptions {
  int samples = 400;  // layers per family that predictors learn from, each in several slices
  int layers = 0;     // per family that are divided; 0: all of the sets
  int max_threads = 3;
  uint64_t seed = 1;
};

// Results as JSON: "layers", "predictor_errors" and "other_precisions"; docs/papers.md says what
// the numbers are. Predictors learn from times of lanes on a simulated clock, with noise, of drawn
// layers; none of them is one of bench/shapes/set_*.csv, which are then divided.
StatusOr<nlohmann::json> study_layers(const std::vector<PaperPlatform>& platforms,
                                      const LayerStudyOptions& options);

// A layer that is drawn, of kConv or kLinear, with at most a few million weights.
OperatorShape draw_layer(Family family, uint64_t seed);

}  // namespace tandem::cli
