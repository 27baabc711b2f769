// What follows from a slice on a lane, and what its features are made of.
#pragma once

#include <algorithm>
#include <cmath>

#include "predict/slice_case.h"

namespace tandem::predict {

// Floats in a cache line, of which packed weights are a multiple.
inline constexpr double kLine = 16;

inline double number(int64_t value) { return static_cast<double>(value); }
inline double ceil_div(double a, double b) { return std::ceil(a / std::max(b, 1.0)); }

// What features are computed from. Rows are pixels or rows of the output; columns its channels.
struct SliceMeasures {
  explicit SliceMeasures(const SliceCase& slice);

  const SliceCase& c;
  int kind = 0;            // kind_number()
  int implementation = 0;  // implementation_number()
  int variant = 0;         // variant_number()
  double rows = 0;         // of the part
  double columns = 0;      // of the part
  double depth = 0;        // products that a result sums
  double units = 1;        // that compute at once: threads, or compute units
  double tile_rows = 1;
  double tile_columns = 1;
  double row_tiles = 0;
  double column_tiles = 0;
  double groups = 1;        // work-groups or tiles
  double waves = 1;         // rounds of `groups` over `units`
  double unit_bytes = 0;    // what one unit touches: its share of input and output, all weights
  double input_pieces = 0;  // runs of memory that the part reads
  double output_pieces = 0;
  double cold_bytes = 0;        // that come from beyond the second-level cache
  double share = 1;             // of the operator's output that the part is
  double whole_in_bytes = 0;    // of the operator
  double whole_out_bytes = 0;   // likewise
  double in_density = 1;        // of the memory that is passed over, what is read
  double out_density = 1;       // likewise, what is written
  double rearranged_bytes = 0;  // by copies, where neighbours do not stay neighbours
  double window_pixels = 0;     // reads of input pixels, by all windows of the part
  double winograd_outputs = 0;  // pixels along a side of its patches; 0: another algorithm
  double patches = 0;           // that use each packed weight once; pixels, but for Winograd
  double patch_waste = 1;       // pixels of patches over those of the part
  double transformed = 0;       // elements
  double packed_bytes = 0;      // weights as kernels read them
  double weight_passes = 1;     // over all of these
  double input_traffic = 0;     // bytes that windows gather, for all sets of channels
  double runs = 0;              // that a copy moves at once
  double in_lines = 0;          // cache lines
  double out_lines = 0;         // likewise
  double in_footprint = 0;      // bytes that the producer of the input has written

  double waste() const { return c.flops > 0 ? c.computed_flops / c.flops : 1; }
  double work() const { return c.computed_flops > 0 ? c.computed_flops : c.flops; }

 private:
  void measure_weights();
  void measure_lines();
};

}  // namespace tandem::predict
