#include "predict/slice_features.h"

#include <algorithm>
#include <cmath>

#include "predict/slice_names.h"

namespace tandem::predict {
namespace {

using M = const SliceMeasures&;
constexpr FeatureKind kArgument = FeatureKind::kArgument;
constexpr FeatureKind kKernel = FeatureKind::kKernel;

// 0 where the cache is not known.
double against(double bytes, int64_t cache) { return cache > 0 ? bytes / number(cache) : 0; }
// Of whole numbers, for which % is faster than std::fmod().
double remainder(double extent, double tile) {
  return tile > 1 ? number(static_cast<int64_t>(extent) % static_cast<int64_t>(tile)) : 0;
}
double fraction(double value) { return value - std::trunc(value); }
// The share of `bytes`, gone through again and again, that a cache does not hold: from a quarter of
// it on, which other data leave, to three quarters.
double overflow(double bytes, int64_t cache) {
  return std::clamp(2 * (against(bytes, cache) - 0.25), 0.0, 1.0);
}
// Of a cache, what a producer can fill with its input and output before it loses the first of them.
constexpr double kKept = 0.9;
double divisor(double count) {
  for (int by = 8; by > 1; --by) {
    if (remainder(count, by) == 0) return by;
  }
  return 1;
}
double log2_of(double value) { return std::log2(std::max(value, 1.0)); }

std::vector<SliceFeature> argument_features() {
  return {
      {{"kind", "1", "which operator of the family", kArgument},
       [](M m) { return number(m.kind); }},
      {{"variant", "1", "what it computes: functions cost differently", kArgument},
       [](M m) { return number(function_number(m.c.variant)); }},
      {{"activation", "1", "what is computed of each result", kArgument},
       [](M m) { return number(function_number(m.c.activation)); }},
      {{"residual", "1", "another tensor is read and added", kArgument},
       [](M m) { return m.c.has_residual ? 1.0 : 0.0; }},
      {{"operands", "1", "tensors that are read", kArgument},
       [](M m) { return number(m.c.operands); }},
      {{"batch", "1", "of the part: independent problems", kArgument},
       [](M m) { return number(m.c.part_batch()); }},
      {{"height", "elements", "of the part", kArgument},
       [](M m) { return number(m.c.part_height()); }},
      {{"width", "elements", "of the part: how lines fill tiles", kArgument},
       [](M m) { return number(m.c.part_width()); }},
      {{"rows", "1", "pixels or rows of the part: how often weights are used", kArgument},
       [](M m) { return m.rows; }},
      {{"columns", "1", "channels of the part: how often the input is used", kArgument},
       [](M m) { return m.columns; }},
      {{"depth", "1", "products that a result sums: the inner loop", kArgument},
       [](M m) { return m.depth; }},
      {{"in_channels", "1", "of the input", kArgument},
       [](M m) { return number(m.c.in_channels); }},
      {{"kernel_height", "elements", "lines of input that a line of output needs", kArgument},
       [](M m) { return number(m.c.kernel_height); }},
      {{"kernel_width", "elements", "how often an input pixel is read", kArgument},
       [](M m) { return number(m.c.kernel_width); }},
      {{"stride", "elements", "how little of each line read is used", kArgument},
       [](M m) { return number(m.c.stride_height * m.c.stride_width); }},
      {{"dilation", "elements", "how far apart the pixels of a window are", kArgument},
       [](M m) { return number(m.c.dilation_height); }},
      {{"groups", "1", "of channels: how short the inner loop is", kArgument},
       [](M m) { return number(m.c.groups); }},
      {{"reduced", "1", "elements that make one result or one sum", kArgument},
       [](M m) { return number(m.c.reduced); }},
      {{"axis", "1", "along which the part is cut; 0: whole", kArgument},
       [](M m) { return number(static_cast<int64_t>(m.c.axis)); }},
      {{"flops", "FLOP", "arithmetic", kArgument}, [](M m) { return m.c.flops; }},
      {{"in_bytes", "B", "activations that are read", kArgument}, [](M m) { return m.c.in_bytes; }},
      {{"weight_bytes", "B", "weights that are read", kArgument},
       [](M m) { return m.c.weight_bytes; }},
      {{"out_bytes", "B", "results that are written", kArgument},
       [](M m) { return m.c.out_bytes; }},
      {{"bytes", "B", "what memory moves at least", kArgument}, [](M m) { return m.c.bytes(); }},
      {{"intensity", "FLOP/B", "whether arithmetic or memory is the limit", kArgument},
       [](M m) { return m.c.flops / std::max(m.c.bytes(), 1.0); }},
      {{"threads", "1", "the caller's choice of threads", kArgument},
       [](M m) { return number(m.c.threads); }},
      {{"repeated", "1", "1 if the same ran just before, so that its data are in caches",
        kArgument},
       [](M m) { return m.c.repeated ? 1.0 : 0.0; }},
      {{"circumstances", "1", "kind and repeated in one: what lines are fitted apart for",
        kArgument},
       [](M m) { return 2 * number(m.kind) + (m.c.repeated ? 1 : 0); }},
      {{"costly_results", "1", "results that divisions or transcendental functions are computed of",
        kArgument},
       [](M m) {
         return m.c.out_bytes / 4 *
                std::max(function_cost(m.c.activation), function_cost(m.c.variant));
       }},
      {{kLoadFeature, "1", "what other lanes do: 1 memory, 2 arithmetic", kArgument},
       [](M m) { return number(static_cast<int64_t>(m.c.load)); }},
  };
}

std::vector<SliceFeature> kernel_features() {
  return {
      {{"implementation", "1", "which kernel runs", kKernel},
       [](M m) { return number(m.implementation); }},
      {{"regime", "1",
        "implementation, a library's kernel and repeated in one: what lines are fitted apart for",
        kKernel},
       [](M m) {
         constexpr int kMostVariants = 16;
         return 2.0 * (kMostVariants * m.implementation + m.variant) + (m.c.repeated ? 1 : 0);
       }},
      {{"library_variant", "1", "which of a library's kernels runs", kKernel},
       [](M m) { return number(m.variant); }},
      {{"computed_flops", "FLOP", "arithmetic with the padding of tiles", kKernel},
       [](M m) { return m.work(); }},
      {{"unit_flops", "FLOP", "arithmetic of the thread or compute unit that has most", kKernel},
       [](M m) { return m.work() / m.groups * m.waves; }},
      {{"waste", "1", "computed over useful arithmetic: 1 is none; Winograd has less", kKernel},
       [](M m) { return m.waste(); }},
      {{"tile_rows", "1", "results along rows that registers hold: reuse of weights", kKernel},
       [](M m) { return m.tile_rows; }},
      {{"tile_columns", "1", "results along channels that registers hold: reuse of the input",
        kKernel},
       [](M m) { return m.tile_columns; }},
      {{"rows_left", "1", "rows beyond whole tiles", kKernel},
       [](M m) { return remainder(m.rows, m.tile_rows); }},
      {{"columns_left", "1", "channels beyond whole tiles", kKernel},
       [](M m) { return remainder(m.columns, m.tile_columns); }},
      {{"row_tiles", "1", "tiles along rows", kKernel}, [](M m) { return m.row_tiles; }},
      {{"column_tiles", "1", "tiles along channels", kKernel}, [](M m) { return m.column_tiles; }},
      {{"work_groups", "1", "pieces of work that are handed out", kKernel},
       [](M m) { return m.groups; }},
      {{"waves", "1", "rounds of work-groups over compute units or threads", kKernel},
       [](M m) { return m.waves; }},
      {{"imbalance", "1", "all rounds full over the work there is: 1 is even", kKernel},
       [](M m) { return m.waves * m.units / m.groups; }},
      {{"group_flops", "FLOP", "arithmetic of one work-group: against what starting it costs",
        kKernel},
       [](M m) { return m.work() / m.groups; }},
      {{"local_size", "1", "work-items in a work-group", kKernel},
       [](M m) {
         return m.c.lane.kind == "opencl" ? number(std::max<int64_t>(1, m.c.local_size[0]) *
                                                   std::max<int64_t>(1, m.c.local_size[1]) *
                                                   std::max<int64_t>(1, m.c.local_size[2]))
                                          : 0.0;
       }},
      {{"global_size", "1", "work-items of the first kernel", kKernel},
       [](M m) {
         return number(std::max<int64_t>(1, m.c.global_size[0]) *
                       std::max<int64_t>(1, m.c.global_size[1]) *
                       std::max<int64_t>(1, m.c.global_size[2]));
       }},
      {{"dispatches", "1", "kernels enqueued or passes made: each has its fixed cost", kKernel},
       [](M m) { return number(m.c.dispatches); }},
      {{"working_set_l1", "1", "what one thread touches over its first-level cache", kKernel},
       [](M m) { return against(m.unit_bytes, m.c.lane.l1_bytes); }},
      {{"working_set_l2", "1", "what one thread touches over its second-level cache", kKernel},
       [](M m) { return against(m.unit_bytes, m.c.lane.l2_bytes); }},
      {{"working_set_l3", "1", "everything touched over the last-level cache", kKernel},
       [](M m) { return against(m.c.bytes(), m.c.lane.l3_bytes); }},
      {{"weights_l2", "1", "weights over the second-level cache: read again for each tile of rows",
        kKernel},
       [](M m) { return against(m.c.weight_bytes, m.c.lane.l2_bytes); }},
      {{"input_l2", "1", "input over the second-level cache: read again for each set of channels",
        kKernel},
       [](M m) { return against(m.c.in_bytes, m.c.lane.l2_bytes); }},
      {{"panel_l1", "1", "weights of one tile over the first-level cache", kKernel},
       [](M m) { return against(4 * m.depth * m.tile_columns, m.c.lane.l1_bytes); }},
      {{"lines_l1", "1", "lines of input that one line of output needs, over the first-level cache",
        kKernel},
       [](M m) {
         return against(4 * number(m.c.kernel_height * m.c.in_width * m.c.in_pitch),
                        m.c.lane.l1_bytes);
       }},
      {{"overflow_bytes", "B", "what does not fit the second-level cache of a thread", kKernel},
       [](M m) { return std::max(0.0, m.c.bytes() - m.units * number(m.c.lane.l2_bytes)); }},
      {{"cold_bytes", "B", "what comes from beyond the second-level cache", kKernel},
       [](M m) { return m.cold_bytes; }},
      {{"streamed_bytes", "B", "input read once for each set of columns, weights for each of rows",
        kKernel},
       [](M m) {
         return m.c.in_bytes * std::max(1.0, m.column_tiles) +
                m.c.weight_bytes * std::max(1.0, m.row_tiles);
       }},
      {{"input_pieces", "1", "runs of memory that are read", kKernel},
       [](M m) { return m.input_pieces; }},
      {{"output_pieces", "1", "runs of memory that are written: a strided destination", kKernel},
       [](M m) { return m.output_pieces; }},
      {{"input_run", "elements", "length of those runs: how vectors fill", kKernel},
       [](M m) { return number(m.c.in_run); }},
      {{"output_run", "elements", "length of those runs: how vectors fill", kKernel},
       [](M m) { return number(m.c.out_run); }},
      {{"output_gap", "elements", "from one written row to the next, beyond the row", kKernel},
       [](M m) { return number(m.c.out_pitch) - m.columns; }},
      {{"input_alias", "1", "distance of input rows in pages: whole ones compete for cache lines",
        kKernel},
       [](M m) { return fraction(number(m.c.in_pitch) / 1024); }},
      {{"line_alias", "1", "the same of lines of an image", kKernel},
       [](M m) { return fraction(number(m.c.in_pitch * m.c.in_width) / 1024); }},
      {{"transposes", "1", "log2 of the distance from element to element of a transposing copy",
        kKernel},
       [](M m) { return log2_of(std::abs(number(m.c.in_channel_step))); }},
      {{"reduced_step", "elements", "distance of the elements of a sum", kKernel},
       [](M m) { return number(m.c.reduced_step); }},
      {{"units", "1", "compute units or threads that the slice can use", kKernel},
       [](M m) { return m.units; }},
      {{"share", "1", "of the operator: of a small part, neighbours in memory are not its own",
        kKernel},
       [](M m) { return m.share; }},
      {{"span_l2", "1",
        "tensors of the operator, of which it is a part, over the second-level cache", kKernel},
       [](M m) { return against(m.whole_in_bytes + m.whole_out_bytes, m.c.lane.l2_bytes); }},
      {{"in_span_l2", "1", "the input alone: whether its producer left it there", kKernel},
       [](M m) { return against(m.whole_in_bytes, m.c.lane.l2_bytes); }},
      {{"evicted_bytes", "B", "of the input, what its producer cannot have left in half that cache",
        kKernel},
       [](M m) {
         const double beyond = m.whole_in_bytes - number(m.c.lane.l2_bytes) / 2;
         return m.whole_in_bytes > 0 ? std::max(0.0, beyond) * m.c.in_bytes / m.whole_in_bytes : 0;
       }},
      {{"in_density", "1", "how much of the memory passed over is read", kKernel},
       [](M m) { return m.in_density; }},
      {{"out_density", "1", "how much of the memory passed over is written", kKernel},
       [](M m) { return m.out_density; }},
      {{"gap_bytes", "B", "in cold memory between what is written: fetched ahead in vain", kKernel},
       [](M m) {
         return m.c.repeated ? 0.0 : (m.c.in_bytes + m.c.out_bytes) * (1 - m.out_density);
       }},
      {{"rearranged_bytes", "B", "moved one element at a time", kKernel},
       [](M m) { return m.rearranged_bytes; }},
      {{"window_pixels", "1", "turns of the loop over a window", kKernel},
       [](M m) { return m.window_pixels; }},
      {{"window_elements", "1", "elements that windows read", kKernel},
       [](M m) { return m.window_pixels * m.columns; }},
      {{"winograd_outputs", "1", "pixels along a side of Winograd's patches; 0: none", kKernel},
       [](M m) { return m.winograd_outputs; }},
      {{"patches", "1", "of Winograd, else pixels: how often each of the packed weights is used",
        kKernel},
       [](M m) { return m.patches; }},
      {{"patch_waste", "1", "pixels of patches over those that exist", kKernel},
       [](M m) { return m.patch_waste; }},
      {{"transformed", "1", "elements that Winograd transforms, to and from", kKernel},
       [](M m) { return m.transformed; }},
      {{"packed_bytes", "B", "weights as the kernel reads them: transformed and padded", kKernel},
       [](M m) { return m.packed_bytes; }},
      {{"packed_l2", "1", "these over the second-level cache", kKernel},
       [](M m) { return against(m.packed_bytes, m.c.lane.l2_bytes); }},
      {{"packed_l3", "1", "these over the last-level cache", kKernel},
       [](M m) { return against(m.packed_bytes, m.c.lane.l3_bytes); }},
      {{"weight_passes", "1", "times that weights are read from the first to the last", kKernel},
       [](M m) { return m.weight_passes; }},
      {{"weight_traffic_l2", "B", "weights read from beyond the second-level cache, by all passes",
        kKernel},
       [](M m) {
         return m.weight_passes * m.packed_bytes * overflow(m.packed_bytes, m.c.lane.l2_bytes);
       }},
      {{"weight_traffic_l3", "B", "weights read from beyond the last-level cache, by all passes",
        kKernel},
       [](M m) {
         return m.weight_passes * m.packed_bytes * overflow(m.packed_bytes, m.c.lane.l3_bytes);
       }},
      {{"input_traffic", "B", "input gathered by windows, once for each set of channels", kKernel},
       [](M m) { return m.input_traffic; }},
      {{"channel_divisor", "1",
        "greatest divisor, up to 8, of sixteens of channels: libraries cut "
        "them evenly",
        kKernel},
       [](M m) { return divisor(ceil_div(m.columns, kLine)); }},
      {{"depth_divisor", "1", "the same of the input's channels", kKernel},
       [](M m) { return divisor(ceil_div(number(m.c.in_channels), kLine)); }},
      {{"runs", "1", "pieces that a copy moves at once", kKernel}, [](M m) { return m.runs; }},
      {{"in_lines", "1", "cache lines that are read", kKernel}, [](M m) { return m.in_lines; }},
      {{"out_lines", "1", "cache lines that are written", kKernel},
       [](M m) { return m.out_lines; }},
      {{"evicted_lines", "1",
        "of the lines read, what their producer, reading as much, has pushed out of that cache",
        kKernel},
       [](M m) {
         if (m.c.repeated || m.in_footprint <= 0) return 0.0;
         const double kept = kKept * number(m.c.lane.l2_bytes);
         return m.in_lines * std::clamp((2 * m.in_footprint - kept) / m.in_footprint, 0.0, 1.0);
       }},
      {{"vectors", "1", "vectors that hold the results' channels", kKernel},
       [](M m) { return m.rows * ceil_div(m.columns, number(m.c.lane.simd_floats)); }},
      {{"vector_left", "1", "channels beyond whole vectors", kKernel},
       [](M m) { return remainder(m.columns, number(m.c.lane.simd_floats)); }},
  };
}

}  // namespace

const std::vector<SliceFeature>& slice_features() {
  static const std::vector<SliceFeature> features = [] {
    std::vector<SliceFeature> all = argument_features();
    for (SliceFeature& feature : kernel_features()) all.push_back(std::move(feature));
    return all;
  }();
  return features;
}

bool is_argument(const Feature& feature) { return feature.kind == FeatureKind::kArgument; }

Frame slice_frame() {
  static const Frame empty = [] {
    std::vector<Feature> columns;
    for (const SliceFeature& feature : slice_features()) columns.push_back(feature.feature);
    return Frame(std::move(columns));
  }();
  return empty;
}

void append_slice_row(const SliceCase& slice, std::vector<double>* row) {
  const SliceMeasures measures(slice);
  for (const SliceFeature& feature : slice_features()) row->push_back(feature.value(measures));
}

}  // namespace tandem::predict
