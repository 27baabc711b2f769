// What `tandem train --plots` draws.
#pragma once

#include <memory>
#include <string>

#include "predict/slice_evaluation.h"
#include "profile/training.h"
#include "tandem/platform.h"

namespace tandem::cli {

// predicted_LANE.svg: held-out predictions against measurements, by family. Makes the folder.
Status plot_predictions(const std::string& folder, const TrainingData& data,
                        const predict::SliceEvaluation& evaluation);

// steps_LANE.svg: the time of one linear operator against its output channels, measured now, and as
// predicted by models that have seen no such operator.
Status plot_steps(const std::string& folder, const TrainingData& data,
                  const predict::BoostingOptions& boosting,
                  const std::shared_ptr<Platform>& platform);

}  // namespace tandem::cli
