// The features of operators on phones' GPUs: every one with its unit, and what of the time it
// explains.
//
// Kernel features say what TensorFlow Lite's GPU delegate does, as far as its sources are public:
// channels travel in slices of four; a work-item computes a block of pixels and slices; how large a
// block is depends on the GPU's maker and on how much work there is.
#pragma once

#include <vector>

#include "predict/frame.h"
#include "predict/phone_data.h"

namespace tandem::predict {

// What features are computed from.
struct PhoneFacts {
  PhoneFacts(const PhoneOperator& op, const PhoneDevice& device, double bytes_per_element,
             KernelKind kernel, Fused fused);

  const PhoneOperator& op;
  KernelKind kernel;
  Fused fused;

  double flops = 0;  // a multiplication and an addition are two
  double input_bytes = 0;
  double output_bytes = 0;
  double weight_bytes = 0;
  double bytes() const { return input_bytes + output_bytes + weight_bytes; }

  double input_slices = 0;   // of four channels, of one group
  double output_slices = 0;  // of four channels
  double tiles = 0;          // of Winograd
  // The library recommends another kernel than the operator's usual one.
  bool recommends_winograd = false;
  bool recommends_mean = false;
  // The image that work-items cover: of Winograd, 36 products of all its tiles.
  double grid_width = 0;
  double grid_height = 0;
  double block_width = 1;  // pixels and slices of one work-item
  double block_height = 1;
  double block_slices = 1;
  double items_x = 0;  // work-items along width, height and slices
  double items_y = 0;
  double items_z = 0;
  double group_width = 1;  // work-items of one work-group
  double group_height = 1;
  double group_depth = 1;
  double groups = 0;  // work-groups
  double steps = 0;   // weights' positions times input slices: the inner loop of an item
  double items() const { return items_x * items_y * items_z; }
  double waves = 0;  // of 64 work-items, one after another on each compute unit
  double item_work() const { return steps * block_width * block_height * block_slices; }
  double group_items() const { return group_width * group_height * group_depth; }
  double rounds = 0;  // work-groups, one after another on each compute unit

