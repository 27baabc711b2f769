// Random graphs and random schedules for them.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "schedule/dependencies.h"
#include "schedule/schedule.h"
#include "tests/support/random.h"

namespace tandem::testing {

inline HostTensor random_tensor(Random& random, const Dims& dims, double low = -1,
                                double high = 1) {
  HostTensor tensor(DataType::kFloat32, dims);
  for (int64_t i = 0; i < tensor.size(); ++i) {
    tensor.data<float>()[i] = static_cast<float>(random.real(low, high));
  }
  return tensor;
}

inline std::vector<HostTensor> random_inputs(Random& random, const Graph& graph) {
  std::vector<HostTensor> inputs;
  for (TensorId id : graph.inputs()) inputs.push_back(random_tensor(random, graph.tensor(id).dims));
  return inputs;
}

// Grows a graph of images (channels-last) and tokens (row-major), an operator at a time. Values
// stay of order one, so that errors neither vanish nor explode over hundreds of operators.
class RandomGraph {
 public:
  explicit RandomGraph(Random& random) : random_(random) {
    images_.push_back(graph_.add_input("image", DataType::kFloat32, {1, 16, 6, 5}, kImage));
    images_.push_back(graph_.add_input("image2", DataType::kFloat32, {1, 32, 6, 5}, kImage));
    tokens_.push_back(graph_.add_input("tokens", DataType::kFloat32, {1, 9, 32}));
  }

  // Every tensor that nothing reads is an output.
  Graph grow(int operators) && {
    while (static_cast<int>(graph_.operators().size()) < operators) add_one();
    for (size_t t = 0; t < graph_.tensors().size(); ++t) {
      const Tensor& tensor = graph_.tensor(static_cast<TensorId>(t));
      if (tensor.kind == TensorKind::kActivation && tensor.consumers.empty()) {
        graph_.mark_output(static_cast<TensorId>(t));
      }
    }
    return std::move(graph_);
  }

 private:
  static constexpr Layout kImage{Order::kChannelsLast, true};

  // Mostly recent ones, so that graphs are deep as well as wide.
  TensorId pick(const std::vector<TensorId>& from) {
    const auto last = static_cast<int64_t>(from.size()) - 1;
    return from[random_.integer(random_.coin() ? std::max<int64_t>(0, last - 3) : 0, last)];
  }
  // Another of the same extents, or the same one.
  TensorId like(const std::vector<TensorId>& from, TensorId tensor) {
    std::vector<TensorId> alike;
    for (TensorId id : from) {
      if (graph_.tensor(id).dims == graph_.tensor(tensor).dims) alike.push_back(id);
    }
    return pick(alike);
  }
  TensorId weights(const Dims& dims, int64_t fan_in) {
    const double limit = 1 / std::sqrt(static_cast<double>(fan_in));
    return graph_.add_constant("", random_tensor(random_, dims, -limit, limit));
  }
  TensorId add(Attributes attributes, std::vector<TensorId> inputs, Dims dims = {},
               Layout layout = {}) {
    return graph_.add("", std::move(attributes), std::move(inputs), std::move(dims), layout)
        .value();
  }

  void add_one() {
    if (random_.integer(0, 9) < 6) {
      images_.push_back(add_image());
    } else {
      tokens_.push_back(add_tokens());
    }
  }

  TensorId add_image() {
    const TensorId x = pick(images_);
    const Dims dims = graph_.tensor(x).dims;
    switch (random_.integer(0, 6)) {
      case 0:
      case 1:
        return add_conv(x, random_.pick<int64_t>({16, 24, 32, 48}), random_.coin() ? 1 : 3, 1);
      case 2:
        return add_conv(x, dims[1], 3, dims[1]);
      case 3: {
        PoolAttributes pool;
        pool.kind = random_.coin() ? PoolAttributes::Kind::kMax : PoolAttributes::Kind::kAverage;
        pool.kernel = {3, 3};
        pool.pads = {1, 1, 1, 1};
        return add(pool, {x}, {}, kImage);
      }
      case 4:
        return add_unary(x, kImage);
      case 5: {
        BinaryAttributes binary;
        binary.activation.function = Function::kTanh;
        return add(binary, {x, like(images_, x)}, {}, kImage);
      }
      default:
        return add_concat(x);
    }
  }

  TensorId add_conv(TensorId x, int64_t channels, int64_t kernel, int64_t groups) {
    const int64_t per_group = graph_.tensor(x).dims[1] / groups;
    ConvAttributes conv;
    conv.kernel = {kernel, kernel};
    const int64_t pad = kernel / 2;
    conv.pads = {pad, pad, pad, pad};
    conv.groups = groups;
    conv.has_bias = random_.coin();
    conv.activation.function = random_.coin() ? Function::kRelu : Function::kIdentity;
    std::vector<TensorId> inputs{
        x, weights({channels, per_group, kernel, kernel}, per_group * kernel * kernel)};
    if (conv.has_bias) inputs.push_back(weights({channels}, 4));
    return add(conv, std::move(inputs), {}, kImage);
  }

  TensorId add_unary(TensorId x, Layout layout) {
    UnaryAttributes unary;
    unary.function.function =
        random_.pick({Function::kRelu, Function::kSigmoid, Function::kHardSwish});
    return add(unary, {x}, {}, layout);
  }

