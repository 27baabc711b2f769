// oneDNN and XNNPACK called directly, for comparison: each with the data layout that it likes best,
// as if no other operator and no other lane existed.
#pragma once

#include <memory>
#include <string>

#include "cli/shapes.h"
#include "tandem/status.h"

namespace tandem::cli {

class Baseline {
 public:
  virtual ~Baseline() = default;
  virtual Status run() = 0;
  // What the library chose: "jit:avx512_core".
  virtual std::string detail() const = 0;
};

// Both run on the calling thread and, if `threads` > 1, on others that inherit its mask. Make and
// use them on one thread. kUnsupported where the library has no such operator.
StatusOr<std::unique_ptr<Baseline>> make_onednn_baseline(const OperatorShape& shape, int threads);
StatusOr<std::unique_ptr<Baseline>> make_xnnpack_baseline(const OperatorShape& shape, int threads);

}  // namespace tandem::cli
