// Slices of a lane whose times are known.
#pragma once

#include <cmath>
#include <vector>

#include "predict/slice_predictor.h"
#include "tests/support/random.h"

namespace tandem::predict {

// A lane with a law of its own: 3 us, then tiles of 14 rows and 32 columns at 20 GFLOPS, weights
// at 10 GB/s, twice as fast with two threads.
inline double law_us(const SliceCase& c) {
  const double rows = static_cast<double>(c.part_batch() * c.part_height() * c.part_width());
  const double columns = static_cast<double>(c.part_channels());
  const double tiles = std::ceil(rows / 14) * std::ceil(columns / 32);
  const double waves = std::ceil(tiles / static_cast<double>(c.threads));
  return 3 + waves * 14 * 32 * 2 * static_cast<double>(c.in_channels) / 20e3 +
         c.weight_bytes / 10e3;
}

inline SliceCase product(int64_t rows, int64_t depth, int64_t columns) {
  SliceCase c;
  c.family = SliceFamily::kLinear;
  c.kind = "linear";
  c.activation = "identity";
  c.height = c.in_height = rows;
  c.in_channels = depth;
  c.channels = columns;
  c.lane = {.name = "gpu", .kind = "opencl", .compute_units = 1, .l2_bytes = 1 << 20};
  return c;
}

// What the lane says, and what follows from the shape.
inline void finish(SliceCase* c) {
  const auto rows = static_cast<double>(c->part_height());
  const auto columns = static_cast<double>(c->part_channels());
  const auto depth = static_cast<double>(c->in_channels);
  c->flops = 2 * rows * columns * depth;
  c->in_bytes = 4 * rows * depth;
  c->out_bytes = 4 * rows * columns;
  c->weight_bytes = 4 * depth * columns;
  c->implementation = "cl_linear_14x32";
  c->work_groups = static_cast<int64_t>(std::ceil(rows / 14) * std::ceil(columns / 32));
  c->computed_flops = static_cast<double>(c->work_groups) * 14 * 32 * 2 * depth;
}

inline std::vector<SliceSample> make_samples(int shapes, double noise = 0) {
  testing::Random random(7);
  std::vector<SliceSample> samples;
  for (int i = 0; i < shapes; ++i) {
    SliceCase c =
        product(random.integer(1, 400), 16 * random.integer(1, 60), 16 * random.integer(1, 60));
    for (int part = 0; part < 4; ++part) {
      SliceCase cut = c;
      if (part > 0 && c.channels >= 64) {
        cut.axis = CutAxis::kChannels;
        cut.cut_extent = c.channels;
        cut.cut_end = c.channels / 64 * 16 * part;
      }
      finish(&cut);
      const double us = law_us(cut) * (1 + random.real(-noise, noise));
      samples.push_back({cut, us, us * 0.98, us * 1.02, 0, "net"});
    }
  }
  return samples;
}

}  // namespace tandem::predict
