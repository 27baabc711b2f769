#include "zoo/random.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <vector>

#include "support/hash.h"

namespace tandem::zoo {
namespace {

// ONNX's raw_data is little-endian; so are all machines that Tandem runs on.
static_assert(std::endian::native == std::endian::little);

// The sum of four uniform 16-bit integers, minus its mean. It is bell-shaped (bounded at 3.5
// sigma), takes one draw and needs no logarithm, whose last bit differs between math libraries.
int32_t draw_bell(Random* random) {
  const uint64_t bits = random->next();
  const auto part = [bits](int shift) { return static_cast<int32_t>((bits >> shift) & 0xffff); };
  return part(0) + part(16) + part(32) + part(48) - 2 * 65535;
}

// What brings draw_bell(), of variance 4 * (65536^2 - 1) / 12, to `stddev`. The integers are exact
// as floats, hence the product with the scale is the only rounding.
float bell_scale(float stddev) { return stddev / std::sqrt((65536.0f * 65536.0f - 1.0f) / 3.0f); }

float draw_uniform(Random* random, float low, float high) {
  const float unit = static_cast<float>(random->next() >> 40) * 0x1p-24f;
  // An explicit fma: compilers may or may not contract a product and a sum by themselves.
  return std::fma(unit, high - low, low);
}

// Fills `raw` through a block that stays in the L1 cache.
template <typename Draw>
void append_floats(size_t count, std::string* raw, Draw draw) {
  std::array<float, 2048> block;
  size_t end = raw->size();
  raw->resize(end + count * sizeof(float));
  while (count > 0) {
    const size_t n = std::min(count, block.size());
    for (size_t i = 0; i < n; ++i) block[i] = draw();
    std::memcpy(raw->data() + end, block.data(), n * sizeof(float));
    end += n * sizeof(float);
    count -= n;
  }
}

}  // namespace

uint64_t tensor_seed(uint64_t model_seed, std::string_view tensor_name) {
  return Random(Random(model_seed).next() ^ hash_of(tensor_name)).next();
}

void append_normal(uint64_t seed, float stddev, size_t count, std::string* raw) {
  const float scale = bell_scale(stddev);
  Random random(seed);
  append_floats(count, raw, [&] { return static_cast<float>(draw_bell(&random)) * scale; });
}

void append_centered_normal(uint64_t seed, float stddev, size_t rows, size_t columns,
                            std::string* raw) {
  const float scale = bell_scale(stddev);
  Random random(seed);
  std::vector<int32_t> row(columns);
  for (size_t i = 0; i < rows; ++i) {
    int64_t sum = 0;
    for (int32_t& value : row) sum += value = draw_bell(&random);
    const auto mean = static_cast<int32_t>(sum / static_cast<int64_t>(columns));
    const int32_t* next = row.data();
    append_floats(columns, raw, [&] { return static_cast<float>(*next++ - mean) * scale; });
  }
}

void fill_uniform(uint64_t seed, float low, float high, std::span<float> values) {
  Random random(seed);
  for (float& value : values) value = draw_uniform(&random, low, high);
}

void append_uniform(uint64_t seed, float low, float high, size_t count, std::string* raw) {
  Random random(seed);
  append_floats(count, raw, [&] { return draw_uniform(&random, low, high); });
}

}  // namespace tandem::zoo
