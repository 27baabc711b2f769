#include "profile/sampler.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "profile/describe_slice.h"
#include "tests/profile/profiling_graph.h"

namespace tandem {
namespace {

using predict::SliceFamily;

std::vector<Sample> samples_of(const SamplerOptions& options) {
  Sampler sampler(options);
  sampler.add_network("net", testing::profiling_graph());
  return sampler.samples();
}

std::string text_of(const Sample& sample) {
  return sample.signature + " " + to_string(sample.head) + " " + to_string(sample.tail) + " " +
         sample.networks + (sample.repeated ? " repeated" : "") +
         (sample.contended ? " contended" : "") + (sample.second_time ? " second time" : "");
}

std::vector<std::string> texts_of(const std::vector<Sample>& samples) {
  std::vector<std::string> texts;
  for (const Sample& sample : samples) texts.push_back(text_of(sample));
  return texts;
}

TEST(SamplerTest, IsTheSameForASeed) {
  const std::vector<std::string> once = texts_of(samples_of({.seed = 4, .families = {}}));
  EXPECT_EQ(once, texts_of(samples_of({.seed = 4, .families = {}})));
  EXPECT_NE(once, texts_of(samples_of({.seed = 5, .families = {}})));
}

// Whole operators and every cut are legal, operators lie in their families, and a cut leaves
// nothing out.
TEST(SamplerTest, SamplesCanBeBuiltAndCut) {
  ConstantPool constants(true);
  for (const Sample& sample : samples_of({})) {
    SCOPED_TRACE(text_of(sample));
    Graph graph;
    const StatusOr<AddedOperator> added = add_to(graph, *sample.op, "op", constants);
    ASSERT_TRUE(added.ok()) << added.status().message();
    ASSERT_TRUE(graph.validate().ok()) << graph.validate().message();
    EXPECT_EQ(family_of(graph, added->op), sample.family);
    EXPECT_EQ(sample.head.axis, sample.tail.axis);
    for (const Cut& cut : {sample.head, sample.tail}) {
      const Status legal = check_slice(graph, {added->op, cut.axis, cut.begin, cut.end});
      EXPECT_TRUE(legal.ok()) << legal.message();
    }
    if (sample.head.axis == kNone) continue;
    EXPECT_EQ(sample.head.begin, 0);
    EXPECT_EQ(sample.head.end, sample.tail.begin);
    EXPECT_EQ(sample.tail.end,
              graph.output_of(added->op).dims[static_cast<size_t>(sample.head.axis)]);
  }
}

// Far from the first time, so that it is in another batch, and without a load.
TEST(SamplerTest, AnEighthComesASecondTime) {
  const std::vector<Sample> samples = samples_of({});
  std::map<std::string, size_t> first;
  size_t seconds = 0;
  for (size_t i = 0; i < samples.size(); ++i) {
    const std::string name = samples[i].signature + to_string(samples[i].head);
    if (!samples[i].second_time) {
      first[name] = i;
      continue;
    }
    ++seconds;
    EXPECT_FALSE(samples[i].contended);
    ASSERT_TRUE(first.contains(name)) << name;
    // At the end there are no others to come between.
    EXPECT_GE(i, std::min(first[name] + 200, samples.size() - samples.size() / 8 + 7)) << name;
  }
  EXPECT_EQ(seconds, (first.size() + 7) / 8);
}

TEST(SamplerTest, NothingElseComesTwice) {
  std::set<std::string> seen;
  for (const Sample& sample : samples_of({})) {
    if (sample.second_time) continue;
    EXPECT_TRUE(seen.insert(sample.signature + to_string(sample.head)).second) << text_of(sample);
  }
}

// A beginning of the list has every family, and all of the network's operators are in it, before
// the second half.
TEST(SamplerTest, BeginningsAreRepresentative) {
  const std::vector<Sample> samples = samples_of({});
  std::set<SliceFamily> all;
  std::set<std::string> whole;
  for (const Sample& sample : samples) {
    all.insert(sample.family);
    if (!sample.networks.empty()) whole.insert(sample.signature);
  }
  EXPECT_EQ(all, (std::set{SliceFamily::kConv1x1, SliceFamily::kConv3x3, SliceFamily::kConvOther,
                           SliceFamily::kConvGrouped, SliceFamily::kDepthwise, SliceFamily::kLinear,
                           SliceFamily::kMatMul, SliceFamily::kPool, SliceFamily::kElementwise,
                           SliceFamily::kSoftmax, SliceFamily::kLayerNorm}));
  std::set<SliceFamily> begun;
  for (size_t i = 0; i < 3 * all.size(); ++i) begun.insert(samples[i].family);
  EXPECT_EQ(begun, all);
  for (size_t i = 0; i < samples.size() / 2; ++i) {
    if (samples[i].head.axis == kNone) whole.erase(samples[i].signature);
  }
  EXPECT_TRUE(whole.empty()) << *whole.begin();
}

TEST(SamplerTest, HasWholeOnesSlicesAndThoseBetween) {
  std::map<std::string, int> kinds;
  int repeated = 0;
  int contended = 0;
  const std::vector<Sample> samples = samples_of({});
  int firsts = 0;
  for (const Sample& sample : samples) {
    if (sample.second_time) continue;
    ++firsts;
    const std::string kind = sample.networks.empty() ? "between" : sample.networks;
    ++kinds[kind + (sample.head.axis == kNone ? " whole" : " cut")];
    repeated += sample.repeated;
    contended += sample.contended;
  }
  EXPECT_EQ(kinds["net whole"], 12);  // the operators of the graph
  EXPECT_GT(kinds["net cut"], 100);
  EXPECT_GT(kinds["between whole"], 300);
  EXPECT_GT(kinds["between cut"], 300);
  const auto all = static_cast<double>(firsts);
  EXPECT_NEAR(repeated / all, 1.0 / 2, 0.02);
  EXPECT_NEAR(contended / all, 1.0 / 7, 0.02);
}

TEST(SamplerTest, OnlyTheFamiliesAskedFor) {
  const std::vector<Sample> samples =
      samples_of({.families = {SliceFamily::kLinear, SliceFamily::kPool}});
  EXPECT_FALSE(samples.empty());
  for (const Sample& sample : samples) {
    EXPECT_TRUE(sample.family == SliceFamily::kLinear || sample.family == SliceFamily::kPool);
  }
}

TEST(SamplerTest, OperatorsKnowTheirNetworks) {
  Sampler sampler({.families = {SliceFamily::kPool}});
  sampler.add_network("b", testing::profiling_graph());
  sampler.add_network("a", testing::profiling_graph());
  EXPECT_EQ(sampler.operators(), 1);
  EXPECT_EQ(sampler.samples().front().networks, "a,b");
}

TEST(LoneOperatorTest, VariesWithinBounds) {
  const Graph graph = testing::profiling_graph();
  ProfileRandom random(3);
  int one_row = 0;
  for (size_t i = 0; i < graph.operators().size(); ++i) {
    const LoneOperator op = lone_operator(graph, static_cast<OperatorId>(i));
    const bool linear = std::holds_alternative<LinearAttributes>(op.attributes);
    for (int k = 0; k < 50; ++k) {
      const std::optional<LoneOperator> varied = perturbed(op, random);
      if (!varied) continue;
      ASSERT_EQ(varied->dims.size(), op.dims.size());
      for (size_t d = 0; d < op.dims.size(); ++d) {
        if (linear && d == 0) {
          EXPECT_GE(varied->dims[d], 1);
          EXPECT_LE(varied->dims[d], 512);
          one_row += varied->dims[d] == 1;
          continue;
        }
        // Rounded to multiples of 16 at most; windows may need a few more.
        EXPECT_GE(varied->dims[d], op.dims[d] / 2 - 16) << graph.op(i).name;
        EXPECT_LE(varied->dims[d], op.dims[d] * 2 + 16) << graph.op(i).name;
      }
    }
  }
  EXPECT_GT(one_row, 10);
}

LoneOperator moving(Attributes attributes, const Dims& from, const Dims& to) {
  LoneOperator op;
  op.attributes = std::move(attributes);
  op.inputs = {{.dims = from, .layout = {}, .constant = false, .value = nullptr}};
  op.dims = to;
  op.layout = {};
  return op;
}

// Operators that move elements stay ones: what they say of their extents holds for the varied ones.
TEST(LoneOperatorTest, VariesWhatMovesElements) {
  const LoneOperator part =
      moving(CopyAttributes{.source_axis = {0, 1, 2}, .step = {1, 1, 1}, .start = {0, 4, 0}},
             {1, 10, 85}, {1, 6, 85});
  const LoneOperator split =
      moving(CopyAttributes{.source_axis = {kNone, 1, 1}, .step = {1, 1, 29}, .start = {0, 0}},
             {1, 58}, {1, 29, 2});
  const LoneOperator merged = moving(ReshapeAttributes{}, {1, 58, 2, 7}, {1, 116, 7});
  ProfileRandom random(5);
  std::set<Dims> seen;
  for (int k = 0; k < 50; ++k) {
    for (const LoneOperator& op : {part, split, merged}) {
      const std::optional<LoneOperator> varied = perturbed(op, random);
      ASSERT_TRUE(varied);
      seen.insert(varied->dims);
      const Dims& from = varied->inputs[0].dims;
      Graph graph;
      ConstantPool constants(true);
      ASSERT_TRUE(add_to(graph, *varied, "op", constants).ok());
      ASSERT_TRUE(graph.validate().ok()) << graph.validate().message();
      const auto* copy = std::get_if<CopyAttributes>(&varied->attributes);
      if (!copy) {
        EXPECT_EQ(element_count(from), element_count(varied->dims));
        continue;
      }
      for (size_t axis = 0; axis < from.size(); ++axis) {
        int64_t last = copy->start[axis];
        for (size_t d = 0; d < varied->dims.size(); ++d) {
          if (copy->source_axis[d] != static_cast<int>(axis)) continue;
          last += copy->step[d] * (varied->dims[d] - 1);
        }
        EXPECT_LT(last, from[axis]);
        // A split reads all there is.
        if (varied->dims.size() != from.size()) {
          EXPECT_EQ(last + 1, from[axis]);
        }
      }
    }
  }
  EXPECT_GT(seen.size(), 60);
}

}  // namespace
}  // namespace tandem
