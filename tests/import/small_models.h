// Models that several tests start from.
#pragma once

#include "tests/import/model_builder.h"

namespace tandem::testing {

// y = relu(x).
inline ModelBuilder relu(const Dims& dims) {
  ModelBuilder model;
  model.input("x", dims);
  model.node("Relu", {"x"}, {"y"});
  model.output("y");
  return model;
}

}  // namespace tandem::testing
