// Layers divided between the two lanes of a platform's model, against every cut there is.
#include "simulate/layer_split.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "lane/sim/gpu_kernels.h"
#include "platform/platform_file.h"

namespace tandem::simulate {
namespace {

sim::PlatformModel phone(const std::string& name) {
  PlatformFileOptions options;
  options.lanes = {"cpu=little:2", "gpu=gpu"};
  StatusOr<sim::PlatformModel> model = load_platform(name, options);
  EXPECT_TRUE(model.ok()) << model.status().to_string();
  return *model;
}

Graph convolution(int64_t in, int64_t out) {
  Graph graph;
  const Layout image{Order::kChannelsLast, true};
  const TensorId x = graph.add_input("x", DataType::kFloat32, {1, in, 14, 14}, image);
  const TensorId w = graph.add_constant("w", HostTensor(DataType::kFloat32, {out, in, 3, 3}));
  ConvAttributes attributes;
  attributes.kernel = {3, 3};
  attributes.pads = {1, 1, 1, 1};
  graph.mark_output(*graph.add("conv", attributes, {x, w}, {}, image));
  return graph;
}

Graph linear(int64_t rows, int64_t in, int64_t out) {
  Graph graph;
  const TensorId x = graph.add_input("x", DataType::kFloat32, {rows, in});
  const TensorId w = graph.add_constant("w", HostTensor(DataType::kFloat32, {in, out}));
  graph.mark_output(*graph.add("linear", LinearAttributes{}, {x, w}));
  return graph;
}

// Microseconds of the CPU's channels [0, at) and the GPU's [at, end), both at once: written out
// from the operator's arithmetic, without workload_of().
double both_us(const sim::PlatformModel& model, sim::Workload whole, int64_t at, int threads) {
  const auto part = [&](int64_t channels) {
    sim::Workload work = whole;
    const double share = static_cast<double>(channels) / static_cast<double>(whole.out_channels);
    work.out_channels = channels;
    work.flops *= share;
    work.weight_elements *= share;
    work.output_elements *= share;
    return work;
  };
  const sim::Workload cpu = part(at);
  const sim::Workload gpu = part(whole.out_channels - at);
  const std::vector<sim::CoreGroup> cores = sim::cores_of(model.lanes[kCpu], threads);
  const sim::SliceTime cpu_alone = sim::cpu_slice_time(model, cores, cpu);
  const sim::SliceTime gpu_alone = sim::slice_time(model, kGpu, gpu);
  sim::Load beside_gpu;
  beside_gpu.memory_gbps = gpu_alone.dram_bytes / gpu_alone.us / 1e3;
  sim::Load beside_cpu;
  beside_cpu.memory_gbps = cpu_alone.dram_bytes / cpu_alone.us / 1e3;
  return std::max(sim::cpu_slice_time(model, cores, cpu, beside_gpu).us,
                  sim::slice_time(model, kGpu, gpu, 0, beside_cpu).us);
}

TEST(LayerSplit, CutsAreEveryThirtySecondThatTheGranularityAllows) {
  for (const int64_t out : {48, 64, 100, 512, 1000}) {
    const Graph graph = convolution(32, out);
    const DivisibleLayer layer(graph);
    const std::vector<PartitionAxis> axes = partition_axes(graph, layer.whole().op);
    const auto channels =
        std::find_if(axes.begin(), axes.end(), [](const auto& axis) { return axis.axis == 1; });
    ASSERT_NE(channels, axes.end());
    std::vector<int64_t> expected;
    for (int64_t at = 1; at < out; ++at) {
      if (at % channels->granularity != 0) continue;
      // The last place that may be cut, at or before one of the 31.
      for (int step = 1; step < 32; ++step) {
        const double wanted = static_cast<double>(out) * step / 32;
        if (static_cast<double>(at) <= wanted &&
            static_cast<double>(at + channels->granularity) > wanted) {
          expected.push_back(at);
          break;
        }
      }
    }
    std::vector<int64_t> found;
    for (const LayerCut& cut : layer.cuts()) {
      EXPECT_EQ(cut.cpu.begin, 0);
      EXPECT_EQ(cut.cpu.end, cut.gpu.begin);
      EXPECT_EQ(cut.gpu.end, out);
      EXPECT_TRUE(check_slice(graph, cut.cpu).ok());
      EXPECT_TRUE(check_slice(graph, cut.gpu).ok());
      found.push_back(cut.cpu.end);
    }
    EXPECT_EQ(found, expected) << out;
  }
}

TEST(LayerSplit, TheBestIsTheBestOfAllCuts) {
  for (const char* name : {"pixel4", "pixel5", "moto_edge_2022"}) {
    const sim::PlatformModel model = phone(name);
    for (const Graph& graph :
         {convolution(64, 96), convolution(128, 256), linear(50, 768, 640), linear(1, 512, 96)}) {
      const DivisibleLayer layer(graph);
      const sim::Workload whole = sim::workload_of(graph, layer.whole());
      const Dims& dims = graph.tensor(graph.outputs().front()).dims;
      const double bytes_per_channel =
          4.0 * static_cast<double>(element_count(dims)) / static_cast<double>(whole.out_channels);
      for (const Exchange& exchange : exchanges(model)) {
        for (const int threads : {1, 2}) {
          double best = std::min(alone_us(model, layer, kCpu, threads),
                                 alone_us(model, layer, kGpu, threads));
          for (const LayerCut& cut : layer.cuts()) {
            const double copied =
                static_cast<double>(whole.out_channels - cut.cpu.end) * bytes_per_channel;
            const double us = both_us(model, whole, cut.cpu.end, threads) + exchange.us +
                              copied * exchange.us_per_byte;
            EXPECT_NEAR(divided_us(model, layer, cut, threads, exchange), us, 1e-6 * us);
            best = std::min(best, us);
          }
          EXPECT_NEAR(best_us(model, layer, threads, exchange), best, 1e-6 * best)
              << name << " " << exchange.name;
        }
      }
    }
  }
}

// Why a GPU's part of a layer can take less than its share: docs/papers.md.
TEST(LayerSplit, APartMayFillItsWavesBetterThanTheLayer) {
  const sim::PlatformModel model = phone("pixel5");
  const auto plan = [&](int64_t channels) {
    const std::string text = "conv:7:320:7:" + std::to_string(channels) + ":1:1:1";
    return sim::plan_kernel(model.gpu, *sim::parse_workload(text), model.runtime.gpu_f16);
  };
  const sim::KernelPlan layer = plan(1280);
  const sim::KernelPlan part = plan(1008);
  EXPECT_EQ(layer.kernel, part.kernel);
  EXPECT_TRUE(std::equal(layer.block, layer.block + 4, part.block));
  const auto items = [](const sim::KernelPlan& plan) {
    return plan.group[0] * plan.group[1] * plan.group[2];
  };
  EXPECT_EQ(layer.groups, 16);
  EXPECT_EQ(items(layer), 160);
  EXPECT_EQ(layer.waves, 32);
  EXPECT_EQ(part.groups, 8);
  EXPECT_EQ(items(part), 252);
  EXPECT_EQ(part.waves, 16);
}

TEST(LayerSplit, ExchangesCostWhatTheDriverOffers) {
  const sim::PlatformModel fine = phone("pixel4");
  const std::vector<Exchange> shared = exchanges(fine);
  ASSERT_EQ(shared.size(), 3u);
  EXPECT_EQ(shared[0].us, std::max(fine.sync.svm.cpu_to_gpu, fine.sync.svm.gpu_to_cpu));
  EXPECT_EQ(shared[1].us, std::max(fine.sync.event.cpu_to_gpu, fine.sync.event.gpu_to_cpu));
  EXPECT_EQ(shared[2].us, fine.sync.event.gpu_to_cpu);
  EXPECT_EQ(shared[0].us_per_byte, 0);
  // Without fine-grained memory, what the GPU made is mapped and copied.
  const sim::PlatformModel coarse = phone("moto_edge_2022");
  const std::vector<Exchange> copied = exchanges(coarse);
  EXPECT_EQ(copied[0].us, coarse.sync.map_us + std::max(coarse.sync.finish.cpu_to_gpu,
                                                        coarse.sync.finish.gpu_to_cpu));
  EXPECT_GT(copied[0].us_per_byte, 0);
}

}  // namespace
}  // namespace tandem::simulate
