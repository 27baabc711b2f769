#include "predict/regressor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "predict/metrics.h"
#include "predict/splits.h"
#include "tests/support/random.h"

namespace tandem::predict {
namespace {

using ::testing::HasSubstr;

struct Sample {
  Frame frame{{{"flops", "FLOP", "test"},
               {"bytes", "B", "test"},
               {"kernel", "1", "test", FeatureKind::kKernel},
               {"waste", "1", "test", FeatureKind::kKernel}}};
  std::vector<double> times;
  std::vector<std::string> groups;
};

// 5 us + FLOPs at a rate that depends on the kernel, times a waste that is not linear.
Sample make_sample(uint64_t seed, int rows) {
  testing::Random random(seed);
  Sample sample;
  for (int i = 0; i < rows; ++i) {
    const double flops = std::exp(random.real(10, 18));
    const double bytes = flops / random.real(2, 50);
    const auto kernel = static_cast<double>(random.integer(0, 1));
    const auto waste = static_cast<double>(random.integer(1, 4));
    EXPECT_TRUE(sample.frame.add(std::vector<double>{flops, bytes, kernel, waste}).ok());
    sample.times.push_back((5 + flops / (kernel == 0 ? 1e5 : 3e5)) * (waste == 3 ? 1.4 : 1));
    sample.groups.push_back("network " + std::to_string(i % 20));
  }
  return sample;
}

RegressorOptions with_kernels() { return {.class_column = "kernel"}; }

StatusOr<Regressor> fit(const Sample& sample, const RegressorOptions& options) {
  return Regressor::fit(sample.frame, sample.times, sample.groups, options);
}

double mape(const Regressor& regressor, const Sample& sample) {
  return summarize_errors(regressor.predict(sample.frame).value(), sample.times).mape;
}

TEST(RegressorTest, LearnsWhatALineCannotSay) {
  const Sample training = make_sample(1, 1500);
  const Sample test = make_sample(2, 500);
  const StatusOr<Regressor> regressor = fit(training, with_kernels());
  ASSERT_TRUE(regressor.ok()) << regressor.status().to_string();
  EXPECT_LT(mape(*regressor, test), 0.02);
  RegressorOptions line{.cost_terms = {"flops"}, .trees = false};
  EXPECT_GT(mape(*fit(training, line), test), 0.2);
  EXPECT_EQ(regressor->statistics().rows, 1500u);
  EXPECT_EQ(regressor->statistics().groups, 20u);
  EXPECT_GT(regressor->statistics().validation_error, 0);
}

TEST(RegressorTest, ExtrapolatesAlongItsLine) {
  const StatusOr<Regressor> regressor = fit(make_sample(1, 1500), with_kernels());
  Sample large;
  ASSERT_TRUE(large.frame.add(std::vector<double>{1e10, 1e9, 0, 1}).ok());
  EXPECT_NEAR(regressor->predict(large.frame).value()[0] / (5 + 1e10 / 1e5), 1, 0.1);
}

TEST(RegressorTest, FewRowsOfOneGroupAreEnough) {
  Sample sample = make_sample(1, 12);
  sample.groups.assign(12, "one");
  const StatusOr<Regressor> regressor = fit(sample, with_kernels());
  ASSERT_TRUE(regressor.ok());
  EXPECT_EQ(regressor->statistics().validation_error, 0);
}

TEST(RegressorTest, RefusesTimesThatAreNone) {
  Sample sample = make_sample(1, 20);
  sample.times[7] = 0;
  EXPECT_THAT(fit(sample, with_kernels()).status().message(), HasSubstr("positive"));
  EXPECT_FALSE(fit(Sample(), with_kernels()).ok());
  EXPECT_THAT(fit(make_sample(1, 20), {.class_column = "colour"}).status().message(),
              HasSubstr("colour"));
}

TEST(RegressorTest, RefusesOtherFeatures) {
  const Sample sample = make_sample(1, 50);
  const StatusOr<Regressor> regressor = fit(sample, with_kernels());
  const Frame fewer =
      sample.frame.with_features([](const Feature& f) { return f.name != "waste"; });
  EXPECT_THAT(regressor->predict(fewer).status().message(), HasSubstr("waste"));
}

class RegressorFileTest : public ::testing::Test {
 protected:
  RegressorFileTest() : regressor_(*fit(sample_, with_kernels())) {
    text_ = regressor_.to_text({"board", "1.0"});
    expected_ = {sample_.frame.names(), {"board", "1.0"}};
  }

