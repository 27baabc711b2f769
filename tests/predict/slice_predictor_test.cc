#include "predict/slice_predictor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "predict/slice_evaluation.h"
#include "predict/slice_names.h"
#include "tests/predict/slice_samples.h"
#include "tests/support/random.h"

namespace tandem::predict {
namespace {

using ::testing::HasSubstr;

TEST(SlicePredictor, KernelFeaturesTellWhatArgumentsCannot) {
  const std::vector<SliceSample> samples = make_samples(250);
  int steps = 0;
  const StatusOr<SliceEvaluation> result =
      evaluate_slices(samples, {.folds = 4}, [&steps] { ++steps; });
  ASSERT_TRUE(result.ok()) << result.status().to_string();
  EXPECT_EQ(steps, 4);
  ASSERT_EQ(result->families.size(), 1u);
  const SliceErrors& errors = result->families[0];
  EXPECT_EQ(errors.lane, "gpu");
  EXPECT_EQ(errors.rows, samples.size());
  EXPECT_TRUE(errors.own_model);
  EXPECT_LT(errors.ours.mape, 0.03);
  EXPECT_GT(errors.without_kernel.mape, 2 * errors.ours.mape);
  EXPECT_GT(errors.flops_only.mape, errors.without_kernel.mape);
  EXPECT_NEAR(errors.noise.quartiles, 0.02, 1e-9);
  EXPECT_TRUE(errors.meets_target());
}

// Held-out shapes are the same whatever is learned from.
TEST(SlicePredictor, FewerSamplesToLearnFromPredictWorse) {
  const std::vector<SliceSample> samples = make_samples(120);
  SliceEvaluationOptions options{.folds = 4, .only_ours = true};
  std::vector<double> errors;
  for (const size_t known : {samples.size(), samples.size() / 10, size_t{0}}) {
    options.learn.assign(samples.size(), false);
    std::fill_n(options.learn.begin(), known, true);
    const StatusOr<SliceEvaluation> result = evaluate_slices(samples, options, [] {});
    ASSERT_TRUE(result.ok()) << result.status().to_string();
    EXPECT_EQ(result->families[0].rows, samples.size());
    EXPECT_EQ(result->families[0].flops_only.count, 0u);
    const ErrorSummary all = overall_errors(samples, result->predictions.ours, "gpu");
    EXPECT_EQ(all.count, known == 0 ? 0 : samples.size());
    EXPECT_EQ(all.mape, result->families[0].ours.mape);
    errors.push_back(all.mape);
  }
  EXPECT_LT(errors[0], errors[1]);
}

TEST(SlicePredictor, NearShapesAreNeverOnBothSides) {
  std::vector<SliceSample> samples = make_samples(60);
  // The same again, a little larger, and on another lane.
  for (size_t i = 0; i < 4; ++i) {
    SliceSample near = samples[i];
    near.slice.height = near.slice.in_height = near.slice.height + near.slice.height / 20;
    near.slice.lane.name = "cpu";
    samples.push_back(near);
  }
  const std::vector<std::string> groups = shape_groups(samples);
  for (size_t i = 0; i < 4; ++i) EXPECT_EQ(groups[i], groups[groups.size() - 4 + i]);
  const std::set<std::string> distinct(groups.begin(), groups.end());
  EXPECT_GT(distinct.size(), 40u);
}

TEST(SlicePredictor, FamiliesWithFewRowsUseTheLanesModel) {
  std::vector<SliceSample> samples = make_samples(100);
  for (size_t i = 0; i < 10; ++i) samples[i].slice.family = SliceFamily::kConv1x1;
  std::vector<const SliceSample*> rows;
  for (const SliceSample& sample : samples) rows.push_back(&sample);
  const StatusOr<SlicePredictor> predictor = SlicePredictor::fit(rows, shape_groups(samples), {});
  ASSERT_TRUE(predictor.ok()) << predictor.status().to_string();
  EXPECT_TRUE(predictor->has_own_model(SliceFamily::kLinear));
  EXPECT_FALSE(predictor->has_own_model(SliceFamily::kConv1x1));
  const std::vector<const SliceCase*> asked = {&samples[0].slice};
  const StatusOr<std::vector<double>> us = predictor->predict(asked);
  ASSERT_TRUE(us.ok());
  EXPECT_NEAR((*us)[0] / samples[0].us, 1, 0.15);
}

TEST(SlicePredictor, LearnsSlowdowns) {
  std::vector<SliceSample> samples = make_samples(80);
  const size_t alone = samples.size();
  for (size_t i = 0; i < alone; ++i) {
    SliceSample loaded = samples[i];
    loaded.slice.load = OtherLoad::kMemory;
    loaded.alone_us = loaded.us;
    // Only what exceeds a cache suffers.
    loaded.us *= loaded.slice.weight_bytes > 5e5 ? 1.6 : 1.0;
    samples.push_back(loaded);
  }
  std::vector<const SliceSample*> rows;
  for (const SliceSample& sample : samples) rows.push_back(&sample);
  const StatusOr<SlicePredictor> predictor = SlicePredictor::fit(rows, shape_groups(samples), {});
  ASSERT_TRUE(predictor.ok()) << predictor.status().to_string();
  ASSERT_TRUE(predictor->knows_slowdowns());
  SliceCase large = product(50, 960, 960), small = product(50, 64, 64);
  finish(&large);
  finish(&small);
  SliceCase idle = large;
  large.load = small.load = OtherLoad::kMemory;
  const std::vector<const SliceCase*> asked = {&large, &small, &idle};
  const StatusOr<std::vector<double>> slowdowns = predictor->slowdowns(asked);
  ASSERT_TRUE(slowdowns.ok());
  EXPECT_NEAR((*slowdowns)[0], 1.6, 0.1);
  EXPECT_NEAR((*slowdowns)[1], 1.0, 0.1);
  EXPECT_EQ((*slowdowns)[2], 1.0);
  // One at a time is the same to the bit.
  for (const SliceSample& sample : samples) {
    SliceCase slice = sample.slice;
    slice.load = OtherLoad::kNone;
    SliceCase beside_memory = slice;
    beside_memory.load = OtherLoad::kMemory;
    SliceCase beside_compute = slice;
    beside_compute.load = OtherLoad::kCompute;
    const std::vector<const SliceCase*> all = {&slice, &beside_memory, &beside_compute};
    const std::vector<double> at_once = predictor->slowdowns(all).value();
    const SlicePredictor::Prediction one = predictor->predict_one(slice, true).value();
    EXPECT_EQ(one.us, predictor->predict(all).value()[0]);
    EXPECT_EQ(one.slowdown_memory, at_once[1]);
    EXPECT_EQ(one.slowdown_compute, at_once[2]);
    EXPECT_EQ(predictor->predict_one(slice, false).value().us, one.us);
  }
}

TEST(SliceFeatures, NamesOfImplementations) {
  EXPECT_EQ(split_implementation("cl_conv1x1_14x32").base, "cl_conv1x1");
  EXPECT_EQ(split_implementation("cl_conv1x1_14x32").tile_rows, 14);
  EXPECT_EQ(split_implementation("cl_conv1x1_14x32").tile_columns, 32);
  EXPECT_EQ(split_implementation("cl_winograd_4x4_10x32").base, "cl_winograd_4x4");
  EXPECT_EQ(split_implementation("cl_linear_4x4_items").base, "cl_linear_4x4_items");
  EXPECT_EQ(split_implementation("loops_tiled_gemm").base, "loops_tiled_gemm");
  EXPECT_EQ(split_implementation("").base, "");
  EXPECT_NE(implementation_number("cl_conv"), implementation_number("loops_copy"));
  EXPECT_EQ(implementation_number("of the future"), 0);
}

// Counted by hand: 13x13 pixels are 7x7 patches of 2x2, or 4x4 of 4x4.
TEST(SliceFeatures, PatchesAndWeightsOfWinograd) {
  SliceCase conv;
  conv.kind = "conv";
  conv.family = SliceFamily::kConv3x3;
  conv.height = conv.width = conv.in_height = conv.in_width = 13;
  conv.channels = 40;
  conv.in_channels = 20;
  conv.kernel_height = conv.kernel_width = 3;
  conv.weight_bytes = 4.0 * 9 * 20 * 40;
  conv.lane.kind = "cpu";
  conv.implementation = "onednn_winograd";
  conv.library_variant = "jit_fp32_wino_2x3:avx512_core";
  const SliceMeasures small(conv);
  EXPECT_EQ(small.patches, 49);
  EXPECT_DOUBLE_EQ(small.patch_waste, 14.0 * 14 / (13 * 13));
  EXPECT_EQ(small.packed_bytes, 4.0 * 16 * 48 * 20);
  EXPECT_EQ(small.transformed, 49.0 * 16 * (32 + 48));
  conv.library_variant = "jit_wino_4x3:avx512_core";
  EXPECT_EQ(SliceMeasures(conv).patches, 16);
  EXPECT_EQ(SliceMeasures(conv).packed_bytes, 4.0 * 36 * 48 * 20);
  EXPECT_NE(variant_number("jit_fp32_wino_2x3:avx512_core"),
            variant_number("jit_wino_4x3:avx512_core"));
  conv.implementation = "cl_winograd_4x4_10x32";
  conv.library_variant = "";
  conv.lane.kind = "opencl";
  conv.global_size[0] = 3;
  EXPECT_EQ(SliceMeasures(conv).weight_passes, 3);
  conv.implementation = "cl_conv_14x32";
  EXPECT_EQ(SliceMeasures(conv).patches, 13 * 13);
  EXPECT_EQ(SliceMeasures(conv).transformed, 0);
  EXPECT_EQ(SliceMeasures(conv).packed_bytes, 4.0 * 9 * 48 * 20);
}

TEST(SliceFeatures, LinesOfCopies) {
  SliceCase copy;
  copy.kind = "copy";
  copy.height = copy.in_height = 100;
  copy.channels = 2;
  copy.in_channels = 85;
  copy.in_pitch = 96;
  copy.out_pitch = 16;
  copy.in_run = copy.out_run = 2;
  copy.in_bytes = copy.out_bytes = 4.0 * 2 * 100;
  // Two floats of every row, each in a line of its own; all of the input has been written before.
  EXPECT_EQ(SliceMeasures(copy).in_lines, 100);
  EXPECT_EQ(SliceMeasures(copy).out_lines, 100);
  EXPECT_EQ(SliceMeasures(copy).runs, 100);
  EXPECT_EQ(SliceMeasures(copy).in_footprint, 4.0 * 96 * 100);
  copy.in_channel_step = 96;
  EXPECT_EQ(SliceMeasures(copy).in_lines, 200);
  EXPECT_EQ(SliceMeasures(copy).runs, 200);
}

TEST(SliceFeatures, EveryFeatureSaysWhatItIs) {
  std::set<std::string> names;
  size_t arguments = 0;
  for (const SliceFeature& feature : slice_features()) {
    EXPECT_TRUE(names.insert(feature.feature.name).second) << feature.feature.name;
    EXPECT_FALSE(feature.feature.unit.empty()) << feature.feature.name;
    EXPECT_FALSE(feature.feature.why.empty()) << feature.feature.name;
    arguments += is_argument(feature.feature) ? 1 : 0;
  }
  EXPECT_GT(arguments, 10u);
  EXPECT_LT(arguments, names.size());
  // All of them are finite for a slice of which nothing is known.
  std::vector<double> row;
  append_slice_row(SliceCase(), &row);
  EXPECT_TRUE(slice_frame().add(row).ok());
}

}  // namespace
}  // namespace tandem::predict
