// Errors of Winograd convolutions on data that is hard on them, against double precision.
#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <random>

#include "fmt/format.h"
#include "graph/reference.h"
#include "gtest/gtest.h"
#include "lane/opencl/opencl_lane_impl.h"
#include "tests/lane/opencl/test_lane.h"

namespace tandem::opencl {
namespace {

constexpr int64_t kChannels = 64;
constexpr int64_t kOutputs = 32;
constexpr int64_t kExtent = 14;
constexpr Layout kImages{Order::kChannelsLast, true};

using Values = std::function<float(std::mt19937&, int64_t index)>;

float uniform(std::mt19937& generator, float low, float high) {
  return std::uniform_real_distribution<float>(low, high)(generator);
}

HostTensor tensor_of(const Dims& dims, const Values& values) {
  std::mt19937 generator(1);
  HostTensor tensor(DataType::kFloat32, dims);
  for (int64_t i = 0; i < tensor.size(); ++i) tensor.data<float>()[i] = values(generator, i);
  return tensor;
}

struct Data {
  const char* name;
  Values inputs;
  Values weights;
};

std::vector<Data> data() {
  const Values even = [](std::mt19937& g, int64_t) { return uniform(g, -1, 1); };
  // A second difference: what the transforms add up must cancel.
  const Values differences = [](std::mt19937&, int64_t i) {
    constexpr float kTaps[9] = {0, 1, 0, 1, -4, 1, 0, 1, 0};
    return kTaps[i % 9];
  };
  return {
      {"uniform", even, even},
      {"positive", [](std::mt19937& g, int64_t) { return uniform(g, 0, 1); },
       [](std::mt19937& g, int64_t) { return uniform(g, 0, 1); }},
      {"flat image, differences", [](std::mt19937& g, int64_t) { return 1 + uniform(g, 0, 1e-3f); },
       differences},
      {"one pixel in fifty a thousand times the rest",
       [](std::mt19937& g, int64_t) {
         return uniform(g, -1, 1) * (uniform(g, 0, 1) < 0.02f ? 1000.0f : 1.0f);
       },
       even},
      {"seven decades", [](std::mt19937& g, int64_t) { return std::exp(uniform(g, -8, 8)); }, even},
      {"alternating signs",
       [](std::mt19937& g, int64_t i) {
         const int64_t y = i / kExtent % kExtent;
         return ((i % kExtent + y) % 2 == 0 ? 1.0f : -1.0f) + uniform(g, 0, 1e-2f);
       },
       even},
  };
}

Graph conv_graph(const HostTensor& weights) {
  Graph graph;
  const TensorId x =
      graph.add_input("x", DataType::kFloat32, {1, kChannels, kExtent, kExtent}, kImages);
  const TensorId w = graph.add_constant("w", weights);
  const ConvAttributes conv{.kernel = {3, 3}, .pads = {1, 1, 1, 1}};
  const auto y = graph.add("conv", conv, {x, w}, {}, kImages);
  EXPECT_TRUE(y.ok()) << y.status().to_string();
  graph.mark_output(*y);
  return graph;
}

HostTensor run(LaneImpl* lane, const Graph& graph, const HostTensor& x, std::string* name) {
  HostTensor got;
  Memory memory(lane, graph);
  copy_to_view(x, memory.bindings[graph.inputs()[0]]);
  auto program = lane->load(graph, memory.bindings);
  if (!program.ok()) ADD_FAILURE() << program.status().to_string();
  if (!program.ok()) return got;
  auto task = (*program)->bind({0, kNone, 0, 0}, 0);
  if (!task.ok()) ADD_FAILURE() << task.status().to_string();
  if (!task.ok()) return got;
  *name = (*task)->info().name;
  EXPECT_TRUE((*task)->launch().ok());
  EXPECT_TRUE(lane->drain(Clock::now() + std::chrono::seconds(60)).ok());
  copy_from_view(memory.bindings[graph.op(0).output], got);
  return got;
}

// The largest sum of an output's absolute weights.
double weight_sum(const HostTensor& weights) {
  double most = 0;
  for (int64_t m = 0; m < kOutputs; ++m) {
    double sum = 0;
    for (int64_t i = 0; i < kChannels * 9; ++i) {
      sum += std::abs(static_cast<double>(weights.data<float>()[m * kChannels * 9 + i]));
    }
    most = std::max(most, sum);
  }
  return most;
}

// The largest input that an output pixel can share a patch of 6x6 with.
double largest_near(const HostTensor& x, int64_t y0, int64_t x0) {
  double most = 0;
  for (int64_t c = 0; c < kChannels; ++c) {
    for (int64_t y = std::max<int64_t>(0, y0 - 4); y <= std::min(kExtent - 1, y0 + 4); ++y) {
      for (int64_t i = std::max<int64_t>(0, x0 - 4); i <= std::min(kExtent - 1, x0 + 4); ++i) {
        const double value = x.data<float>()[(c * kExtent + y) * kExtent + i];
        most = std::max(most, std::abs(value));
      }
    }
  }
  return most;
}

// What winograd.h promises: no output is off by more than a few times epsilon of the largest input
// in its patch times the sum of its weights, whatever the data.
TEST(OpenClWinograd, ErrorOnHardData) {
  LaneImpl* lane = test_lane();
  ASSERT_NE(lane, nullptr);
  const DeviceTraits own = lane->traits();
  for (const Data& each : data()) {
    const HostTensor weights = tensor_of({kOutputs, kChannels, 3, 3}, each.weights);
    const HostTensor x = tensor_of({1, kChannels, kExtent, kExtent}, each.inputs);
    const Graph graph = conv_graph(weights);
    const std::vector<double> want =
        reference(graph, {x})[static_cast<size_t>(graph.op(0).output)].values;
    const double scale = weight_sum(weights) * std::numeric_limits<float>::epsilon();
    for (const auto& [outputs, bound] :
         std::vector<std::pair<int, double>>{{0, 8.0}, {2, 3.0}, {4, 7.0}}) {
      DeviceTraits traits = own;
      traits.single_item_groups = true;
      traits.winograd_outputs = outputs;
      lane->set_traits(traits);
      std::string name;
      const HostTensor got = run(lane, graph, x, &name);
      lane->set_traits(own);
      ASSERT_EQ(static_cast<size_t>(got.size()), want.size());
      EXPECT_EQ(name.find("cl_winograd") == 0, outputs > 0) << name;
      double worst = 0;
      for (size_t i = 0; i < want.size(); ++i) {
        const auto pixel = static_cast<int64_t>(i) % (kExtent * kExtent);
        const double largest = largest_near(x, pixel / kExtent, pixel % kExtent);
        worst = std::max(worst, std::abs(got.data<float>()[i] - want[i]) / (largest * scale));
      }
      RecordProperty(fmt::format("{}, {}", each.name, name), fmt::format("{:.3f}", worst));
      EXPECT_LT(worst, bound) << each.name << ", " << name;
    }
  }
}

}  // namespace
}  // namespace tandem::opencl
