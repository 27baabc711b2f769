#include "cli/random_network.h"

#include <algorithm>

#include "fmt/format.h"
#include "support/random_numbers.h"
#include "zoo/graph_builder.h"

namespace tandem::cli {
namespace {

using zoo::Value;

struct Resolution {
  int64_t side;
  int64_t channels;
};
// As in the stages of ResNets and Inceptions.
constexpr Resolution kResolutions[] = {{56, 64}, {28, 128}, {17, 192}, {14, 256}};

class NetworkBuilder {
 public:
  NetworkBuilder(zoo::GraphBuilder* builder, uint64_t seed)
      : builder_(*builder),
        random_(seed),
        resolution_(kResolutions[random_.integer(0, std::size(kResolutions) - 1)]) {}

  void build(const std::vector<std::vector<int>>& topology) {
    const Value input =
        builder_.input("input", {1, resolution_.channels, resolution_.side, resolution_.side});
    std::vector<Value> values;
    std::vector<bool> is_read(topology.size(), false);
    for (size_t op = 0; op < topology.size(); ++op) {
      std::vector<Value> read;
      for (const int from : topology[op]) {
        read.push_back(values[from]);
        is_read[from] = true;
      }
      if (read.empty()) read.push_back(input);
      const auto scope = builder_.scope(fmt::format("op{}", op));
      values.push_back(add(read));
    }
    for (size_t op = 0; op < topology.size(); ++op) {
      if (!is_read[op]) builder_.output(values[op], fmt::format("output{}", op));
    }
  }

 private:
  Value add(const std::vector<Value>& read) {
    if (read.size() == 2 && read[0].dim(1) == read[1].dim(1) && random_.coin()) {
      return builder_.add(read[0], read[1]);
    }
    return layer(read.size() == 1 ? read[0] : builder_.concat(read, 1));
  }

  Value layer(const Value& x) {
    const int64_t draw = random_.integer(0, 9);
    const int64_t narrow = random_.integer(0, 3) == 0 ? 2 : 1;
    zoo::ConvOptions conv{.out = resolution_.channels / narrow, .bias = true};
    if (draw == 9) return builder_.max_pool(x, {.kernel = 3, .stride = 1, .pad = 1});
    if (draw >= 5) {
      conv.kernel = 3;
      conv.pad = 1;
    }
    if (draw >= 7) {
      conv.out = x.dim(1);
      conv.groups = x.dim(1);
    }
    return builder_.relu(builder_.conv(x, "conv", conv));
  }

  zoo::GraphBuilder& builder_;
  RandomNumbers random_;
  const Resolution resolution_;
};

}  // namespace

StatusOr<Model> random_network(GraphFamily family, int operators, uint64_t seed) {
  const std::string name = fmt::format("net-{}-{}-{}", to_string(family), operators, seed);
  zoo::GraphBuilder builder(name, seed, zoo::Weights::kGenerate);
  NetworkBuilder(&builder, seed).build(random_topology(family, operators, seed));
  TANDEM_ASSIGN_OR_RETURN(const onnx::ModelProto model, std::move(builder).finish());
  return Model::parse(model.SerializeAsString(), name);
}

}  // namespace tandem::cli
