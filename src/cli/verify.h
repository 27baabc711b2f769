// Checks a run operator by operator against the reference interpreter.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tandem/model.h"
#include "tandem/session.h"
#include "tandem/status.h"

namespace tandem::cli {

struct Divergence {
  std::string op;
  std::string kind;
  std::string lanes;     // where it ran: "cpu[c 0:32] gpu[c 32:64]"
  double error = 0;      // greatest absolute difference
  double tolerance = 0;  // what is allowed
  int64_t element = 0;   // where, row-major
  double value = 0;
  double expected = 0;
};

struct Verification {
  int checked = 0;
  double worst_error = 0;  // relative to the greatest element of the operator's output
  std::string worst_op;
  std::optional<Divergence> first;  // empty: everything agrees
};

// How far an element may be from the double-precision result, relative to the greatest element of
// the tensor: float rounding in sums of thousands of terms, and in Winograd's transforms.
inline constexpr double kVerifyTolerance = 1e-4;

// Compares every operator's output with the reference applied to the operator's inputs as the run
// left them, so that an error shows where it arises and not in everything behind. `session` must
// have been created with keep_all and have run with `inputs`.
StatusOr<Verification> verify(const Model& model, const Session& session,
                              const std::vector<HostTensor>& inputs,
                              const std::vector<std::string>& lane_names);

}  // namespace tandem::cli
