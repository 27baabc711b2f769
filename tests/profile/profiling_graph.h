// A small graph with operators of many families, and lanes that only pretend to compute.
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <utility>

#include "graph/graph.h"
#include "lane/lane.h"
#include "support/clock.h"
#include "support/cpu_relax.h"

namespace tandem::testing {

inline Graph profiling_graph() {
  Graph graph;
  const Layout image{Order::kChannelsLast, true};
  const auto weights = [&](Dims dims) {
    return graph.add_constant("", HostTensor(DataType::kFloat32, std::move(dims)));
  };
  const auto conv = [&](TensorId x, int64_t channels, int64_t kernel, int64_t groups) {
    ConvAttributes conv;
    conv.kernel = {kernel, kernel};
    conv.pads = {kernel / 2, kernel / 2, kernel / 2, kernel / 2};
    conv.groups = groups;
    conv.has_bias = true;
    const int64_t inputs = graph.tensor(x).dims[1] / groups;
    return graph
        .add("", conv, {x, weights({channels, inputs, kernel, kernel}), weights({channels})}, {},
             image)
        .value();
  };
  const auto linear = [&](TensorId x, int64_t features) {
    LinearAttributes linear;
    linear.has_bias = true;
    return graph
        .add("", linear, {x, weights({graph.tensor(x).dims.back(), features}), weights({features})})
        .value();
  };
  const TensorId picture = graph.add_input("picture", DataType::kFloat32, {1, 16, 20, 20}, image);
  TensorId x = conv(picture, 48, 3, 1);
  x = conv(x, 48, 3, 48);
  const TensorId a = conv(x, 64, 1, 1);
  const TensorId b = conv(x, 64, 5, 1);
  x = conv(graph.add("", BinaryAttributes{}, {a, b}, {}, image).value(), 64, 3, 4);
  PoolAttributes pool;
  pool.kernel = pool.stride = {2, 2};
  graph.mark_output(graph.add("", pool, {x}, {1, 64, 10, 10}, image).value());
  const TensorId tokens = graph.add_input("tokens", DataType::kFloat32, {40, 96});
  const TensorId normal =
      graph.add("", LayerNormAttributes{}, {tokens, weights({96}), weights({96})}).value();
  const TensorId scores =
      graph.add("", MatMulAttributes{.transpose_b = true}, {normal, linear(normal, 96)}).value();
  graph.mark_output(linear(graph.add("", SoftmaxAttributes{.axis = 1}, {scores}).value(), 200));
  return graph;
}

// Slices take as long as `us` says, and change nothing.
class PretendingLane : public Lane {
 public:
  using Microseconds = std::function<double(const Graph&, const Slice&)>;

  PretendingLane(std::string name, Microseconds us) : us_(std::move(us)) {
    info_.name = std::move(name);
  }
  const LaneInfo& info() const override { return info_; }
  LaneInfo& mutable_info() { return info_; }
  Status enter() override { return {}; }
  StatusOr<std::unique_ptr<LaneProgram>> load(const Graph& graph, const TensorBindings&) override {
    return std::unique_ptr<LaneProgram>(std::make_unique<Program>(this, graph));
  }
  Status drain(Clock::time_point) override { return {}; }

  std::atomic<int64_t> launches = 0;

 private:
  class SliceTask : public Task {
   public:
    SliceTask(PretendingLane* lane, const Graph& graph, const Slice& slice, int threads)
        : lane_(lane), graph_(graph), slice_(slice) {
      info_.name = "pretended";
      info_.threads = threads > 0 ? threads : lane->info_.max_threads;
    }
    Status launch() override {
      ++lane_->launches;
      const double us = lane_->us_(graph_, slice_);
      const auto end = Clock::now() + std::chrono::nanoseconds(static_cast<int64_t>(us * 1e3));
      while (Clock::now() < end) cpu_relax();
      return {};
    }
    const ImplementationInfo& info() const override { return info_; }

   private:
    PretendingLane* lane_;
    const Graph& graph_;
    const Slice slice_;
    ImplementationInfo info_;
  };
  class Program : public LaneProgram {
   public:
    Program(PretendingLane* lane, const Graph& graph) : lane_(lane), graph_(graph) {}
    StatusOr<std::unique_ptr<Task>> bind(const Slice& slice, int threads) override {
      TANDEM_RETURN_IF_ERROR(check_slice(graph_, slice));
      return std::unique_ptr<Task>(std::make_unique<SliceTask>(lane_, graph_, slice, threads));
    }
    StatusOr<ImplementationInfo> implementation(const Slice& slice, int threads) const override {
      return SliceTask(lane_, graph_, slice, threads).info();
    }
    size_t bytes() const override { return 0; }

   private:
    PretendingLane* lane_;
    const Graph& graph_;
  };

  LaneInfo info_;
  const Microseconds us_;
};

}  // namespace tandem::testing
