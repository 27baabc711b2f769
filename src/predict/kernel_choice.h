// Which kernel a GPU's library will take: known only afterwards, and needed before.
#pragma once

#include <map>
#include <span>
#include <vector>

#include "predict/boosting.h"
#include "predict/frame.h"

namespace tandem::predict {

// Learns the choice from what is known before: one ensemble for each kernel that was seen, the most
// likely wins.
class KernelChoice {
 public:
  // kernels: one a row of `known`, as any numbers.
  static StatusOr<KernelChoice> fit(const Frame& known, std::span<const int> kernels);

  // One a row; always one that was seen.
  std::vector<int> predict(const Frame& known) const;

 private:
  std::map<int, TreeEnsemble> log_odds_;
};

}  // namespace tandem::predict