  StatusOr<Regressor> parse() const { return Regressor::parse(text_, expected_); }
  void replace(const std::string& from, const std::string& to) {
    const size_t at = text_.find(from);
    ASSERT_NE(at, std::string::npos);
    text_.replace(at, from.size(), to);
  }

  Sample sample_ = make_sample(1, 200);
  Regressor regressor_;
  std::string text_;
  Regressor::Expectation expected_;
};

TEST_F(RegressorFileTest, PredictsTheSame) {
  const StatusOr<Regressor> read = parse();
  ASSERT_TRUE(read.ok()) << read.status().to_string();
  EXPECT_EQ(read->predict(sample_.frame).value(), regressor_.predict(sample_.frame).value());
  EXPECT_EQ(read->statistics().rows, 200u);
}

TEST_F(RegressorFileTest, RefusesAnotherPlatform) {
  expected_.fingerprints.platform = "another";
  EXPECT_EQ(parse().status().code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(parse().status().message(), HasSubstr("'board'"));
  EXPECT_THAT(parse().status().message(), HasSubstr("train again"));
}

TEST_F(RegressorFileTest, RefusesAnotherEngine) {
  expected_.fingerprints.engine = "1.1";
  EXPECT_THAT(parse().status().message(), HasSubstr("engine"));
}

TEST_F(RegressorFileTest, TakesOthersIfAsked) {
  expected_.fingerprints = {"another", "1.1"};
  expected_.allow_other_fingerprints = true;
  EXPECT_TRUE(parse().ok());
}

TEST_F(RegressorFileTest, RefusesOtherFeaturesAlways) {
  expected_.feature_names.back() = "tiles";
  expected_.allow_other_fingerprints = true;
  EXPECT_THAT(parse().status().message(), HasSubstr("tiles"));
}

TEST_F(RegressorFileTest, RefusesAnotherSchema) {
  replace("\"schema_version\":1", "\"schema_version\":2");
  expected_.allow_other_fingerprints = true;
  EXPECT_THAT(parse().status().message(), HasSubstr("version 2"));
}

TEST_F(RegressorFileTest, RefusesDamage) {
  text_.resize(text_.size() / 2);
  EXPECT_EQ(parse().status().code(), StatusCode::kCorrupt);
}

TEST_F(RegressorFileTest, RefusesDamagedLines) {
  replace("\"line\":[", "\"line\":[-1,");
  EXPECT_EQ(parse().status().code(), StatusCode::kCorrupt);
}

TEST(CostLineTest, FindsWeightsThatAreNotNegative) {
  // 3 + 2x, and a term that only noise would weigh negatively.
  std::vector<double> terms;
  std::vector<double> times;
  for (int x = 1; x <= 50; ++x) {
    terms.insert(terms.end(), {1.0, static_cast<double>(x), 1.0 / x});
    times.push_back(3 + 2 * x - 0.5 / x);
  }
  const CostLine line = CostLine::fit(terms, 3, times);
  EXPECT_EQ(line.weights()[2], 0);
  EXPECT_NEAR(line.weights()[1], 2, 0.05);
  EXPECT_GE(line.weights()[0], 0);
}

TEST(CostLineTest, ExactDataGiveExactWeights) {
  testing::Random random(1);
  std::vector<double> terms;
  std::vector<double> times;
  for (int i = 0; i < 40; ++i) {
    const double flops = random.real(1e6, 1e9);
    const double bytes = random.real(1e3, 1e6);
    terms.insert(terms.end(), {1, flops, bytes, 0});
    times.push_back(7 + flops / 1e5 + bytes / 1e2);
  }
  const std::vector<double> weights = CostLine::fit(terms, 4, times).weights();
  EXPECT_NEAR(weights[0], 7, 0.1);
  EXPECT_NEAR(weights[1], 1e-5, 1e-8);
  EXPECT_NEAR(weights[2], 1e-2, 1e-5);
  EXPECT_EQ(weights[3], 0);
}

}  // namespace
}  // namespace tandem::predict
