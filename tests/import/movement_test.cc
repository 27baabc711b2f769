// Operators that move elements, and those that resize images: what libonnx-testdata does not cover.
#include <cmath>
#include <numbers>

#include "tests/import/model_builder.h"
#include "tests/import/tensors.h"

namespace tandem::testing {
namespace {

TEST(Movement, SliceByAttributesAndInputs) {
  const HostTensor x = ramp({2, 4});
  expect_output({.opset = 9,
                 .op = "Slice",
                 .inputs = {"x0"},
                 .x = {x},
                 .attributes = {{"starts", Ints{1}}, {"ends", Ints{-1}}, {"axes", Ints{1}}}},
                {2, 2}, {1, 2, 5, 6});
  const auto with = [&](Ints starts, Ints ends, Ints axes, Ints steps) {
    return NodeCase{.op = "Slice",
                    .inputs = {"x0", "c0", "c1", "c2", "c3"},
                    .x = {x},
                    .constants = {list_of(std::move(starts)), list_of(std::move(ends)),
                                  list_of(std::move(axes)), list_of(std::move(steps))}};
  };
  constexpr int64_t kMin = std::numeric_limits<int64_t>::min();
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  expect_output(with({-1}, {kMin}, {1}, {-2}), {2, 2}, {3, 1, 7, 5});
  expect_output(with({0, 1}, {kMax, kMax}, {0, -1}, {1, 2}), {2, 2}, {1, 3, 5, 7});
  expect_output(with({kMax}, {kMin}, {1}, {kMin}), {2, 1}, {3, 7});
  expect_node_error(with({3}, {1}, {1}, {1}), StatusCode::kUnsupported, {"no elements"});
  expect_node_error(with({0}, {1}, {1}, {0}), StatusCode::kInvalidArgument, {"step"});
  expect_node_error(with({0}, {1}, {2}, {1}), StatusCode::kInvalidArgument, {"axis 2"});
}

TEST(Movement, SplitByAttributeInputAndNumber) {
  const auto second = [](int64_t opset, const std::vector<Attribute>& attributes,
                         const std::vector<std::string>& inputs) {
    ModelBuilder model(opset);
    model.input("x", {5});
    model.ints("sizes", {4, 1});
    model.node("Split", inputs, {"a", "b"}, attributes);
    model.output("b");
    const StatusOr<Model> loaded = model.load();
    EXPECT_TRUE(loaded.ok()) << loaded.status().to_string();
    return loaded.ok() ? run(*loaded, {ramp({5})})[0].values : std::vector<double>();
  };
  EXPECT_EQ(second(11, {{"split", Ints{2, 3}}}, {"x"}), (std::vector<double>{2, 3, 4}));
  EXPECT_EQ(second(13, {}, {"x", "sizes"}), (std::vector<double>{4}));
  EXPECT_EQ(second(18, {{"num_outputs", int64_t{2}}}, {"x"}), (std::vector<double>{3, 4}));
}

TEST(Movement, SqueezeAndUnsqueezeByAttributeAndInput) {
  const HostTensor x = ramp({1, 2, 1});
  expect_output(
      {.opset = 11, .op = "Squeeze", .inputs = {"x0"}, .x = {x}, .attributes = {{"axes", Ints{0}}}},
      {2, 1}, {0, 1});
  expect_output({.op = "Squeeze", .inputs = {"x0"}, .x = {x}}, {2}, {0, 1});
  expect_output({.op = "Squeeze", .inputs = {"x0", "c0"}, .x = {x}, .constants = {list_of({-1})}},
                {1, 2}, {0, 1});
  expect_output({.opset = 11,
                 .op = "Unsqueeze",
                 .inputs = {"x0"},
                 .x = {ramp({2})},
                 .attributes = {{"axes", Ints{0, 2}}}},
                {1, 2, 1}, {0, 1});
  expect_output(
      {.op = "Unsqueeze", .inputs = {"x0", "c0"}, .x = {ramp({2})}, .constants = {list_of({-1})}},
      {2, 1}, {0, 1});
  expect_node_error(
      {.op = "Squeeze", .inputs = {"x0", "c0"}, .x = {x}, .constants = {list_of({1})}},
      StatusCode::kInvalidArgument, {"axis 1"});
}

TEST(Movement, Reshape) {
  const auto with = [](Ints shape, std::vector<Attribute> attributes = {}) {
    return NodeCase{.opset = 14,
                    .op = "Reshape",
                    .inputs = {"x0", "c0"},
                    .x = {ramp({2, 3})},
                    .constants = {list_of(std::move(shape))},
                    .attributes = std::move(attributes)};
  };
  expect_output(with({0, -1, 1}), {2, 3, 1}, {0, 1, 2, 3, 4, 5});
  expect_node_error(with({-1, -1}), StatusCode::kInvalidArgument, {"-1"});
  expect_node_error(with({4, -1}), StatusCode::kInvalidArgument, {"[2, 3]", "[4, -1]"});
  expect_node_error(with({7}), StatusCode::kInvalidArgument, {"[7]"});
  expect_node_error(with({-2, -3}), StatusCode::kCorrupt, {"negative"});
  expect_node_error(with({2, 3, 0}), StatusCode::kInvalidArgument, {"0 in the shape"});
  expect_node_error(with({0, 3}, {{"allowzero", int64_t{1}}}), StatusCode::kInvalidArgument, {});
  expect_output({.op = "Flatten",
                 .inputs = {"x0"},
                 .x = {ramp({2, 1, 2})},
                 .attributes = {{"axis", int64_t{-1}}}},
                {2, 2}, {0, 1, 2, 3});
}

TEST(Movement, PadByAttributesAndInputs) {
  const HostTensor x = ramp({1, 3}, 1);
  expect_output({.opset = 7,
                 .op = "Pad",
                 .inputs = {"x0"},
                 .x = {x},
                 .attributes = {{"pads", Ints{0, 1, 0, 1}}, {"value", 9.0f}}},
                {1, 5}, {9, 1, 2, 3, 9});
  const auto with = [&](const char* mode, Ints pads) {
    return NodeCase{.op = "Pad",
                    .inputs = {"x0", "c0"},
                    .x = {x},
                    .constants = {list_of(std::move(pads))},
                    .attributes = {{"mode", mode}}};
  };
  expect_output(with("reflect", {0, 2, 0, 0}), {1, 5}, {3, 2, 1, 2, 3});
  expect_output(with("edge", {0, 0, 0, 2}), {1, 5}, {1, 2, 3, 3, 3});
  expect_output(with("constant", {0, -1, 0, 1}), {1, 3}, {2, 3, 0});
  expect_node_error(with("wrap", {0, 0, 0, 1}), StatusCode::kUnsupported, {"wrap"});
  expect_node_error(with("constant", {0, -2, 0, -2}), StatusCode::kInvalidArgument, {"nothing"});
  expect_output({.opset = 18,
                 .op = "Pad",
                 .inputs = {"x0", "c0", "", "c1"},
                 .x = {x},
                 .constants = {list_of({1, 0}), list_of({-1})}},
                {1, 4}, {0, 1, 2, 3});
}

TEST(Movement, GatherKnownAndUnknownIndices) {
  const HostTensor x = ramp({2, 3});
  const auto with = [&](HostTensor indices, int64_t axis) {
    return NodeCase{.op = "Gather",
                    .inputs = {"x0", "c0"},
                    .x = {x},
                    .constants = {std::move(indices)},
                    .attributes = {{"axis", axis}}};
  };
  expect_output(with(HostTensor::ints({}, {-1}), 0), {3}, {3, 4, 5});
  expect_output(with(HostTensor::ints({1, 2}, {2, 0}), 1), {2, 1, 2}, {2, 0, 5, 3});
  expect_node_error(with(HostTensor::ints({}, {2}), 0), StatusCode::kInvalidArgument, {"index 2"});
  expect_output({.op = "Gather", .inputs = {"x0", "x1"}, .x = {x, list_of({1})}}, {1, 3},
                {3, 4, 5});
}

TEST(Movement, TileAndExpand) {
  expect_output(
      {.op = "Tile", .inputs = {"x0", "c0"}, .x = {ramp({1, 2})}, .constants = {list_of({2, 2})}},
      {2, 4}, {0, 1, 0, 1, 0, 1, 0, 1});
  expect_output(
      {.op = "Tile", .inputs = {"x0", "c0"}, .x = {ramp({2, 2})}, .constants = {list_of({2, 1})}},
      {4, 2}, {0, 1, 2, 3, 0, 1, 2, 3});
  expect_output(
      {.op = "Tile", .inputs = {"x0", "c0"}, .x = {ramp({2})}, .constants = {list_of({2})}}, {4},
      {0, 1, 0, 1});
  expect_output({.op = "Expand",
                 .inputs = {"x0", "c0"},
                 .x = {ramp({2, 1})},
                 .constants = {list_of({2, 1, 2})}},
                {2, 2, 2}, {0, 0, 1, 1, 0, 0, 1, 1});
}

TEST(Movement, BlocksToChannelsAndBack) {
  const HostTensor x = ramp({1, 4, 1, 1});
  for (const char* mode : {"DCR", "CRD"}) {
    expect_output({.op = "DepthToSpace",
                   .inputs = {"x0"},
                   .x = {x},
                   .attributes = {{"blocksize", int64_t{2}}, {"mode", mode}}},
                  {1, 1, 2, 2}, {0, 1, 2, 3});
  }
  expect_output({.op = "SpaceToDepth",
                 .inputs = {"x0"},
                 .x = {ramp({1, 1, 2, 2})},
                 .attributes = {{"blocksize", int64_t{2}}}},
                {1, 4, 1, 1}, {0, 1, 2, 3});
}

TEST(Movement, OneOperandIsNoOperator) {
  for (const char* op : {"Concat", "Identity", "Dropout"}) {
    expect_output(
        {.op = op, .inputs = {"x0"}, .x = {ramp({2})}, .attributes = {{"axis", int64_t{0}}}}, {2},
        {0, 1});
  }
}

TEST(Resize, OldOpsetsTakeTheElementBefore) {
  const HostTensor x = ramp({1, 1, 1, 2});
  const HostTensor scales = vector_of({1, 1, 1, 2});
  expect_output({.opset = 7,
                 .op = "Upsample",
                 .inputs = {"x0"},
                 .x = {x},
                 .attributes = {{"scales", Floats{1, 1, 1, 2}}}},
                {1, 1, 1, 4}, {0, 0, 1, 1});
  expect_output(
      {.opset = 9, .op = "Upsample", .inputs = {"x0", "c0"}, .x = {x}, .constants = {scales}},
      {1, 1, 1, 4}, {0, 0, 1, 1});
  expect_output({.opset = 10,
                 .op = "Resize",
                 .inputs = {"x0", "c0"},
                 .x = {x},
                 .constants = {scales},
                 .attributes = {{"mode", "linear"}}},
                {1, 1, 1, 4}, {0, 0.5, 1, 1});
}

TEST(Resize, BySizesAndByAxes) {
  const HostTensor x = ramp({1, 1, 2, 2});
  const std::vector<Attribute> floor = {{"nearest_mode", "floor"},
                                        {"coordinate_transformation_mode", "asymmetric"}};
  expect_output({.op = "Resize",
                 .inputs = {"x0", "", "", "c0"},
                 .x = {x},
                 .constants = {list_of({1, 1, 2, 4})},
                 .attributes = floor},
                {1, 1, 2, 4}, {0, 0, 1, 1, 2, 2, 3, 3});
  std::vector<Attribute> with_axes = floor;
  with_axes.push_back({"axes", Ints{3}});
  expect_output({.opset = 18,
                 .op = "Resize",
                 .inputs = {"x0", "", "", "c0"},
                 .x = {x},
                 .constants = {list_of({4})},
                 .attributes = with_axes},
                {1, 1, 2, 4}, {0, 0, 1, 1, 2, 2, 3, 3});
  // Exporters leave roi and scales out by empty tensors, too.
  expect_output({.opset = 11,
                 .op = "Resize",
                 .inputs = {"x0", "c0", "c0", "c1"},
                 .x = {x},
                 .constants = {vector_of({}), list_of({1, 1, 2, 4})},
                 .attributes = floor},
                {1, 1, 2, 4}, {0, 0, 1, 1, 2, 2, 3, 3});
}

TEST(Resize, OfOtherRanks) {
  expect_output({.op = "Resize",
                 .inputs = {"x0", "", "c0"},
                 .x = {ramp({1, 2, 2})},
                 .constants = {vector_of({1, 1, 2})}},
                {1, 2, 4}, {0, 0, 1, 1, 2, 2, 3, 3});
  expect_output(
      {.op = "Resize", .inputs = {"x0", "", "c0"}, .x = {ramp({2})}, .constants = {vector_of({2})}},
      {4}, {0, 0, 1, 1});
}

TEST(Resize, WhatItDoesNotSupport) {
  const auto with = [](Floats scales, std::vector<Attribute> attributes = {}) {
    return NodeCase{.op = "Resize",
                    .inputs = {"x0", "", "c0"},
                    .x = {ramp({1, 1, 2, 2})},
                    .constants = {vector_of(std::move(scales))},
                    .attributes = std::move(attributes)};
  };
  expect_node_error(with({1, 2, 1, 1}), StatusCode::kUnsupported, {"dimension 1"});
  expect_node_error(with({1, 1, 2, 2}, {{"mode", "lanczos"}}), StatusCode::kUnsupported,
                    {"lanczos"});
  expect_node_error(with({1, 1, 0, 2}), StatusCode::kInvalidArgument, {"scale"});
  expect_node_error(with({1, 1, 2}), StatusCode::kInvalidArgument, {"scale per dimension"});
}

}  // namespace
}  // namespace tandem::testing
