// A phone of which few operators are known, predicted with the help of others that are known well.
#pragma once

#include <span>
#include <vector>

#include "predict/phone_evaluation.h"

namespace tandem::predict {

// `predictions`: by device, fold and operator, of predictors that have not seen the fold's
// networks. `known` operators of `phone`, the device of that index, are drawn from the networks
// outside the fold; the operators of those inside are predicted.
StatusOr<TransferErrors> evaluate_transfer(
    const PhoneTable& phone, size_t device, std::span<const int> folds,
    const std::vector<std::vector<std::vector<double>>>& predictions, int known,
    const PhoneEvaluationOptions& options);

}  // namespace tandem::predict
