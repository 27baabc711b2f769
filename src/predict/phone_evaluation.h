// How well predictors of phones do on networks that they have not seen.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "predict/metrics.h"
#include "predict/phone_data.h"
#include "predict/phone_predictor.h"

namespace tandem::predict {

struct PhoneEvaluationOptions {
  int folds = 5;  // of networks: each is held out once
  uint64_t seed = 1;
  BoostingOptions boosting = {};
  std::vector<int> transfer = {50, 500};  // operators that a new phone is known by; 0: none
  int transfer_draws = 3;                 // of those operators
};

// Held-out errors of one operator family, or of a part of one.
struct FamilyErrors {
  std::string family;
  std::string part_of;          // of which family it is a part; empty: none
  ErrorSummary ours;            // with the kernels that the predictor expects
  ErrorSummary true_kernel;     // with those that ran
  ErrorSummary without_kernel;  // from arguments alone
  ErrorSummary flops_only;      // a line through the FLOPs
  ErrorSummary new_shapes;      // ours, for shapes that the training networks do not have
  ErrorSummary repeats;         // what measuring the same again says
};

// Held-out networks from their operators: offset + sum + count, each weighted, fitted to the
// networks trained on.
struct EndToEndErrors {
  ErrorSummary ours;
  ErrorSummary plain_sum;      // of predictions, without offset and weights
  ErrorSummary from_measured;  // the same line through measured operators: what is left to gain
};

// A phone known by few operators, with the models of the others; held-out networks are new to all.
struct TransferErrors {
  ErrorSummary all;
  ErrorSummary convolutions;
  ErrorSummary alone_all;  // the same operators without the other phones
  ErrorSummary alone_convolutions;
};

struct PhoneReport {
  std::string phone;
  double kernel_accuracy = 0;  // share of held-out operators whose kernel was expected
  std::vector<FamilyErrors> families;
  std::optional<EndToEndErrors> end_to_end;
  std::map<int, TransferErrors> transfer;  // by operators known
};

// `on_step` is called phones * folds times. `end_to_end` may be null.
StatusOr<std::vector<PhoneReport>> evaluate_phones(const PhoneSchema& schema, const PhoneData& data,
                                                   const EndToEnd* end_to_end,
                                                   const PhoneEvaluationOptions& options,
                                                   const std::function<void()>& on_step);

}  // namespace tandem::predict
