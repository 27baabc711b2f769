#include "predict/slice_features.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

namespace tandem::predict {
namespace {

using M = const SliceMeasures&;
constexpr FeatureKind kArgument = FeatureKind::kArgument;
constexpr FeatureKind kKernel = FeatureKind::kKernel;

// Only ever add at the end: predictors on disk know the numbers.
constexpr std::array<std::string_view, 48> kImplementations = {"loops_tiled_gemm",
                                                               "loops_batched_gemm",
                                                               "loops_depthwise",
                                                               "loops_pool",
                                                               "loops_reduce",
                                                               "loops_rows",
                                                               "loops_elementwise",
                                                               "loops_copy",
                                                               "loops_resize",
                                                               "onednn_direct",
                                                               "onednn_winograd",
                                                               "xnnpack_conv",
                                                               "cl_conv",
                                                               "cl_conv1x1",
                                                               "cl_linear",
                                                               "cl_conv_transpose",
                                                               "cl_conv_narrow",
                                                               "cl_conv1x1_narrow",
                                                               "cl_linear_narrow",
                                                               "cl_conv_grouped",
                                                               "cl_conv1x1_grouped",
                                                               "cl_conv_items",
                                                               "cl_conv1x1_items",
                                                               "cl_linear_items",
                                                               "cl_conv_transpose_items",
                                                               "cl_winograd_2x2",
                                                               "cl_winograd_4x4",
                                                               "cl_matmul",
                                                               "cl_matmul_items",
                                                               "cl_depthwise",
                                                               "cl_pool_max",
                                                               "cl_pool_average",
                                                               "cl_resize",
                                                               "cl_reduce",
                                                               "cl_softmax",
                                                               "cl_layer_norm",
                                                               "cl_unary",
                                                               "cl_binary",
                                                               "cl_concat",
                                                               "cl_copy",
                                                               "cl_reshape_copy",
                                                               "cl_reshape",
                                                               "cl_gather",
                                                               "cl_pad",
                                                               "cl_conv_4x4_items",
                                                               "cl_conv1x1_4x4_items",
                                                               "cl_linear_4x4_items",
                                                               "cl_conv_transpose_4x4_items"};

// Fragments of oneDNN's names that tell its kernels apart, most telling first. As above.
constexpr std::array<std::string_view, 9> kVariants = {"brgconv_1x1", "brgconv", "jit_1x1",
                                                       "wino_2x3",    "wino",    "jit:avx512",
                                                       "jit:avx2",    "jit",     "gemm"};

constexpr std::array<std::string_view, 16> kKinds = {
    "conv",  "conv_transpose", "linear", "matmul", "pool",    "reduce", "softmax", "layer_norm",
    "unary", "binary",         "concat", "copy",   "reshape", "gather", "pad",     "resize"};

// Functions and variants by what they cost: cheap ones, then those with divisions, then
// transcendental ones. 0: none.
constexpr std::array<std::string_view, 46> kFunctions = {
    "",           "identity", "nearest",      "n",          "nn",   "relu",    "clip",
    "abs",        "neg",      "floor",        "ceil",       "max",  "min",     "add",
    "sub",        "mul",      "sum",          "prod",       "mean", "average", "l2",
    "leaky_relu", "constant", "edge",         "reflect",    "nt",   "tn",      "tt",
    "linear",     "cubic",    "hard_sigmoid", "hard_swish", "sqrt", "div",     "reciprocal",
    "exp",        "log",      "sigmoid",      "tanh",       "silu", "elu",     "gelu",
    "gelu_tanh",  "erf",      "softplus",     "pow"};

template <size_t N>
int position(const std::array<std::string_view, N>& names, std::string_view name) {
  const auto found = std::find(names.begin(), names.end(), name);
  return found == names.end() ? 0 : static_cast<int>(found - names.begin()) + 1;
}

// Of kFunctions, those that take several times as long as an addition begin here; and those that
// take many times as long.
double function_cost(std::string_view name) {
  const int at = position(kFunctions, name);
  if (at >= position(kFunctions, "exp")) return 4;
  return at >= position(kFunctions, "hard_sigmoid") ? 1 : 0;
}

int function_number(std::string_view name) { return position(kFunctions, name); }

// Reads "14x32" at the end of `text`.
bool parse_tile(std::string_view text, ImplementationName* name) {
  const char* end = text.data() + text.size();
  const auto rows = std::from_chars(text.data(), end, name->tile_rows);
  if (rows.ec != std::errc() || rows.ptr == end || *rows.ptr != 'x') return false;
  const auto columns = std::from_chars(rows.ptr + 1, end, name->tile_columns);
  return columns.ec == std::errc() && columns.ptr == end;
}

double number(int64_t value) { return static_cast<double>(value); }
double ceil_div(double a, double b) { return std::ceil(a / std::max(b, 1.0)); }
// 0 where the cache is not known.
double against(double bytes, int64_t cache) { return cache > 0 ? bytes / number(cache) : 0; }
double remainder(double extent, double tile) { return tile > 1 ? std::fmod(extent, tile) : 0; }
double pieces(double bytes, int64_t run) { return bytes / 4 / std::max<double>(1, number(run)); }
// Of rows that are `pitch` apart.
double density(int64_t run, int64_t pitch) {
  return std::min(1.0, number(run) / std::max(1.0, number(pitch)));
}
// The share of `bytes`, gone through again and again, that a cache does not hold: from a quarter of
// it on, which other data leave, to three quarters.
double overflow(double bytes, int64_t cache) {
  return std::clamp(2 * (against(bytes, cache) - 0.25), 0.0, 1.0);
}
// Floats in a cache line, of which packed weights are a multiple.
constexpr double kLine = 16;
// Of a cache, what a producer can fill with its input and output before it loses the first of them.
constexpr double kKept = 0.9;
double divisor(double count) {
  for (int by = 8; by > 1; --by) {
    if (std::fmod(count, by) == 0) return by;
  }
  return 1;
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
double log2_of(double value) { return std::log2(std::max(value, 1.0)); }

std::vector<SliceFeature> argument_features() {
  return {
      {{"kind", "1", "which operator of the family", kArgument},
       [](M m) { return number(position(kKinds, m.c.kind)); }},
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
       [](M m) { return 2 * number(position(kKinds, m.c.kind)) + (m.c.repeated ? 1 : 0); }},
      {{"costly_results", "1", "results that divisions or transcendental functions are computed of",
        kArgument},
       [](M m) {
         return m.c.out_bytes / 4 *
                std::max(function_cost(m.c.activation), function_cost(m.c.variant));
       }},
      {{"load", "1", "what other lanes do: 1 memory, 2 arithmetic", kArgument},
       [](M m) { return number(static_cast<int64_t>(m.c.load)); }},
  };
}

std::vector<SliceFeature> kernel_features() {
  return {
      {{"implementation", "1", "which kernel runs", kKernel},
       [](M m) {
         return number(implementation_number(split_implementation(m.c.implementation).base));
       }},
      {{"regime", "1",
        "implementation, a library's kernel and repeated in one: what lines are fitted apart for",
        kKernel},
       [](M m) {
         constexpr int kMostVariants = 16;
         const int implementation =
             implementation_number(split_implementation(m.c.implementation).base);
         const int variant = variant_number(m.c.library_variant);
         return 2.0 * (kMostVariants * implementation + variant) + (m.c.repeated ? 1 : 0);
       }},
      {{"library_variant", "1", "which of a library's kernels runs", kKernel},
       [](M m) { return number(variant_number(m.c.library_variant)); }},
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
       [](M m) { return std::fmod(number(m.c.in_pitch) / 1024, 1); }},
      {{"line_alias", "1", "the same of lines of an image", kKernel},
       [](M m) { return std::fmod(number(m.c.in_pitch * m.c.in_width) / 1024, 1); }},
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

ImplementationName split_implementation(std::string_view name) {
  ImplementationName result{.base = name};
  const size_t at = name.rfind('_');
  if (at == std::string_view::npos || !parse_tile(name.substr(at + 1), &result)) return {name};
  result.base = name.substr(0, at);
  // Winograd without a size of tiles is a name in itself.
  if (result.base == "cl_winograd") return {.base = name};
  return result;
}

int implementation_number(std::string_view base) { return position(kImplementations, base); }

int variant_number(std::string_view library_variant) {
  if (library_variant.empty()) return 0;
  for (size_t i = 0; i < kVariants.size(); ++i) {
    if (library_variant.find(kVariants[i]) != std::string_view::npos) {
      return static_cast<int>(i) + 1;
    }
  }
  return static_cast<int>(kVariants.size()) + 1;
}

SliceMeasures::SliceMeasures(const SliceCase& slice) : c(slice) {
  rows = number(c.part_batch() * c.part_height() * c.part_width());
  columns = number(c.part_channels());
  depth = c.kind == "pool" ? number(c.kernel_height * c.kernel_width)
                           : number(c.in_channels * c.kernel_height * c.kernel_width / c.groups);
  const bool device = c.lane.kind == "opencl";
  units = number(std::max<int64_t>(1, device ? c.lane.compute_units : c.threads));
  const ImplementationName name = split_implementation(c.implementation);
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
