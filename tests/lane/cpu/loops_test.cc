// Everything but convolutions: the portable loops against the reference.
#include "lane/cpu/loops/loops.h"

#include "lane/cpu/loops/elementwise.h"
#include "tests/lane/cpu/harness.h"

namespace tandem::cpu {
namespace {

const Options kGaps{.input_gap = 16, .output_gap = 32};

void check_loops(const Case& c, const Implementation& implementation, const Options& options = {}) {
  EXPECT_TRUE(check(c, {&implementation}, options).contains(implementation.name()));
}

TEST(Unary, EveryFunction) {
  for (int i = 0; i <= static_cast<int>(Function::kCos); ++i) {
    const Function f = static_cast<Function>(i);
    SCOPED_TRACE(to_string(f));
    const bool positive = f == Function::kLog || f == Function::kSqrt || f == Function::kReciprocal;
    const float low = positive ? 0.1f : -6.0f;
    for (const Layout layout : {Case::kRows, Case::kChannelsLast}) {
      Case c;
      c.input({2, 21, 5, 7}, layout, low, 6).op(UnaryAttributes{{f, 0.3f, 0.6f}}, {}, layout);
      check_loops(c, elementwise_loops());
      check_loops(c, elementwise_loops(), kGaps);
    }
  }
}

TEST(Unary, BetweenLayouts) {
  Case c;
  c.input({1, 19, 6, 5}, Case::kRows)
      .op(UnaryAttributes{{Function::kTanh, 0, 0}}, {}, Case::kChannelsLast);
  check_loops(c, elementwise_loops());
}

// Relative error of the vectorised functions over ranges and at special values.
TEST(VectorMath, MatchesStd) {
  struct Check {
    Function f;
    double low, high;
    double (*expected)(double);
    double tolerance;
  };
  const Check checks[] = {
      {Function::kExp, -87, 88.7, [](double x) { return std::exp(x); }, 5e-7},
      {Function::kTanh, -12, 12, [](double x) { return std::tanh(x); }, 1e-6},
      {Function::kTanh, -0.01, 0.01, [](double x) { return std::tanh(x); }, 1e-6},
      {Function::kErf, -5, 5, [](double x) { return std::erf(x); }, 1e-6},
      {Function::kErf, -0.01, 0.01, [](double x) { return std::erf(x); }, 1e-6},
      {Function::kSigmoid, -80, 80, [](double x) { return 1 / (1 + std::exp(-x)); }, 1e-6},
      {Function::kElu, -80, 5, [](double x) { return x < 0 ? std::expm1(x) : x; }, 1e-6},
      {Function::kElu, -1e-3, 0, [](double x) { return std::expm1(x); }, 1e-6},
  };
  for (const Check& c : checks) {
    SCOPED_TRACE(to_string(c.f));
    std::vector<float> x(20001), y(x.size());
    for (size_t i = 0; i < x.size(); ++i) {
      x[i] = static_cast<float>(c.low + (c.high - c.low) * static_cast<double>(i) / 20000);
    }
    apply({c.f, 1, 0}, x.data(), y.data(), static_cast<int64_t>(x.size()));
    double worst = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      const double want = c.expected(x[i]);
      worst = std::max(worst, std::fabs(y[i] - want) / std::max(std::fabs(want), 1e-37));
    }
    EXPECT_LE(worst, c.tolerance);
  }
}

TEST(VectorMath, SpecialValues) {
  const float infinity = std::numeric_limits<float>::infinity();
  const float x[] = {infinity, -infinity, kNaN, 0, 100, -110};
  float y[6];
  apply({Function::kExp, 0, 0}, x, y, 6);
  EXPECT_EQ(y[0], infinity);
  EXPECT_EQ(y[1], 0);
  EXPECT_TRUE(std::isnan(y[2]));
  EXPECT_EQ(y[3], 1);
  EXPECT_EQ(y[4], infinity);
  EXPECT_EQ(y[5], 0);
  apply({Function::kTanh, 0, 0}, x, y, 6);
  EXPECT_EQ(y[0], 1);
  EXPECT_EQ(y[1], -1);
  EXPECT_TRUE(std::isnan(y[2]));
  apply({Function::kErf, 0, 0}, x, y, 6);
  EXPECT_EQ(y[0], 1);
  EXPECT_EQ(y[1], -1);
  EXPECT_TRUE(std::isnan(y[2]));
  apply({Function::kSigmoid, 0, 0}, x, y, 6);
  EXPECT_EQ(y[0], 1);
  EXPECT_EQ(y[1], 0);
  EXPECT_TRUE(std::isnan(y[2]));
  apply({Function::kElu, 1, 0}, x, y, 6);
  EXPECT_EQ(y[0], infinity);
  EXPECT_EQ(y[1], -1);
  EXPECT_TRUE(std::isnan(y[2]));
}

TEST(Binary, KindsAndBroadcasting) {
  using Kind = BinaryAttributes::Kind;
  for (const Kind kind :
       {Kind::kAdd, Kind::kSub, Kind::kMul, Kind::kDiv, Kind::kPow, Kind::kMax, Kind::kMin}) {
    const BinaryAttributes a{kind, {Function::kRelu, 0, 0}};
    for (const Dims& other : {Dims{2, 21, 4, 5}, Dims{1, 21, 1, 1}, Dims{1, 1, 1, 1}, Dims{5},
                              Dims{4, 1}, Dims{2, 1, 4, 5}}) {
      const Layout layout = other.size() == 4 ? Case::kChannelsLast : Case::kRows;
      Case c;
      c.input({2, 21, 4, 5}, Case::kChannelsLast, 0.5f, 2).input(other, layout, 0.5f, 2);
      c.op(a, {}, Case::kChannelsLast);
      check_loops(c, elementwise_loops());
      check_loops(c, elementwise_loops(), kGaps);
    }
    Case rows;
    rows.input({33}, Case::kRows, 0.5f, 2).input({3, 7, 33}, Case::kRows, 0.5f, 2).op(a);
    check_loops(rows, elementwise_loops());
    Case outer;
    outer.input({7, 1}, Case::kRows, 0.5f, 2).input({1, 300}, Case::kRows, 0.5f, 2).op(a);
    check_loops(outer, elementwise_loops());
  }
  Case square;
  square.input({3, 40}).constant(HostTensor::floats({1}, {2})).op(BinaryAttributes{Kind::kPow, {}});
  check_loops(square, elementwise_loops());
}

TEST(Pool, MatchesReference) {
  struct Shape {
    Dims x;
    PoolAttributes a;
  };
  using Kind = PoolAttributes::Kind;
  for (const Kind kind : {Kind::kMax, Kind::kAverage}) {
    for (const bool count_pads : {false, true}) {
      for (const Shape& s : std::vector<Shape>{
               {{1, 40, 9, 11}, {kind, {3, 3}, {2, 2}, {1, 1}, {1, 1, 1, 1}, count_pads}},
               {{2, 16, 8, 8}, {kind, {2, 2}, {2, 2}, {1, 1}, {0, 0, 0, 0}, count_pads}},
               {{1, 33, 7, 7}, {kind, {7, 7}, {1, 1}, {1, 1}, {0, 0, 0, 0}, count_pads}},
               {{1, 20, 12, 10}, {kind, {3, 2}, {1, 2}, {2, 1}, {2, 0, 1, 1}, count_pads}},
               {{1, 16, 13, 13}, {kind, {5, 5}, {1, 1}, {1, 1}, {2, 2, 2, 2}, count_pads}},
           }) {
        Case c;
        c.input(s.x, Case::kChannelsLast).op(s.a, {}, Case::kChannelsLast);
        check_loops(c, pool_loops());
        check_loops(c, pool_loops(), kGaps);
      }
    }
  }
}

TEST(Pool, CeilMode) {
  for (const auto kind : {PoolAttributes::Kind::kMax, PoolAttributes::Kind::kAverage}) {
    Case c;
    c.input({1, 16, 6, 6}, Case::kChannelsLast);
    c.op(PoolAttributes{kind, {3, 3}, {2, 2}, {1, 1}, {0, 0, 0, 0}, true}, {1, 16, 3, 3},
         Case::kChannelsLast);
    check_loops(c, pool_loops());
  }
}

TEST(Reduce, KindsAndAxes) {
  using Kind = ReduceAttributes::Kind;
  for (const Kind kind :
       {Kind::kMean, Kind::kSum, Kind::kMax, Kind::kMin, Kind::kProd, Kind::kL2}) {
    for (const std::vector<int>& axes :
         std::vector<std::vector<int>>{{2, 3}, {1}, {3}, {0, 2}, {0, 1, 2, 3}}) {
      for (const bool keep : {true, false}) {
        for (const Layout layout : {Case::kRows, Case::kChannelsLast}) {
          Case c;
          const bool rank4 = keep;
          c.input({2, 37, 5, 6}, layout, 0.5f, 1.5f);
          c.op(ReduceAttributes{kind, axes, keep}, {}, rank4 ? layout : Case::kRows);
          check_loops(c, reduce_loops(), {.tolerance = 1e-4});
        }
      }
    }
  }
}

TEST(Softmax, MatchesReference) {
  for (const bool log : {false, true}) {
    for (const int axis : {0, 1, 2}) {
      Case c;
      c.input({3, 17, 40}, Case::kRows, -5, 5).op(SoftmaxAttributes{axis, log});
      check_loops(c, row_loops());
      check_loops(c, row_loops(), kGaps);
    }
    Case image;
    image.input({1, 21, 5, 4}, Case::kChannelsLast)
        .op(SoftmaxAttributes{1, log}, {}, Case::kChannelsLast);
    check_loops(image, row_loops());
  }
}

TEST(LayerNorm, MatchesReference) {
  for (const Dims& dims : {Dims{7, 50}, Dims{2, 9, 768}, Dims{1, 3}}) {
    Case c;
    c.input(dims, Case::kRows, 1, 3).constant({dims.back()}).constant({dims.back()});
    c.op(LayerNormAttributes{1e-5f});
    check_loops(c, row_loops());
    check_loops(c, row_loops(), kGaps);
  }
}

TEST(Concat, AlongEveryAxis) {
  for (int axis = 0; axis < 4; ++axis) {
    Dims a = {2, 18, 4, 5}, b = a, d = a;
    b[axis] = 7;
    d[axis] = 1;
    Case c;
    c.input(a, Case::kChannelsLast).input(b, Case::kChannelsLast).input(d, Case::kChannelsLast);
    c.op(ConcatAttributes{axis}, {}, Case::kChannelsLast);
    check_loops(c, copy_loops());
    check_loops(c, copy_loops(), kGaps);
  }
}

TEST(Copy, TransposesSlicesExpandsAndConverts) {
  const auto rank = [](size_t n) { return Dims(n, 1); };
  {
    Case c;  // transpose
    c.input({3, 20, 33}).op(CopyAttributes{{2, 0, 1}, rank(3), {0, 0, 0}}, {33, 3, 20});
    check_loops(c, copy_loops());
    check_loops(c, copy_loops(), kGaps);
  }
  {
    Case c;  // layout conversions, both ways
    c.input({2, 19, 6, 18}, Case::kRows);
    c.op(CopyAttributes{{0, 1, 2, 3}, rank(4), {0, 0, 0, 0}}, {2, 19, 6, 18}, Case::kChannelsLast);
    check_loops(c, copy_loops());
    Case back;
    back.input({2, 40, 6, 18}, Case::kChannelsLast);
    back.op(CopyAttributes{{0, 1, 2, 3}, rank(4), {0, 0, 0, 0}}, {2, 40, 6, 18}, Case::kRows);
    check_loops(back, copy_loops());
  }
  {
    Case c;  // slice, with steps of both signs
    c.input({10, 30}).op(CopyAttributes{{0, 1}, {-2, 3}, {9, 1}}, {5, 9});
    check_loops(c, copy_loops());
  }
  {
    Case c;  // expand
    c.input({1, 25}).op(CopyAttributes{{kNone, 0, 1}, {1, 0, 1}, {0, 0}}, {3, 4, 25});
    check_loops(c, copy_loops());
    Case inner;
    inner.input({6, 1}).op(CopyAttributes{{0, kNone}, {1, 1}, {0, 0}}, {6, 20});
    check_loops(inner, copy_loops());
  }
}

TEST(Reshape, BetweenShapesAndLayouts) {
  for (const Dims& to : {Dims{2, 24 * 35}, Dims{48, 35}, Dims{2, 12, 2, 35}, Dims{1680}}) {
    for (const Layout layout : {Case::kRows, Case::kChannelsLast}) {
      Case c;
      c.input({2, 24, 5, 7}, layout).op(ReshapeAttributes{}, to);
      check_loops(c, copy_loops());
      check_loops(c, copy_loops(), kGaps);
    }
  }
  Case back;
  back.input({2, 33 * 6}).op(ReshapeAttributes{}, {2, 33, 2, 3}, Case::kChannelsLast);
  check_loops(back, copy_loops());
}

TEST(Gather, AlongEveryAxis) {
  for (int axis = 0; axis < 3; ++axis) {
    Case c;
    c.input({6, 8, 20}).indices({2, 3}, {0, 5, -1, 2, -6, 3}).op(GatherAttributes{axis});
    check_loops(c, copy_loops());
  }
  Case scalar;
  scalar.input({6, 20}).indices({}, {-2}).op(GatherAttributes{0});
  check_loops(scalar, copy_loops());
}

TEST(Gather, RefusesIndicesOutside) {
  Case c;
  c.input({6, 20}).indices({1}, {0}).op(GatherAttributes{0});
  Memory x(c.graph.tensor(c.inputs[0]), 0, 1), y(c.graph.output_of(0), 0, 0);
  Memory i(c.graph.tensor(c.inputs[1]), 0, 0);
  i.view().as<int64_t>()[0] = 6;
  Problem p;
  p.graph = &c.graph;
  p.op = &c.graph.op(0);
  p.slice = {0, kNone, 0, 0};
  p.region = output_region(c.graph, p.slice);
  p.inputs = {x.view(), i.view()};
  p.output = y.view();
  Resources resources;
  auto kernel = copy_loops().prepare(p, resources);
  ASSERT_TRUE(kernel.ok());
  EXPECT_EQ((*kernel)->run().code(), StatusCode::kInvalidArgument);
}

TEST(Pad, EveryMode) {
  using Mode = PadAttributes::Mode;
  for (const Mode mode : {Mode::kConstant, Mode::kReflect, Mode::kEdge}) {
    const PadAttributes a{mode, {0, 1, 2, 3}, {1, 0, 3, 1}, 0.5f};
    for (const Layout layout : {Case::kRows, Case::kChannelsLast}) {
      Case c;
      c.input({2, 20, 5, 6}, layout).op(a, {}, layout);
      check_loops(c, copy_loops());
      check_loops(c, copy_loops(), kGaps);
    }
  }
}

TEST(Resize, EveryMode) {
  using Mode = ResizeAttributes::Mode;
  using Coordinates = ResizeAttributes::Coordinates;
  for (const Mode mode : {Mode::kNearest, Mode::kLinear, Mode::kCubic}) {
    for (const Coordinates coordinates : {Coordinates::kHalfPixel, Coordinates::kPytorchHalfPixel,
                                          Coordinates::kAlignCorners, Coordinates::kAsymmetric}) {
      ResizeAttributes a;
      a.mode = mode;
      a.coordinates = coordinates;
      a.scale = {2, 1.5f};
      Case c;
      c.input({2, 20, 5, 6}, Case::kChannelsLast).op(a, {2, 20, 10, 9}, Case::kChannelsLast);
      check_loops(c, resize_loops());
      check_loops(c, resize_loops(), kGaps);
    }
  }
}

}  // namespace
}  // namespace tandem::cpu
