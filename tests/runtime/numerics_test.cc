// Which operator makes a NaN or an infinity, on this machine's lanes.
#include "runtime/numerics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "graph/graph.h"
#include "schedule/schedule.h"
#include "tests/runtime/real_platform.h"
#include "tests/schedule/random_graph.h"

namespace tandem {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::Random;
using testing::random_tensor;
using testing::real_lane_options;
using testing::real_platform;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr Layout kImage{Order::kChannelsLast, true};

UnaryAttributes unary(Function function) { return {{function}}; }

// x -> its negative "before" -> operators -> absolute value "after" -> output.
class Chain {
 public:
  explicit Chain(Dims dims = {1, 4, 64}) {
    x_ = graph_.add_input("x", DataType::kFloat32, std::move(dims));
    before_ = add("before", UnaryAttributes{{Function::kNeg}}, {x_});
  }
  TensorId before() const { return before_; }
  TensorId add(const std::string& name, Attributes attributes, std::vector<TensorId> inputs) {
    return graph_.add(name, std::move(attributes), std::move(inputs)).value();
  }
  TensorId constant(const std::string& name, const Dims& dims, float value) {
    HostTensor tensor(DataType::kFloat32, dims);
    std::fill_n(tensor.data<float>(), tensor.size(), value);
    return graph_.add_constant(name, std::move(tensor));
  }
  Model finish(TensorId last) {
    graph_.name = "chain";
    graph_.mark_output(add("after", UnaryAttributes{{Function::kAbs}}, {last}));
    return Model(std::make_shared<Graph>(std::move(graph_)));
  }

 private:
  Graph graph_;
  TensorId x_;
  TensorId before_;
};

class NumericsTest : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (GetParam() != std::string("cpu") && !testing::has_queue_lane()) {
      GTEST_SKIP() << "no OpenCL lane";
    }
  }
  // Ones, but for element `at`.
  static HostTensor ones(const Model& model, int64_t at, float value) {
    HostTensor input(DataType::kFloat32, model.inputs()[0].dims);
    std::fill_n(input.data<float>(), input.size(), 1.0f);
    input.data<float>()[at] = value;
    return input;
  }
  static Status run(const Model& model, const HostTensor& input) {
    SessionOptions options = real_lane_options(GetParam());
    options.check_numerics = true;
    const auto session = Session::create(model, real_platform(), options);
    if (!session.ok()) return session.status();
    std::vector<HostTensor> outputs;
    return (*session)->run({input}, &outputs);
  }
};

TEST_P(NumericsTest, FiniteNumbersPass) {
  Chain chain;
  const Model model = chain.finish(chain.add("exp", unary(Function::kExp), {chain.before()}));
  const Status status = run(model, ones(model, 0, 2));
  EXPECT_TRUE(status.ok()) << status.message();
}

TEST_P(NumericsTest, LogarithmOfANegativeNumber) {
  Chain chain;
  const Model model = chain.finish(chain.add("log", unary(Function::kLog), {chain.before()}));
  // Negated before: all arguments are negative but for one.
  const Status status = run(model, ones(model, 2 * 64 + 7, -1));
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(),
              AllOf(HasSubstr(" log is the first operator that makes a NaN"),
                    HasSubstr("255 NaN and 0 infinite of 256 values, the first NaN at [0, 0, 0]"),
                    HasSubstr("although its inputs are finite"), HasSubstr("on lane "),
                    Not(HasSubstr("after")), Not(HasSubstr("input x"))));
}

TEST_P(NumericsTest, LogarithmOfZeroIsAnInfinity) {
  Chain chain;
  const Model model = chain.finish(chain.add("log", unary(Function::kLog), {chain.before()}));
  HostTensor input = ones(model, 0, 0);
  for (int64_t i = 1; i < input.size(); ++i) input.data<float>()[i] = -2;
  const Status status = run(model, input);
  EXPECT_THAT(status.message(), AllOf(HasSubstr("log is the first operator that makes an infinity"),
                                      HasSubstr("the first infinity (-inf) at [0, 0, 0]")));
}

TEST_P(NumericsTest, ZeroOverZero) {
  Chain chain;
  const TensorId zero = chain.constant("zero", {1}, 0);
  const Model model = chain.finish(
      chain.add("ratio", BinaryAttributes{BinaryAttributes::Kind::kDiv, {Function::kRelu}},
                {chain.before(), zero}));
  HostTensor input = ones(model, 200, 0);
  const Status status = run(model, input);
  // One over zero is an infinity in other elements: -1 / 0 is a negative one, which relu takes
  // away.
  EXPECT_THAT(status.message(), AllOf(HasSubstr(" ratio is the first"), HasSubstr("makes a NaN"),
                                      HasSubstr("the first NaN at [0, 3, 8]")));
}