 private:
  void set_recommendation(GpuMaker maker);
  void set_block(GpuMaker maker, double compute_units);
  void set_group(GpuMaker maker);
};

// The one feature of kernels that does not depend on which kernel runs.
inline constexpr const char* kRecommendation = "recommendation";

struct PhoneFeature {
  Feature feature;
  double (*value)(const PhoneFacts&);
};

inline const std::vector<PhoneFeature>& phone_features() {
  using F = const PhoneFacts&;
  constexpr FeatureKind kArgument = FeatureKind::kArgument;
  constexpr FeatureKind kKernel = FeatureKind::kKernel;
  constexpr FeatureKind kTiling = FeatureKind::kTiling;
  static const std::vector<PhoneFeature> features = {
      // First: where several features explain a choice equally well, the first is taken.
      {{kRecommendation, "1", "the kernel that the library's public rules say; 0 is the usual one",
        kKernel},
       [](F f) { return f.recommends_winograd ? 1.0
                        : f.recommends_mean   ? 2.0
                                              : 0.0; }},
      {{"operator", "1", "the operator's name, as a number: those of a family differ", kArgument},
       [](F f) { return static_cast<double>(f.op.code); }},
      {{"input_size", "pixels", "edge of the input: rows to read, padding included", kArgument},
       [](F f) { return f.op.input_size; }},
      {{"output_size", "pixels", "edge of the output: how it fills blocks and groups", kArgument},
       [](F f) { return f.op.output_size; }},
      {{"input_channels", "1", "length of the inner loop", kArgument},
       [](F f) { return f.op.input_channels; }},
      {{"output_channels", "1", "how often the input is read again", kArgument},
       [](F f) { return f.op.output_channels; }},
      {{"kernel_size", "pixels", "edge of the window; of concatenations, inputs", kArgument},
       [](F f) { return f.op.kernel_size; }},
      {{"window_share", "1", "1 where the window is the image: a reduction of all of it",
        kArgument},
       [](F f) { return f.op.kernel_size / f.op.input_size; }},
      {{"stride", "pixels", "how little of each line read is used", kArgument},
       [](F f) { return f.op.stride; }},
      {{"groups", "1", "how short a group's inner loop is", kArgument},
       [](F f) { return f.op.groups; }},
      {{"flops", "FLOP", "arithmetic, without what padding adds", kArgument},
       [](F f) { return f.flops; }},
      {{"input_bytes", "B", "against caches: whether the input stays there", kArgument},
       [](F f) { return f.input_bytes; }},
      {{"output_bytes", "B", "what is written", kArgument}, [](F f) { return f.output_bytes; }},
      {{"weight_bytes", "B", "against caches: read by every work-group", kArgument},
       [](F f) { return f.weight_bytes; }},
      {{"bytes", "B", "what memory moves at least", kArgument}, [](F f) { return f.bytes(); }},
      {{"intensity", "FLOP/B", "whether arithmetic or memory is the limit", kArgument},
       [](F f) { return f.flops / f.bytes(); }},
      {{"follows_depthwise", "1", "1 if it may run in one kernel with the row before", kArgument},
       [](F f) { return f.op.follows_depthwise ? 1.0 : 0.0; }},
      {{"feeds_pointwise", "1", "1 if it may run in one kernel with the row after", kArgument},
       [](F f) { return f.op.feeds_pointwise ? 1.0 : 0.0; }},

      {{"kernel", "1", "which kernel runs, as a number", kKernel},
       [](F f) { return static_cast<double>(f.kernel); }},
      {{"input_slices", "1", "trips of the inner loop", kKernel},
       [](F f) { return f.input_slices; }},
      {{"output_slices", "1", "results of four channels", kKernel},
       [](F f) { return f.output_slices; }},
      {{"input_slices_mod_4", "1", "loops unrolled by two or four have a rest", kKernel},
       [](F f) { return static_cast<double>(static_cast<int64_t>(f.input_slices) % 4); }},
      {{"output_slices_mod_4", "1", "blocks of slices have a rest", kKernel},
       [](F f) { return static_cast<double>(static_cast<int64_t>(f.output_slices) % 4); }},
      {{"ragged", "1", "channels that end within a slice are moved one by one", kKernel},
       [](F f) {
         return static_cast<double>(static_cast<int64_t>(f.op.input_channels) % 4 != 0) +
                2 * static_cast<double>(static_cast<int64_t>(f.op.output_channels) % 4 != 0);
       }},
      {{"channel_padding", "1", "work on channels that are not there: 1 is none", kKernel},
       [](F f) {
         return f.input_slices * f.op.groups * f.output_slices * 16 /
                (f.op.input_channels * f.op.output_channels);
       }},
      {{"block_width", "pixels", "reuse of weights in a work-item", kTiling},
       [](F f) { return f.block_width; }},
      {{"block_height", "pixels", "reuse of weights in a work-item", kTiling},
       [](F f) { return f.block_height; }},
      {{"block_slices", "1", "reuse of inputs in a work-item", kTiling},
       [](F f) { return f.block_slices; }},
      {{"block_waste", "1", "results computed over results kept: 1 is none", kTiling},
       [](F f) {
         return f.items() * f.block_width * f.block_height * f.block_slices /
                (f.grid_width * f.grid_height * f.output_slices);
       }},
      {{"items_x", "1", "how work-groups fill the width", kTiling}, [](F f) { return f.items_x; }},
      {{"items_z", "1", "how work-groups fill the slices", kTiling}, [](F f) { return f.items_z; }},
      {{"items", "1", "parallel work that there is", kTiling}, [](F f) { return f.items(); }},
      {{"waves", "1", "rounds of the compute units; a last one that is not full costs as much",
        kTiling},
       [](F f) { return f.waves; }},
      {{"group_depth", "1", "shape of the work-group: its depth divides the slices", kTiling},
       [](F f) { return f.group_depth; }},
      {{"group_width", "1", "shape of the work-group", kTiling}, [](F f) { return f.group_width; }},
      {{"group_items", "1", "work-items of the work-group: few leave lanes idle", kTiling},
       [](F f) { return f.group_items(); }},
      {{"groups_count", "1", "work-groups", kTiling}, [](F f) { return f.groups; }},
      {{"group_fill", "1", "work-items that exist over those that groups cover", kTiling},
       [](F f) { return f.items() / (f.groups * f.group_items()); }},
      {{"rounds", "1", "work-groups one after another on each compute unit", kTiling},
       [](F f) { return f.rounds; }},
      {{"steps", "1", "trips of a work-item's inner loop", kTiling}, [](F f) { return f.steps; }},
      {{"item_work", "1", "products of slices in a work-item: the least time of a wave", kTiling},
       [](F f) { return f.item_work(); }},
      {{"work", "1", "products of slices, with all waste", kTiling},
       [](F f) { return f.items() * f.item_work(); }},
      {{"round_work", "1", "products of slices, with the waste of rounds that are not full",
        kTiling},
       [](F f) { return f.rounds * f.group_items() * f.item_work(); }},
      {{"tiles", "1", "of Winograd, if it were used", kKernel}, [](F f) { return f.tiles; }},
      {{"fused_adds", "1", "operators in the same kernel that read a second tensor", kKernel},
       [](F f) { return static_cast<double>(f.fused.adds); }},
      {{"fused_gates", "1", "activations in the same kernel", kKernel},
       [](F f) { return static_cast<double>(f.fused.gates); }},
  };
  return features;
}

// An empty frame of all of them.
Frame phone_frame();
// One row for it.
std::vector<double> phone_row(const PhoneFacts& facts);

}  // namespace tandem::predict
