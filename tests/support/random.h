// Seeded numbers for tests.
#pragma once

#include <cstdint>
#include <initializer_list>

#include "support/random_numbers.h"

namespace tandem::testing {

class Random : public RandomNumbers {
 public:
  using RandomNumbers::RandomNumbers;

  template <typename T>
  T pick(std::initializer_list<T> choices) {
    return *(choices.begin() + integer(0, static_cast<int64_t>(choices.size()) - 1));
  }
};

}  // namespace tandem::testing
