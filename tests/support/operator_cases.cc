#include "tests/support/operator_cases.h"

#include "tests/support/operator_makers.h"

namespace tandem::testing {

using namespace makers;  // NOLINT: the table is written in them

void add_unary_cases(std::vector<OperatorCase>& t) {
  const Activation functions[] = {
      {Function::kIdentity},
      kRelu,
      kRelu6,
      {Function::kLeakyRelu, 0.01f},
      {Function::kElu, 0.5f},
      {Function::kSigmoid},
      {Function::kHardSigmoid, 0.2f, 0.5f},
      {Function::kTanh},
      {Function::kSilu},
      {Function::kHardSwish},
      {Function::kGelu},
      {Function::kGeluTanh},
      {Function::kSoftplus},
      {Function::kErf},
      {Function::kExp},
      {Function::kLog},
      {Function::kSqrt},
      {Function::kReciprocal},
      {Function::kAbs},
      {Function::kNeg},
      {Function::kFloor},
      {Function::kCeil},
      {Function::kSin},
      {Function::kCos},
  };
  for (const Activation& f : functions) {
    t.push_back(unary(tandem::to_string(f.function), {3, 7, 40}, f));
  }
  t.push_back(unary("relu_nhwc_c24", {2, 24, 5, 7}, kRelu, kImage));
  t.push_back(unary("silu_nhwc_c1000", {1, 1000, 3, 2}, {Function::kSilu}, kImage));
  t.push_back(unary("scalar", {}, {Function::kExp}));
  t.push_back(unary("vector", {100}, {Function::kTanh}));
  t.push_back(unary("dense", {33, 48}, {Function::kSigmoid}, kDense));
  t.push_back(unary("rank5", {2, 3, 2, 3, 18}, kRelu));
}

void add_binary_cases(std::vector<OperatorCase>& t) {
  using Kind = BinaryAttributes::Kind;
  const std::pair<const char*, Kind> kinds[] = {
      {"add", Kind::kAdd}, {"sub", Kind::kSub}, {"mul", Kind::kMul}, {"div", Kind::kDiv},
      {"pow", Kind::kPow}, {"max", Kind::kMax}, {"min", Kind::kMin}};
  for (const auto& [name, kind] : kinds) {
    const std::string stem = name;
    t.push_back(binary(stem, kind, {{3, 5, 40}, kRows}, {{3, 5, 40}, kRows}, kRows));
    t.push_back(
        binary(stem + "_nhwc_c24", kind, {{1, 24, 6, 5}, kImage}, {{1, 24, 6, 5}, kImage}, kImage));
    t.push_back(binary(stem + "_bias", kind, {{4, 9, 24}, kRows}, constant({24}), kRows));
    t.push_back(binary(stem + "_scalar", kind, {{2, 50}, kRows}, constant({}), kRows));
  }
  t.push_back(binary("scalar_first", Kind::kSub, constant({}), {{2, 50}, kRows}, kRows));
  t.push_back(binary("row_by_column", Kind::kMul, {{1, 40}, kRows}, {{7, 1}, kRows}, kRows));
  t.push_back(binary("outer_first", Kind::kSub, {{7, 1}, kRows}, {{1, 40}, kRows}, kRows));
  t.push_back(
      binary("lower_rank_first", Kind::kSub, {{5, 1}, kRows}, {{2, 3, 5, 18}, kRows}, kRows));
  t.push_back(binary("middle", Kind::kAdd, {{2, 6, 1, 24}, kRows}, {{2, 1, 5, 24}, kRows}, kRows));
  t.push_back(binary("squeeze_excite", Kind::kMul, {{1, 72, 6, 5}, kImage}, {{1, 72, 1, 1}, kImage},
                     kImage));
  t.push_back(binary("channel_constant", Kind::kMul, {{2, 24, 6, 5}, kImage}, constant({24, 1, 1}),
                     kImage));
  t.push_back(binary("plane", Kind::kAdd, {{2, 24, 6, 5}, kImage}, {{1, 1, 6, 5}, kImage}, kImage));
  t.push_back(binary("width_vector", Kind::kAdd, {{1, 24, 6, 5}, kImage}, constant({5}), kImage));
  t.push_back(
      binary("mixed_layouts", Kind::kAdd, {{1, 24, 6, 5}, kImage}, {{1, 24, 6, 5}, kRows}, kImage));
  t.push_back(binary("mixed_layouts_to_rows", Kind::kSub, {{2, 18, 4, 5}, kImage},
                     {{2, 18, 4, 5}, kRows}, kRows));
  t.push_back(binary("add_relu", Kind::kAdd, {{1, 64, 7, 7}, kImage}, {{1, 64, 7, 7}, kImage},
                     kImage, kRelu));
  t.push_back(binary("mul_sigmoid", Kind::kMul, {{6, 24}, kRows}, {{6, 24}, kRows}, kRows,
                     {Function::kSigmoid}));
  t.push_back(binary("sub_clip", Kind::kSub, {{6, 24}, kRows}, {{6, 24}, kRows}, kRows,
                     {Function::kClip, -0.5f, 0.25f}));
  t.push_back(binary("scalars", Kind::kAdd, {{}, kRows}, {{}, kRows}, kRows));
}

void add_movement_cases(std::vector<OperatorCase>& t) {
  // Concat.
  t.push_back(
      concat("channels_aligned", 1, {{{1, 32, 6, 5}, kImage}, {{1, 16, 6, 5}, kImage}}, kImage));
  t.push_back(concat("channels_odd", 1,
                     {{{2, 24, 6, 5}, kImage}, {{2, 7, 6, 5}, kImage}, {{2, 18, 6, 5}, kImage}},
                     kImage));
  t.push_back(concat("channels_nchw", 1, {{{1, 24, 6, 5}, kRows}, {{1, 18, 6, 5}, kRows}}, kRows));
  t.push_back(concat("rows_nhwc", 2, {{{1, 24, 3, 5}, kImage}, {{1, 24, 4, 5}, kImage}}, kImage));
  t.push_back(concat("width_nhwc", 3, {{{1, 24, 3, 5}, kImage}, {{1, 24, 3, 2}, kImage}}, kImage));
  t.push_back(concat("tokens", 1, {{{1, 1, 48}, kRows, true}, {{1, 16, 48}, kRows}}, kRows));
  t.push_back(concat("last_axis", 2, {{{3, 4, 10}, kRows}, {{3, 4, 23}, kRows}}, kRows));
  t.push_back(concat("one_part", 0, {{{3, 40}, kRows}}, kRows));
  t.push_back(
      concat("mixed_layouts", 1, {{{1, 16, 6, 5}, kImage}, {{1, 24, 6, 5}, kRows}}, kImage));

  // Copy: layout conversion, transpose, slice, reversed slice, expand, block rearrangement.
  const CopyAttributes same4{{0, 1, 2, 3}, {1, 1, 1, 1}, {0, 0, 0, 0}};
  t.push_back(copy("to_nhwc", {{1, 24, 6, 5}, kRows}, {1, 24, 6, 5}, same4, kImage));
  t.push_back(copy("to_nhwc_c3", {{1, 3, 17, 19}, kDense}, {1, 3, 17, 19}, same4, kImage));
  t.push_back(copy("to_nchw", {{2, 18, 6, 5}, kImage}, {2, 18, 6, 5}, same4, kRows));
  t.push_back(copy("to_dense", {{1, 10, 40}, kRows}, {1, 10, 40}, {{0, 1, 2}, {1, 1, 1}, {0, 0, 0}},
                   kDense));
  t.push_back(copy("transpose2d", {{18, 40}, kRows}, {40, 18}, {{1, 0}, {1, 1}, {0, 0}}, kRows));
  t.push_back(copy("split_heads", {{1, 20, 4, 24}, kRows}, {1, 4, 20, 24},
                   {{0, 2, 1, 3}, {1, 1, 1, 1}, {0, 0, 0, 0}}, kRows));
  t.push_back(copy("transpose_last", {{1, 4, 20, 24}, kRows}, {1, 4, 24, 20},
                   {{0, 1, 3, 2}, {1, 1, 1, 1}, {0, 0, 0, 0}}, kRows));
  t.push_back(copy("slice_channels", {{1, 64, 6, 5}, kImage}, {1, 24, 6, 5},
                   {{0, 1, 2, 3}, {1, 1, 1, 1}, {0, 10, 0, 0}}, kImage));
  t.push_back(copy("slice_steps", {{9, 50}, kRows}, {4, 24}, {{0, 1}, {2, 2}, {1, 1}}, kRows));
  t.push_back(copy("reverse", {{9, 40}, kRows}, {9, 40}, {{0, 1}, {-1, -1}, {8, 39}}, kRows));
  t.push_back(
      copy("expand", {{1, 24}, kRows}, {3, 7, 24}, {{kNone, kNone, 1}, {1, 1, 1}, {0, 0}}, kRows));
  t.push_back(copy("expand_scalar", {{}, kRows}, {5, 40}, {{kNone, kNone}, {1, 1}, {}}, kRows));
  t.push_back(copy("squeeze", {{4, 1, 24}, kRows}, {4, 24}, {{0, 2}, {1, 1}, {0, 0, 0}}, kRows));
  t.push_back(copy("space_to_depth", {{1, 8, 12}, kRows}, {4, 6, 2, 2},
                   {{1, 2, 1, 2}, {2, 2, 1, 1}, {0, 0, 0}}, kRows));
  t.push_back(copy(
      "tile_rank8", {{2, 3, 4, 5}, kRows}, {2, 2, 3, 3, 2, 4, 4, 5},
      {{kNone, 0, kNone, 1, kNone, 2, kNone, 3}, {1, 1, 1, 1, 1, 1, 1, 1}, {0, 0, 0, 0}}, kRows));
  t.push_back(copy("int64_transpose", {{6, 20}, kRows, false, DataType::kInt64, -100, 100}, {20, 6},
                   {{1, 0}, {1, 1}, {0, 0}}, kRows));

  // Reshape, where memory allows no alias and where it does.
  t.push_back(reshape("flatten_nhwc", {{1, 24, 5, 6}, kImage}, {1, 720}, kRows));
  t.push_back(reshape("flatten_nchw", {{2, 24, 5, 6}, kRows}, {2, 720}, kRows));
  t.push_back(reshape("to_image", {{1, 720}, kRows}, {1, 24, 5, 6}, kImage));
  t.push_back(reshape("split_heads", {{1, 20, 96}, kRows}, {1, 20, 4, 24}, kRows));
  t.push_back(reshape("merge_heads", {{1, 20, 4, 24}, kRows}, {1, 20, 96}, kRows));
  t.push_back(reshape("pixels_to_tokens", {{1, 40, 4, 5}, kImage}, {1, 40, 20}, kRows));
  t.push_back(reshape("tiled_rank8", {{2, 2, 3, 3, 2, 4, 4, 5}, kRows}, {4, 9, 8, 20}, kRows));
  t.push_back(reshape("regroup", {{6, 35}, kRows}, {14, 15}, kRows));
  t.push_back(reshape("view", {{1, 48, 64}, kRows}, {48, 64}, kRows));
  t.push_back(reshape("to_dense", {{3, 40}, kRows}, {2, 60}, kDense));
  t.push_back(reshape("from_scalar", {{}, kRows}, {1, 1}, kRows));
  t.push_back(reshape("int64", {{4, 18}, kRows, false, DataType::kInt64, -9, 9}, {72}, kRows));

  // Gather.
  t.push_back(gather("embedding", {{50, 48}, kRows, true}, {2, 9}, 0));
  t.push_back(gather("rows", {{20, 24}, kRows}, {5}, 0));
  t.push_back(gather("scalar_index", {{1, 20, 48}, kRows}, {}, 1));
  t.push_back(gather("last_axis", {{4, 6, 33}, kRows}, {7}, 2));
  t.push_back(gather("matrix_middle", {{3, 11, 18}, kRows}, {2, 3}, 1));
  t.push_back(gather("int64", {{30}, kRows, false, DataType::kInt64, -9, 9}, {4, 5}, 0));

  // Pad.
  using Mode = PadAttributes::Mode;
  for (const auto& [name, mode] : {std::pair{"constant", Mode::kConstant},
                                   {"reflect", Mode::kReflect},
                                   {"edge", Mode::kEdge}}) {
    const std::string stem = name;
    const float value = mode == Mode::kConstant ? 1.5f : 0;
    t.push_back(
        pad(stem + "_nhwc", {1, 24, 6, 5}, {mode, {0, 0, 2, 1}, {0, 0, 1, 3}, value}, kImage));
    t.push_back(
        pad(stem + "_nchw", {2, 5, 6, 7}, {mode, {0, 0, 1, 2}, {0, 0, 3, 4}, value}, kRows));
    t.push_back(pad(stem + "_all_axes", {3, 4, 18}, {mode, {1, 2, 3}, {2, 0, 5}, value}, kRows));
  }
  t.push_back(
      pad("channels", {1, 24, 5, 4}, {Mode::kConstant, {0, 8, 0, 0}, {0, 16, 0, 0}, 0}, kImage));
}

void add_resize_cases(std::vector<OperatorCase>& t) {
  using Mode = ResizeAttributes::Mode;
  using Coordinates = ResizeAttributes::Coordinates;
  using Nearest = ResizeAttributes::Nearest;
  ResizeAttributes a;
  const std::pair<const char*, Coordinates> coordinates[] = {
      {"half_pixel", Coordinates::kHalfPixel},
      {"pytorch_half_pixel", Coordinates::kPytorchHalfPixel},
      {"align_corners", Coordinates::kAlignCorners},
      {"asymmetric", Coordinates::kAsymmetric}};
  const std::pair<const char*, Mode> modes[] = {
      {"nearest", Mode::kNearest}, {"linear", Mode::kLinear}, {"cubic", Mode::kCubic}};
  for (const auto& [mode_name, mode] : modes) {
    for (const auto& [name, c] : coordinates) {
      a = {.mode = mode, .coordinates = c};
      const std::string stem = std::string(mode_name) + "_" + name;
      t.push_back(resize(stem + "_up_c24", {1, 24, 5, 6}, 10, 12, a));
      t.push_back(resize(stem + "_down_c7", {1, 7, 12, 9}, 6, 5, a));
    }
  }
  a = {.mode = Mode::kLinear};
  t.push_back(resize("linear_batch2", {2, 18, 4, 5}, 9, 13, a));
  a = {.coordinates = Coordinates::kAsymmetric, .nearest = Nearest::kFloor};
  t.push_back(resize("nearest_floor_x2", {1, 40, 7, 6}, 14, 12, a));
  a.nearest = Nearest::kCeil;
  t.push_back(resize("nearest_ceil", {1, 16, 5, 5}, 8, 10, a));
  a.nearest = Nearest::kRoundPreferCeil;
  t.push_back(resize("nearest_prefer_ceil", {1, 16, 5, 5}, 10, 8, a));
  a = {.mode = Mode::kCubic, .cubic_a = -0.5f};
  t.push_back(resize("cubic_half", {1, 16, 6, 6}, 11, 14, a));
}

}  // namespace tandem::testing