  // Operands without other readers as often as not: those can be made in place.
  TensorId add_concat(TensorId x) {
    const Dims dims = graph_.tensor(x).dims;
    std::vector<TensorId> operands;
    int64_t channels = 0;
    const int64_t count = random_.integer(2, 3);
    for (int64_t i = 0; i < count; ++i) {
      const TensorId operand =
          random_.coin() ? add_conv(x, random_.pick<int64_t>({16, 24, 32}), 1, 1) : pick(images_);
      const Dims& other = graph_.tensor(operand).dims;
      if (other[2] != dims[2] || other[3] != dims[3] || channels + other[1] > 96) continue;
      channels += other[1];
      operands.push_back(operand);
    }
    if (operands.empty()) operands.push_back(x);
    return add(ConcatAttributes{.axis = 1}, std::move(operands), {}, kImage);
  }

  TensorId add_tokens() {
    const TensorId x = pick(tokens_);
    const Dims dims = graph_.tensor(x).dims;
    switch (random_.integer(0, 6)) {
      case 0:
      case 1: {
        LinearAttributes linear;
        linear.has_bias = random_.coin();
        const int64_t columns = random_.pick<int64_t>({16, 32, 40});
        std::vector<TensorId> inputs{x, weights({dims[2], columns}, dims[2])};
        if (linear.has_bias) inputs.push_back(weights({columns}, 4));
        return add(linear, std::move(inputs));
      }
      case 2:
        return add(SoftmaxAttributes{.axis = 2}, {x});
      case 3:
        return add(LayerNormAttributes{}, {x, weights({dims[2]}, 1), weights({dims[2]}, 1)});
      case 4: {
        BinaryAttributes binary;
        binary.activation.function = Function::kTanh;
        return add(binary, {x, like(tokens_, x)});
      }
      case 5: {
        // To fewer rows or more: an alias where the layout allows it.
        const TensorId flat = add(ReshapeAttributes{}, {x}, {dims[0], 1, dims[1], dims[2]});
        return add(ReshapeAttributes{}, {add_unary(flat, {})}, dims);
      }
      default:
        return add_concat_rows(x);
    }
  }

  TensorId add_concat_rows(TensorId x) {
    const TensorId y = add_unary(x, {});
    const TensorId z = like(tokens_, x);
    if (graph_.tensor(x).dims[1] > 20) return y;
    return add(ConcatAttributes{.axis = 1}, {y, z == x ? add_unary(x, {}) : z});
  }

  Random& random_;
  Graph graph_;
  std::vector<TensorId> images_;
  std::vector<TensorId> tokens_;
};

inline Graph random_graph(Random& random, int operators) {
  return RandomGraph(random).grow(operators);
}

// The operator whole, or cut at random places along a random axis.
inline std::vector<Slice> random_partition(Random& random, const Graph& graph, OperatorId op) {
  const std::vector<PartitionAxis> axes = partition_axes(graph, op);
  if (axes.empty() || random.integer(0, 3) == 0) return {Slice{.op = op}};
  const PartitionAxis axis = axes[random.integer(0, static_cast<int64_t>(axes.size()) - 1)];
  const int64_t extent = graph.output_of(op).dims[axis.axis];
  std::vector<int64_t> cuts{0, extent};
  for (int64_t parts = random.integer(1, 3); parts > 0; --parts) {
    cuts.push_back(random.integer(0, (extent - 1) / axis.granularity) * axis.granularity);
  }
  std::sort(cuts.begin(), cuts.end());
  cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
  std::vector<Slice> slices;
  for (size_t i = 1; i < cuts.size(); ++i) slices.push_back({op, axis.axis, cuts[i - 1], cuts[i]});
  return slices;
}

// Random partitions, on random lanes, in a random order; without waits.
inline Schedule random_schedule_without_waits(Random& random, const Graph& graph, int lanes) {
  Dependencies dependencies(graph);
  std::vector<Slice> slices;
  for (size_t op = 0; op < graph.operators().size(); ++op) {
    if (!dependencies.placement().launched[op]) continue;
    for (const Slice& slice : random_partition(random, graph, static_cast<OperatorId>(op))) {
      dependencies.add({0, static_cast<int>(slices.size())}, slice);
      slices.push_back(slice);
    }
  }
  std::vector<std::vector<int>> readers(slices.size());
  std::vector<int> missing(slices.size(), 0);
  std::vector<int> ready;
  for (size_t i = 0; i < slices.size(); ++i) {
    for (Position p : dependencies.of(slices[i])) {
      readers[p.index].push_back(static_cast<int>(i));
      ++missing[i];
    }
    if (missing[i] == 0) ready.push_back(static_cast<int>(i));
  }
  Schedule schedule;
  schedule.strategy = "random";
  schedule.lanes.resize(lanes);
  while (!ready.empty()) {
    std::swap(ready[random.integer(0, static_cast<int64_t>(ready.size()) - 1)], ready.back());
    const int next = ready.back();
    ready.pop_back();
    ScheduledSlice scheduled;
    scheduled.slice = slices[next];
    schedule.lanes[random.integer(0, lanes - 1)].push_back(std::move(scheduled));
    for (int reader : readers[next]) {
      if (--missing[reader] == 0) ready.push_back(reader);
    }
  }
  return schedule;
}

inline Schedule random_schedule(Random& random, const Graph& graph, int lanes) {
  Schedule schedule = random_schedule_without_waits(random, graph, lanes);
  if (const Status derived = derive_waits(graph, &schedule); !derived.ok()) std::abort();
  return schedule;
}

}  // namespace tandem::testing
