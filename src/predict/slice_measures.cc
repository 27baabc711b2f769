#include "predict/slice_measures.h"

#include "predict/slice_names.h"

namespace tandem::predict {
namespace {

double pieces(double bytes, int64_t run) { return bytes / 4 / std::max<double>(1, number(run)); }
// Of rows that are `pitch` apart.
double density(int64_t run, int64_t pitch) {
  return std::min(1.0, number(run) / std::max(1.0, number(pitch)));
}
// Cache lines of `count` elements that lie in runs, the rows of which are `pitch` apart.
double lines_of(double count, int64_t run, int64_t pitch) {
  if (pitch < kLine) {
    const double used = std::max<double>(1, number(std::min(run, pitch)));
    return count / kLine * std::max(1.0, number(pitch) / used);
  }
  const double in_run = std::max<double>(1, number(run));
  return count / in_run * std::max(1.0, in_run / kLine);
}

}  // namespace

SliceMeasures::SliceMeasures(const SliceCase& slice)
    : c(slice), kind(kind_number(slice.kind)), variant(variant_number(slice.library_variant)) {
  rows = number(c.part_batch() * c.part_height() * c.part_width());
  columns = number(c.part_channels());
  depth = c.kind == "pool" ? number(c.kernel_height * c.kernel_width)
                           : number(c.in_channels * c.kernel_height * c.kernel_width / c.groups);
  const bool device = c.lane.kind == "opencl";
  units = number(std::max<int64_t>(1, device ? c.lane.compute_units : c.threads));
  const ImplementationName name = split_implementation(c.implementation);
  implementation = implementation_number(name.base);
  tile_rows = number(std::max<int64_t>(1, name.tile_rows > 0 ? name.tile_rows
                                          : device           ? 1
                                                             : c.local_size[1]));
  tile_columns = number(std::max<int64_t>(1, name.tile_columns > 0 ? name.tile_columns
                                             : device              ? 1
                                                                   : c.local_size[0]));
  row_tiles = ceil_div(rows, tile_rows);
  column_tiles = ceil_div(columns, tile_columns);
  groups = std::max(1.0, number(c.work_groups));
  waves = ceil_div(groups, units);
  unit_bytes = (c.in_bytes + c.out_bytes) / units + c.weight_bytes;
  input_pieces = pieces(c.in_bytes, c.in_run);
  output_pieces = pieces(c.out_bytes, c.out_run);
  share = rows * columns / number(c.batch * c.height * c.width * c.channels);
  whole_out_bytes = c.out_bytes / share;
  const bool slides = c.kind == "conv" || c.kind == "pool";
  whole_in_bytes =
      slides ? 4 * number(c.batch * c.in_height * c.in_width * c.in_channels) : c.in_bytes / share;
  in_density = density(c.in_run, c.in_pitch);
  out_density = density(c.out_run, c.out_pitch);
  // Reshapes between images, whose channels lie together, and other tensors.
  const bool reshapes = c.kind == "reshape" && (c.width > 1) != (c.in_width > 1);
  rearranged_bytes = reshapes || c.in_channel_step > 1 ? c.in_bytes + c.out_bytes : 0;
  window_pixels = slides ? rows * number(c.kernel_height * c.kernel_width) : 0;
  measure_weights();
  measure_lines();
  cold_bytes = c.repeated ? std::max(0.0, c.bytes() - number(c.lane.l2_bytes)) : c.bytes();
}

void SliceMeasures::measure_weights() {
  const bool device = c.lane.kind == "opencl";
  if (c.implementation.find("winograd") != std::string::npos) {
    const bool small = c.implementation.find("winograd_2x2") != std::string::npos ||
                       c.library_variant.find("wino_2x3") != std::string::npos;
    winograd_outputs = small ? 2 : 4;
  }
  const double side = std::max(1.0, winograd_outputs);
  const double taps = number(c.kernel_height * c.kernel_width);
  const double points = winograd_outputs > 0 ? (side + 2) * (side + 2) : taps;
  const double in_channels = number(c.in_channels) / number(c.groups);
  const double padded = kLine * ceil_div(columns, kLine);
  patches = number(c.part_batch()) * ceil_div(number(c.part_height()), side) *
            ceil_div(number(c.part_width()), side);
  patch_waste = patches * side * side / std::max(rows, 1.0);
  if (winograd_outputs > 0) {
    transformed = patches * points * (kLine * ceil_div(in_channels, kLine) + padded);
  }
  packed_bytes = c.weight_bytes > 0 ? 4 * points * padded * in_channels : 0;
  weight_passes = device ? number(std::max<int64_t>(1, c.global_size[0])) : 1;
  input_traffic = c.in_bytes * taps / number(c.stride_height * c.stride_width) *
                  (device ? number(std::max<int64_t>(1, c.global_size[1])) : 1);
}

void SliceMeasures::measure_lines() {
  const double results = c.out_bytes / 4;
  const double step = c.kind == "copy" ? std::abs(number(c.in_channel_step)) : 1;
  const double run = step == 1 ? number(std::min(c.in_run, c.out_run)) : 1;
  runs = results / std::max(1.0, run);
  in_lines = step > 1 ? results * std::min(1.0, step / kLine)
                      : lines_of(c.in_bytes / 4, c.in_run, c.in_pitch);
  out_lines = lines_of(results, c.out_run, c.out_pitch);
  // A copy may read a part of its input, whose producer has written all of it.
  const bool from_image = c.in_width > 1;
  const bool same_batch = from_image == (c.width > 1);
  const double image = 4 * number(c.in_height * c.in_width * c.in_pitch);
  const bool knows = c.kind == "copy" || c.kind == "resize" || c.kind == "pool";
  in_footprint = !knows || (!from_image && !same_batch) ? c.in_bytes / share
                 : same_batch                           ? image * number(c.batch)
                                                        : image;
}

}  // namespace tandem::predict
