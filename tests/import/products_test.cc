// Einsum and Attention against sums written out, and Where with a condition that is known.
#include <cmath>
#include <limits>

#include "tests/import/model_builder.h"

namespace tandem::testing {
namespace {

// `terms`: the labels of a, b and the output, of extents in `extents`; an extent per label 'a',
// 'b',
// ... An element of the output is the sum of products over all labels that it lacks.
std::vector<double> summed(const std::vector<std::string>& terms, const HostTensor& a,
                           const HostTensor& b, const std::vector<int64_t>& extents) {
  const auto offset = [&](const std::string& term, const std::vector<int64_t>& index) {
    int64_t at = 0;
    for (char label : term) at = at * extents[label - 'a'] + index[label - 'a'];
    return at;
  };
  int64_t size = 1;
  for (char label : terms[2]) size *= extents[label - 'a'];
  std::vector<double> y(static_cast<size_t>(size), 0.0);
  std::vector<int64_t> index(extents.size(), 0);
  while (true) {
    y[offset(terms[2], index)] += static_cast<double>(a.data<float>()[offset(terms[0], index)]) *
                                  b.data<float>()[offset(terms[1], index)];
    size_t d = extents.size();
    while (d > 0 && ++index[d - 1] == extents[d - 1]) index[--d] = 0;
    if (d == 0) return y;
  }
}

Dims dims_of(const std::string& term, const std::vector<int64_t>& extents) {
  Dims dims;
  for (char label : term) dims.push_back(extents[label - 'a']);
  return dims;
}

TEST(Einsum, TwoOperands) {
  const std::vector<std::vector<std::string>> equations = {
      {"ab", "bc", "ac"},        // a product of matrices
      {"ab", "cb", "ca"},        // one that comes out transposed
      {"abc", "cde", "abde"},    // a projection to heads
      {"aecd", "abcd", "acbe"},  // scores of an attention
      {"acbe", "aecd", "abcd"},  // its values
      {"abc", "abc", "a"},       // sums only
      {"ab", "cd", "dbac"},      // an outer product
      {"abc", "bd", "ad"},       // a label of one operand alone is summed first
      {"ba", "ab", "ab"},        // element by element
  };
  const std::vector<int64_t> extents = {2, 3, 4, 5, 2};
  for (const std::vector<std::string>& terms : equations) {
    const std::string equation = terms[0] + "," + terms[1] + "->" + terms[2];
    SCOPED_TRACE(equation);
    std::vector<int64_t> used = extents;
    const std::string all = terms[0] + terms[1];
    for (size_t d = 0; d < used.size(); ++d) {
      if (all.find(static_cast<char>('a' + d)) == std::string::npos) used[d] = 1;
    }
    const HostTensor a = ramp(dims_of(terms[0], extents), -3, 0.5f);
    const HostTensor b = ramp(dims_of(terms[1], extents), 2, -0.25f);
    const std::vector<double> expected = summed(terms, a, b, used);
    const std::vector<Attribute> attributes = {{"equation", equation}};
    expect_output({.op = "Einsum", .inputs = {"x0", "x1"}, .x = {a, b}, .attributes = attributes},
                  dims_of(terms[2], extents), expected, 1e-4);
    expect_output({.op = "Einsum",
                   .inputs = {"x0", "c0"},
                   .x = {a},
                   .constants = {b},
                   .attributes = attributes},
                  dims_of(terms[2], extents), expected, 1e-4);
  }
}

TEST(Einsum, OneOperandThreeAndTheUsualOutput) {
  const HostTensor x = ramp({2, 3});
  const auto of = [&](const std::string& equation, std::vector<HostTensor> operands) {
    std::vector<std::string> names;
    for (size_t i = 0; i < operands.size(); ++i) names.push_back("x" + std::to_string(i));
    return NodeCase{.op = "Einsum",
                    .inputs = names,
                    .x = std::move(operands),
                    .attributes = {{"equation", equation}}};
  };
  expect_output(of("ij -> ji", {x}), {3, 2}, {0, 3, 1, 4, 2, 5});
  expect_output(of("ij->i", {x}), {2}, {3, 12});
  expect_output(of("ij->", {x}), {}, {15});
  expect_output(of("ba", {x}), {3, 2}, {0, 3, 1, 4, 2, 5});
  expect_output(of("ij,kj", {x, x}), {2, 2}, {5, 14, 14, 50});
  // (x x^T) x.
  expect_output(of("ij,kj,kl->il", {x, x, x}), {2, 3}, {42, 61, 80, 150, 214, 278});
}

TEST(Einsum, EllipsesBroadcast) {
  const HostTensor a = ramp({2, 1, 1, 3});
  const HostTensor b = ramp({2, 3, 1}, 1);
  // [2, 1] and [2] broadcast to [2, 2]: each row of a by each column of b.
  expect_output({.op = "Einsum",
                 .inputs = {"x0", "x1"},
                 .x = {a, b},
                 .attributes = {{"equation", "...ij,...jk->...ik"}}},
                {2, 2, 1, 1}, {8, 17, 26, 62});
}

TEST(Einsum, WhatItCannotDo) {
  const auto refuse = [](const std::string& equation, StatusCode code, const std::string& why) {
    SCOPED_TRACE(equation);
    expect_node_error({.op = "Einsum",
                       .inputs = {"x0"},
                       .x = {ramp({2, 2})},
                       .attributes = {{"equation", equation}}},
                      code, {why});
  };
  refuse("ii->i", StatusCode::kUnsupported, "diagonal");
  refuse("ij->k", StatusCode::kInvalidArgument, "no operand has");
  refuse("ij->ii", StatusCode::kInvalidArgument, "twice");
  refuse("ijk->i", StatusCode::kInvalidArgument, "'ijk'");
  refuse("ij,jk->ik", StatusCode::kInvalidArgument, "2 terms");
  refuse("i?->i", StatusCode::kInvalidArgument, "'?'");
  refuse("i.->i", StatusCode::kInvalidArgument, "'.'");
}

// softmax(scale * q * k^T + mask) * v of [heads, tokens, width] tensors.
std::vector<double> attention(const HostTensor& q, const HostTensor& k, const HostTensor& v,
                              double scale, const std::vector<double>& mask) {
  const int64_t heads = q.dims[1];
  const int64_t rows = q.dims[2];
  const int64_t columns = k.dims[2];
  const int64_t width = q.dims[3];
  const int64_t out = v.dims[3];
  std::vector<double> y;
  for (int64_t h = 0; h < heads; ++h) {
    for (int64_t r = 0; r < rows; ++r) {
      std::vector<double> weights;
      double total = 0;
      for (int64_t c = 0; c < columns; ++c) {
        double score = mask[r * columns + c];
        for (int64_t i = 0; i < width; ++i) {
          score += scale * q.data<float>()[(h * rows + r) * width + i] *
                   k.data<float>()[(h * columns + c) * width + i];
        }
        weights.push_back(std::exp(score));
        total += weights.back();
      }
      for (int64_t o = 0; o < out; ++o) {
        double sum = 0;
        for (int64_t c = 0; c < columns; ++c) {
          sum += weights[c] / total * v.data<float>()[(h * columns + c) * out + o];
        }
        y.push_back(sum);
      }
    }
  }
  return y;
}

TEST(Attention, ByHeadsMasksAndScales) {
  const HostTensor q = ramp({1, 2, 3, 4}, -1, 0.1f);
  const HostTensor k = ramp({1, 2, 3, 4}, 1, -0.05f);
  const HostTensor v = ramp({1, 2, 3, 5}, 0, 0.2f);
  const std::vector<double> none(9, 0.0);
  const NodeCase plain = {
      .opset = 24, .op = "Attention", .inputs = {"x0", "x1", "x2"}, .x = {q, k, v}};
  expect_output(plain, {1, 2, 3, 5}, attention(q, k, v, 0.5, none));
  NodeCase other = plain;
  other.attributes = {{"scale", 2.0f}, {"is_causal", int64_t{1}}};
  const double hidden = -HUGE_VAL;
  expect_output(other, {1, 2, 3, 5},
                attention(q, k, v, 2, {0, hidden, hidden, 0, 0, hidden, 0, 0, 0}));
  other = plain;
  other.inputs.push_back("c0");
  other.constants = {HostTensor::floats({3, 3}, {0, 1, 2, 3, 4, 5, 6, 7, 8})};
  expect_output(other, {1, 2, 3, 5}, attention(q, k, v, 0.5, {0, 1, 2, 3, 4, 5, 6, 7, 8}));
  other.constants = {HostTensor::ints({3, 3}, {1, 1, 0, 1, 0, 1, 1, 1, 1})};
  expect_output(other, {1, 2, 3, 5},
                attention(q, k, v, 0.5, {0, 0, hidden, 0, hidden, 0, 0, 0, 0}));
}

TEST(Attention, OfRowsWithHeadsSideBySide) {
  // One token: the result is v.
  const HostTensor x = ramp({1, 1, 6});
  expect_output({.opset = 23,
                 .op = "Attention",
                 .inputs = {"x0", "x1", "x2"},
                 .x = {x, x, ramp({1, 1, 4}, 3)},
                 .attributes = {{"q_num_heads", int64_t{2}}, {"kv_num_heads", int64_t{2}}}},
                {1, 1, 4}, {3, 4, 5, 6});
}

TEST(Attention, WhatItCannotDo) {
  const HostTensor x = ramp({1, 2, 3, 4});
  const auto refuse = [&](std::vector<std::string> inputs, std::vector<Attribute> attributes,
                          const std::string& why) {
    expect_node_error({.opset = 24,
                       .op = "Attention",
                       .inputs = std::move(inputs),
                       .x = {x, x, x, ramp({1, 1, 3, 4})},
                       .attributes = std::move(attributes)},
                      StatusCode::kUnsupported, {why});
  };
  refuse({"x0", "x1", "x2", "", "x1", "x2"}, {}, "earlier runs");
  refuse({"x0", "x1", "x2"}, {{"softcap", 1.0f}}, "softcap");
  refuse({"x0", "x3", "x3"}, {}, "heads");
  expect_node_error({.opset = 24,
                     .op = "Attention",
                     .inputs = {"x0", "x0", "x0", "c0"},
                     .x = {x},
                     .constants = {HostTensor::ints({3, 3}, {1, 1, 1, 0, 0, 0, 1, 1, 1})}},
                    StatusCode::kUnsupported, {"hides everything"});
}

TEST(Swish, WithAndWithoutFactor) {
  const HostTensor x = ramp({2}, 1);
  const auto swish = [](double v, double alpha) { return v / (1 + std::exp(-alpha * v)); };
  expect_output({.opset = 24, .op = "Swish", .inputs = {"x0"}, .x = {x}}, {2},
                {swish(1, 1), swish(2, 1)});
  expect_output(
      {.opset = 24, .op = "Swish", .inputs = {"x0"}, .x = {x}, .attributes = {{"alpha", 0.5f}}},
      {2}, {swish(1, 0.5), swish(2, 0.5)});
}

TEST(Where, OfAKnownConditionAndNumber) {
  const HostTensor x = ramp({2, 3}, -2);
  const HostTensor condition = HostTensor::ints({1, 3}, {1, 0, 1});
  const HostTensor seven = HostTensor::floats({}, {7});
  expect_output(
      {.op = "Where", .inputs = {"c0", "x0", "c1"}, .x = {x}, .constants = {condition, seven}},
      {2, 3}, {-2, 7, 0, 1, 7, 3});
  expect_output(
      {.op = "Where", .inputs = {"c0", "c1", "x0"}, .x = {x}, .constants = {condition, seven}},
      {2, 3}, {7, -1, 7, 7, 2, 7});
  // Nothing is chosen, or everything.
  expect_output({.op = "Where",
                 .inputs = {"c0", "x0", "c1"},
                 .x = {x},
                 .constants = {HostTensor::ints({}, {1}), seven}},
                {2, 3}, {-2, -1, 0, 1, 2, 3});
  expect_output({.op = "Where",
                 .inputs = {"c0", "x0", "c1"},
                 .x = {x},
                 .constants = {HostTensor::ints({}, {0}), seven}},
                {2, 3}, {7, 7, 7, 7, 7, 7});
}

// As masks of an attention do it.
TEST(Where, OfInfinity) {
  ModelBuilder model;
  model.input("x", {3});
  model.ints("condition", {1, 0, 1});
  model.floats("infinity", {}, {-std::numeric_limits<float>::infinity()});
  model.node("Where", {"condition", "x", "infinity"}, {"y"});
  model.output("y");
  const StatusOr<Model> loaded = model.load();
  ASSERT_TRUE(loaded.ok()) << loaded.status().to_string();
  EXPECT_EQ(run(*loaded, {ramp({3})})[0].values, (std::vector<double>{0, -HUGE_VAL, 2}));
}

}  // namespace
}  // namespace tandem::testing
