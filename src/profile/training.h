// From stored measurements to predictors.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "predict/predictor_file.h"
#include "predict/slice_evaluation.h"
#include "profile/store.h"

namespace tandem {

// Measurements to learn from, and what is known of them together.
struct TrainingData {
  predict::Fingerprints made_for;
  std::vector<predict::SliceSample> samples;
  // By sample: the seconds of measuring after which it was there, about, in the order in which rows
  // were measured first. Pauses between runs of `tandem profile` do not count.
  std::vector<double> after_seconds;
  double seconds = 0;      // of measuring, in all
  size_t disturbed = 0;    // rows left out, since the machine was disturbed
  size_t implausible = 0;  // rows left out, since no core is as fast as they say
  double memory_gbps = 0;  // median of the probes beside the measurements

  bool has_network(size_t sample, const std::string& network) const;
  std::vector<std::string> networks() const;  // sorted
};

// kFailedPrecondition for an empty store: says to profile.
StatusOr<TrainingData> read_training_data(const MeasurementStore& store);

// Fits every lane to the samples for which `use` is true. `on_step` is called once a lane.
StatusOr<predict::PredictorFile> train_predictors(const TrainingData& data,
                                                  const std::vector<std::string>& groups,
                                                  const std::vector<bool>& use,
                                                  const predict::BoostingOptions& boosting,
                                                  const std::function<void()>& on_step);

// How a network that was not seen in training is predicted on one lane, as a whole: all its
// operators, one after another.
struct NetworkErrors {
  std::string network;
  std::string lane;
  size_t operators = 0;               // that are launched
  size_t measured = 0;                // of them, those in the store
  predict::ErrorSummary errors = {};  // of distinct ones, each as often as the network has it
  double predicted_us = 0;            // sum over those in the store
  double measured_us = 0;             // likewise
  double predicted_whole_us = 0;      // sum over all; 0: lanes were not asked
  double run_us = 0;                  // of a run of the network on that lane alone; 0: not measured
};

// Operators of a network: how often it has each shape (predict::shape_key()).
std::map<std::string, int> operator_counts(const Graph& graph);

// Samples of shapes that the network does not have, nor hardly different ones.
std::vector<bool> without_network(const TrainingData& data, const std::vector<std::string>& groups,
                                  const std::string& network);

// `predictors`: trained without the network.
StatusOr<std::vector<NetworkErrors>> network_errors(const TrainingData& data,
                                                    const std::string& network,
                                                    const std::map<std::string, int>& counts,
                                                    const predict::PredictorFile& predictors);

}  // namespace tandem