TEST_P(NumericsTest, ExponentialOverflows) {
  Chain chain;
  const Model model = chain.finish(chain.add("exp", unary(Function::kExp), {chain.before()}));
  const Status status = run(model, ones(model, 130, -100));
  EXPECT_THAT(status.message(),
              AllOf(HasSubstr(" exp is the first operator that makes an infinity"),
                    HasSubstr("0 NaN and 1 infinite of 256 values"),
                    HasSubstr("the first infinity (inf) at [0, 2, 2]")));
}

// The infinity is the fault of what made it, and the NaN comes of it further on.
TEST_P(NumericsTest, SoftmaxOfAnInfinity) {
  Chain chain;
  const TensorId exp = chain.add("exp", unary(Function::kExp), {chain.before()});
  const Model model = chain.finish(chain.add("softmax", SoftmaxAttributes{2}, {exp}));
  const Status status = run(model, ones(model, 130, -100));
  EXPECT_THAT(status.message(), HasSubstr(" exp is the first operator that makes an infinity"));
}

TEST_P(NumericsTest, SoftmaxOfAnInfiniteInput) {
  Chain chain;
  const Model model = chain.finish(chain.add("softmax", SoftmaxAttributes{2}, {chain.before()}));
  const Status status = run(model, ones(model, 130, -kInfinity));
  EXPECT_THAT(
      status.message(),
      AllOf(HasSubstr("input x holds 0 NaN and 1 infinite of 256 values, the first infinity "
                      "(-inf) at [0, 2, 2]"),
            HasSubstr("softmax softmax is the first operator that makes a NaN"),
            HasSubstr("while its input before holds 0 NaN and 1 infinite"),
            HasSubstr("64 NaN and 0 infinite")));
}

TEST_P(NumericsTest, NanInAnInput) {
  Chain chain;
  const Model model = chain.finish(chain.add("exp", unary(Function::kExp), {chain.before()}));
  const Status status = run(model, ones(model, 5, kNan));
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(), AllOf(HasSubstr("input x holds 1 NaN and 0 infinite"),
                                      HasSubstr("the first NaN at [0, 0, 5]"),
                                      Not(HasSubstr("is the first operator"))));
}

// Max pooling drops a NaN; that there was one is said all the same.
TEST_P(NumericsTest, NanThatIsSwallowed) {
  Graph graph;
  graph.name = "pool";
  const TensorId x = graph.add_input("x", DataType::kFloat32, {1, 16, 4, 4}, kImage);
  const TensorId log = graph.add("log", unary(Function::kLog), {x}, {}, kImage).value();
  PoolAttributes pool;
  pool.kernel = {4, 4};
  graph.mark_output(graph.add("pool", pool, {log}, {}, kImage).value());
  const Model model(std::make_shared<Graph>(std::move(graph)));
  const Status status = run(model, ones(model, 17, -1));
  EXPECT_THAT(status.message(), AllOf(HasSubstr(" log is the first operator that makes a NaN"),
                                      HasSubstr("at [0, 1, 0, 1]")));
}

TEST_P(NumericsTest, NanInAWeight) {
  Chain chain;
  const TensorId weight = chain.constant("scale", {64}, kNan);
  const Model model = chain.finish(chain.add(
      "mul", BinaryAttributes{BinaryAttributes::Kind::kMul, {}}, {chain.before(), weight}));
  EXPECT_THAT(run(model, ones(model, 0, 1)).message(),
              AllOf(HasSubstr("weight scale holds 64 NaN"), HasSubstr("read by mul"),
                    Not(HasSubstr("is the first operator"))));
}

// As masks have them.
TEST_P(NumericsTest, InfinitiesInWeights) {
  const auto make = [](bool with_softmax) {
    Chain chain;
    HostTensor mask(DataType::kFloat32, {64});
    mask.data<float>()[3] = -kInfinity;
    Graph graph;
    graph.name = "mask";
    const TensorId x = graph.add_input("x", DataType::kFloat32, {1, 4, 64});
    const TensorId m = graph.add_constant("mask", std::move(mask));
    TensorId last =
        graph.add("add", BinaryAttributes{BinaryAttributes::Kind::kAdd, {}}, {x, m}).value();
    if (with_softmax) last = graph.add("softmax", SoftmaxAttributes{2}, {last}).value();
    graph.mark_output(last);
    return Model(std::make_shared<Graph>(std::move(graph)));
  };
  const Model masked = make(true);
  const Status status = run(masked, ones(masked, 0, 1));
  EXPECT_TRUE(status.ok()) << status.message();
  const Model unmasked = make(false);
  EXPECT_THAT(run(unmasked, ones(unmasked, 0, 1)).message(),
              HasSubstr("weight mask holds 0 NaN and 1 infinite"));
}

INSTANTIATE_TEST_SUITE_P(Strategies, NumericsTest, ::testing::Values("cpu", "gpu", "intra"),
                         [](const auto& info) { return info.param; });

// --- which functions hand a NaN on ---

