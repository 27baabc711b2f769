// Random numbers that are the same on every platform, for a given seed.
//
// The standard library's distributions are not: their algorithms are left to the implementation.
// Everything here is integer arithmetic followed by operations that IEEE 754 rounds exactly.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace tandem::zoo {

// SplitMix64 (Steele, Lea and Flood, 2014): a counter run through a mixing function.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}

  uint64_t next() {
    state_ += 0x9e3779b97f4a7c15u;
    uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }

 private:
  uint64_t state_;
};

// The seed of one named tensor of a model. Tensors have streams of their own, so that a change to
// one layer leaves the weights of all others as they were.
uint64_t tensor_seed(uint64_t model_seed, std::string_view tensor_name);

// Appends `count` little-endian floats of about normal distribution N(0, stddev) to `raw`.
void append_normal(uint64_t seed, float stddev, size_t count, std::string* raw);

// The same in `rows` rows of `columns` floats each, every one of which sums to about zero.
void append_centered_normal(uint64_t seed, float stddev, size_t rows, size_t columns,
                            std::string* raw);

// Floats uniform in [low, high).
void fill_uniform(uint64_t seed, float low, float high, std::span<float> values);

// Appends `count` of them, little-endian, to `raw`.
void append_uniform(uint64_t seed, float low, float high, size_t count, std::string* raw);

}  // namespace tandem::zoo
