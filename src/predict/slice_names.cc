#include "predict/slice_names.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <string>
#include <utility>

namespace tandem::predict {
namespace {

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

// The places of names in a list, from 1 on. Sorted: every question to a predictor looks up several.
template <size_t N>
class Numbers {
 public:
  constexpr explicit Numbers(const std::array<std::string_view, N>& names) {
    for (size_t i = 0; i < N; ++i) sorted_[i] = {names[i], static_cast<int>(i) + 1};
    std::sort(sorted_.begin(), sorted_.end());
  }

  // 0: not among them.
  constexpr int of(std::string_view name) const {
    const auto found = std::lower_bound(
        sorted_.begin(), sorted_.end(), name,
        [](const auto& entry, std::string_view wanted) { return entry.first < wanted; });
    return found == sorted_.end() || found->first != name ? 0 : found->second;
  }

 private:
  std::array<std::pair<std::string_view, int>, N> sorted_{};
};

constexpr Numbers kImplementationNumbers(kImplementations);
constexpr Numbers kKindNumbers(kKinds);
constexpr Numbers kFunctionNumbers(kFunctions);

// Reads "14x32" at the end of `text`.
bool parse_tile(std::string_view text, ImplementationName* name) {
  const char* end = text.data() + text.size();
  const auto rows = std::from_chars(text.data(), end, name->tile_rows);
  if (rows.ec != std::errc() || rows.ptr == end || *rows.ptr != 'x') return false;
  const auto columns = std::from_chars(rows.ptr + 1, end, name->tile_columns);
  return columns.ec == std::errc() && columns.ptr == end;
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

int implementation_number(std::string_view base) { return kImplementationNumbers.of(base); }

int variant_number(std::string_view library_variant) {
  if (library_variant.empty()) return 0;
  for (size_t i = 0; i < kVariants.size(); ++i) {
    if (library_variant.find(kVariants[i]) != std::string_view::npos) {
      return static_cast<int>(i) + 1;
    }
  }
  return static_cast<int>(kVariants.size()) + 1;
}

int kind_number(std::string_view kind) { return kKindNumbers.of(kind); }
int function_number(std::string_view name) { return kFunctionNumbers.of(name); }

double function_cost(std::string_view name) {
  // Of kFunctions, those that take several times as long as an addition begin here; and those that
  // take many times as long.
  constexpr int kSeveral = kFunctionNumbers.of("hard_sigmoid");
  constexpr int kMany = kFunctionNumbers.of("exp");
  const int at = kFunctionNumbers.of(name);
  return at >= kMany ? 4 : at >= kSeveral ? 1 : 0;
}

}  // namespace tandem::predict