class NanTest : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (GetParam() == std::string("gpu") && !testing::has_queue_lane()) {
      GTEST_SKIP() << "no OpenCL lane";
    }
  }
  static HostTensor output_of(Graph graph, const HostTensor& input) {
    graph.name = "nan";
    const Model model(std::make_shared<Graph>(std::move(graph)));
    const auto session = Session::create(model, real_platform(), real_lane_options(GetParam()));
    EXPECT_TRUE(session.ok()) << session.status().message();
    std::vector<HostTensor> outputs(1);
    if (!session.ok()) return {};
    const Status status = (*session)->run({input}, &outputs);
    EXPECT_TRUE(status.ok()) << status.message();
    return outputs[0];
  }
};

// As ONNX Runtime has it.
TEST_P(NanTest, FunctionsOfOneValue) {
  for (int f = 0; f <= static_cast<int>(Function::kCos); ++f) {
    const Activation function{static_cast<Function>(f), 0.25f, 0.75f};
    Graph graph;
    const TensorId x = graph.add_input("x", DataType::kFloat32, {3, 37});
    graph.mark_output(graph.add("f", UnaryAttributes{function}, {x}).value());
    HostTensor input(DataType::kFloat32, {3, 37});
    std::fill_n(input.data<float>(), input.size(), 1.5f);
    for (const int64_t at : {0, 20, 36, 110}) input.data<float>()[at] = kNan;
    const HostTensor output = output_of(std::move(graph), input);
    for (int64_t i = 0; i < output.size(); ++i) {
      EXPECT_EQ(std::isnan(output.data<float>()[i]), std::isnan(input.data<float>()[i]))
          << to_string(function.function) << ", element " << i;
    }
  }
}

TEST_P(NanTest, MaximumAndMinimumOfTwo) {
  using Kind = BinaryAttributes::Kind;
  for (const Kind kind : {Kind::kMax, Kind::kMin}) {
    for (const bool nan_first : {true, false}) {
      Graph graph;
      const TensorId x = graph.add_input("x", DataType::kFloat32, {3, 37});
      const TensorId zero = graph.add_constant("zero", HostTensor(DataType::kFloat32, {3, 37}));
      const std::vector<TensorId> operands =
          nan_first ? std::vector<TensorId>{x, zero} : std::vector<TensorId>{zero, x};
      graph.mark_output(graph.add("m", BinaryAttributes{kind, {}}, operands).value());
      HostTensor input(DataType::kFloat32, {3, 37});
      for (const int64_t at : {0, 20, 36, 110}) input.data<float>()[at] = kNan;
      const HostTensor output = output_of(std::move(graph), input);
      for (int64_t i = 0; i < output.size(); ++i) {
        EXPECT_EQ(std::isnan(output.data<float>()[i]), std::isnan(input.data<float>()[i]))
            << (kind == Kind::kMax ? "max" : "min") << ", NaN first: " << nan_first << ", element "
            << i;
      }
    }
  }
}

// What is fused into convolutions and products.
TEST_P(NanTest, EpiloguesOfConvolutions) {
  struct Case {
    const char* name;
    int64_t channels, outputs, kernel, groups;
  };
  Random random(5);
  for (const Case& c : {Case{"1x1", 32, 48, 1, 1}, Case{"3x3", 32, 32, 3, 1},
                        Case{"7x7 of 3 channels", 3, 32, 7, 1}, Case{"depthwise", 32, 32, 3, 32},
                        Case{"grouped", 32, 32, 3, 4}}) {
    for (const Function function : {Function::kRelu, Function::kClip, Function::kSilu}) {
      Graph graph;
      const TensorId x = graph.add_input("x", DataType::kFloat32, {1, c.channels, 14, 14}, kImage);
      ConvAttributes conv;
      conv.kernel = {c.kernel, c.kernel};
      conv.groups = c.groups;
      conv.has_bias = true;
      conv.activation = {function, 0, 6};
      const TensorId w = graph.add_constant(
          "w",
          random_tensor(random, {c.outputs, c.channels / c.groups, c.kernel, c.kernel}, -1, 1));
      const TensorId b = graph.add_constant("b", random_tensor(random, {c.outputs}, -1, 1));
      graph.mark_output(graph.add("conv", conv, {x, w, b}, {}, kImage).value());
      HostTensor input = random_tensor(random, {1, c.channels, 14, 14}, -1, 1);
      input.data<float>()[6 * 14 + 6] = kNan;  // of channel 0
      const HostTensor output = output_of(std::move(graph), input);
      const int64_t reached =
          c.kernel * c.kernel * (c.groups == 1 ? c.outputs : c.outputs / c.groups);
      const int64_t nans = std::count_if(output.data<float>(), output.data<float>() + output.size(),
                                         [](float v) { return std::isnan(v); });
      // oneDNN's Relu and Clip turn a NaN into a number.
      const bool by_onednn = GetParam() == std::string("cpu") && function != Function::kSilu &&
                             c.channels > 3 && c.groups != c.channels;
      if (by_onednn) continue;
      // Transforms of whole tiles spread a NaN over the tile.
      EXPECT_GE(nans, reached) << c.name << ", " << to_string(function);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Lanes, NanTest, ::testing::Values("cpu", "gpu"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace tandem
