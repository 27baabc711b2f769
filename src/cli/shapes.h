// The shapes of convolutions and matrix products, as `tandem zoo shapes` writes and `tandem bench
// op` reads them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "tandem/status.h"

namespace tandem::cli {

enum class Family : uint8_t {
  kConv,       // dense and grouped convolutions
  kDepthwise,  // as many groups as channels
  kLinear,     // n rows of c inputs times a constant matrix of c x m
  kMatMul,     // n products of h x c and c x m matrices that are both computed
};
const char* to_string(Family family);

// For linear layers and products, h, w, the kernel, strides, pads and groups are 1 or 0 unless said
// otherwise above.
struct OperatorShape {
  Family family = Family::kConv;
  int64_t n = 1;  // batch, rows or products
  int64_t c = 1;  // input channels or features
  int64_t h = 1;
  int64_t w = 1;
  int64_t m = 1;  // output channels or features
  Size2 kernel{1, 1};
  Size2 stride{1, 1};
  Size2 dilation{1, 1};
  Pads pads{0, 0, 0, 0};
  int64_t groups = 1;
  bool transpose_b = false;  // kMatMul: the second operand is m x c

  bool operator==(const OperatorShape&) const = default;
};
std::string to_string(const OperatorShape& shape);  // "conv 64x56x56 -> 64, 3x3"

struct CountedShape {
  OperatorShape shape;
  int count = 1;             // how often the network has it
  std::string network = {};  // as in `tandem zoo list`; empty where the file does not tell
};

// The distinct shapes of a graph in the order of their first appearance.
std::vector<CountedShape> shapes_of(const Graph& graph);

std::string to_csv(const std::string& network, const std::vector<CountedShape>& shapes);
// Refuses what is not such a file, naming the line. A file may begin with one column more, that
// names the network of each row. `label` names the file.
StatusOr<std::vector<CountedShape>> parse_csv(const std::string& text, const std::string& label);

// A graph that holds just this operator, with random constants where it has weights; its inputs
// come first. Layouts are those that convolutions and linear layers have within networks.
StatusOr<Graph> graph_of(const OperatorShape& shape);

}  // namespace tandem::cli
