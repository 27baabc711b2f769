#include "cli/shapes.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "cli/random_tensor.h"
#include "fmt/format.h"
#include "graph/passes/layout.h"

namespace tandem::cli {
namespace {

constexpr std::string_view kHeader =
    "family,n,c,h,w,m,kernel_h,kernel_w,stride_h,stride_w,dilation_h,dilation_w,pad_top,pad_left,"
    "pad_bottom,pad_right,groups,transpose_b,count";

// Of files whose rows name their networks, before the rest.
constexpr std::string_view kNetworkColumn = "network,";

// Every integer of a row between family and count, in the order of kHeader.
template <typename Shape, typename Visitor>
void visit_fields(Shape& shape, Visitor visit) {
  visit(shape.n);
  visit(shape.c);
  visit(shape.h);
  visit(shape.w);
  visit(shape.m);
  for (auto& extent : shape.kernel) visit(extent);
  for (auto& extent : shape.stride) visit(extent);
  for (auto& extent : shape.dilation) visit(extent);
  for (auto& extent : shape.pads) visit(extent);
  visit(shape.groups);
}

std::optional<OperatorShape> shape_of(const Graph& graph, const Operator& op) {
  OperatorShape shape;
  const Dims& out = graph.tensor(op.output).dims;
  const Dims& in = graph.tensor(op.inputs[0]).dims;
  if (op.kind() == OperatorKind::kConv) {
    const auto& conv = op.as<ConvAttributes>();
    shape.n = in[0];
    shape.c = in[1];
    shape.h = in[2];
    shape.w = in[3];
    shape.m = out[1];
    shape.kernel = conv.kernel;
    shape.stride = conv.stride;
    shape.dilation = conv.dilation;
    shape.pads = conv.pads;
    shape.groups = conv.groups;
    const bool depthwise = shape.groups > 1 && shape.groups == shape.c && shape.c == shape.m;
    shape.family = depthwise ? Family::kDepthwise : Family::kConv;
    return shape;
  }
  if (op.kind() == OperatorKind::kLinear) {
    shape.family = Family::kLinear;
    shape.c = in.back();
    shape.m = out.back();
    shape.n = element_count(out) / shape.m;
    return shape;
  }
  if (op.kind() == OperatorKind::kMatMul) {
    const auto& product = op.as<MatMulAttributes>();
    shape.family = Family::kMatMul;
    shape.m = out.back();
    shape.h = out[out.size() - 2];
    shape.c = product.transpose_a ? in[in.size() - 2] : in.back();
    shape.n = element_count(out) / (shape.m * shape.h);
    shape.transpose_b = product.transpose_b;
    return shape;
  }
  return std::nullopt;
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const size_t at = text.find(separator);
    parts.push_back(text.substr(0, at));
    if (at == std::string_view::npos) return parts;
    text.remove_prefix(at + 1);
  }
}

std::optional<Family> parse_family(std::string_view text) {
  for (const Family family :
       {Family::kConv, Family::kDepthwise, Family::kLinear, Family::kMatMul}) {
    if (text == to_string(family)) return family;
  }
  return std::nullopt;
}

// The row's shape, or what is wrong with it.
StatusOr<CountedShape> parse_row(std::string_view line) {
  const std::vector<std::string_view> cells = split(line, ',');
  const size_t columns = split(kHeader, ',').size();
  if (cells.size() != columns) {
    return corrupt(fmt::format("{} columns instead of {}", cells.size(), columns));
  }
  CountedShape row;
  const std::optional<Family> family = parse_family(cells[0]);
  if (!family) return corrupt(fmt::format("no operator family is called '{}'", cells[0]));
  row.shape.family = *family;

  // Large enough for any network, small enough that products of extents do not overflow.
  constexpr int64_t kMost = 1 << 20;
  Status status;
  size_t column = 1;
  const auto read = [&](int64_t least) {
    const std::string_view cell = cells[column++];
    int64_t value = 0;
    const auto [after, error] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
    if (status.ok() && (error != std::errc() || after != cell.data() + cell.size() ||
                        value < least || value > kMost)) {
      status = corrupt(fmt::format("'{}' in column {}: an integer from {} to {} is needed", cell,
                                   column, least, kMost));
    }
    return value;
  };
  constexpr size_t kFirstPad = 12;
  constexpr size_t kLastPad = 15;
  visit_fields(row.shape, [&](int64_t& field) {
    field = read(column >= kFirstPad && column <= kLastPad ? 0 : 1);
  });
  row.shape.transpose_b = read(0) != 0;
  row.count = static_cast<int>(read(1));
  if (!status.ok()) return status;
  if (row.shape.c % row.shape.groups != 0 || row.shape.m % row.shape.groups != 0) {
    return corrupt("channels are no multiple of groups");
  }
  return row;
}

// Scaled so that results stay of order one.
TensorId add_weights(Graph& graph, const char* name, Dims dims, int64_t fan_in) {
  return graph.add_constant(
      name, random_tensor(DataType::kFloat32, std::move(dims), name,
                          static_cast<float>(1 / std::sqrt(static_cast<double>(fan_in)))));
}

Status add_operator(const OperatorShape& shape, Graph& graph) {
  const Layout channels_last{Order::kChannelsLast, true};
  const Layout row_major{Order::kRowMajor, true};
  const auto finish = [&graph](StatusOr<TensorId> output) -> Status {
    TANDEM_RETURN_IF_ERROR(output.status());
    graph.mark_output(*output);
    return {};
  };
  switch (shape.family) {
    case Family::kConv:
    case Family::kDepthwise: {
      ConvAttributes conv;
      conv.kernel = shape.kernel;
      conv.stride = shape.stride;
      conv.dilation = shape.dilation;
      conv.pads = shape.pads;
      conv.groups = shape.groups;
      conv.has_bias = true;
      const int64_t channels = shape.c / shape.groups;
      const TensorId x =
          graph.add_input("x", DataType::kFloat32, {shape.n, shape.c, shape.h, shape.w},
                          convolution_input_layout(shape.c));
      const TensorId w =
          add_weights(graph, "w", {shape.m, channels, shape.kernel[0], shape.kernel[1]},
                      channels * shape.kernel[0] * shape.kernel[1]);
      const TensorId b = add_weights(graph, "b", {shape.m}, 1);
      return finish(graph.add("op", conv, {x, w, b}, {}, channels_last));
    }
    case Family::kLinear: {
      LinearAttributes linear;
      linear.has_bias = true;
      const TensorId x = graph.add_input("x", DataType::kFloat32, {shape.n, shape.c}, row_major);
      const TensorId w = add_weights(graph, "w", {shape.c, shape.m}, shape.c);
      const TensorId b = add_weights(graph, "b", {shape.m}, 1);
      return finish(graph.add("op", linear, {x, w, b}, {}, row_major));
    }
    case Family::kMatMul: {
      MatMulAttributes product;
      product.transpose_b = shape.transpose_b;
      const TensorId a =
          graph.add_input("a", DataType::kFloat32, {shape.n, shape.h, shape.c}, row_major);
      const Dims b_dims =
          shape.transpose_b ? Dims{shape.n, shape.m, shape.c} : Dims{shape.n, shape.c, shape.m};
      const TensorId b = graph.add_input("b", DataType::kFloat32, b_dims, row_major);
      return finish(graph.add("op", product, {a, b}, {}, row_major));
    }
  }
  return internal_error("an operator family without a graph");
}

}  // namespace

const char* to_string(Family family) {
  switch (family) {
    case Family::kConv:
      return "conv";
    case Family::kDepthwise:
      return "depthwise";
    case Family::kLinear:
      return "linear";
    case Family::kMatMul:
      return "matmul";
  }
  return "unknown";
}

std::string to_string(const OperatorShape& shape) {
  if (shape.family == Family::kLinear) {
    return fmt::format("linear {}x{} -> {}", shape.n, shape.c, shape.m);
  }
  if (shape.family == Family::kMatMul) {
    return fmt::format("matmul {}x[{}x{} * {}x{}{}]", shape.n, shape.h, shape.c, shape.c, shape.m,
                       shape.transpose_b ? "^T" : "");
  }
  std::string text = fmt::format("{} {}x{}x{} -> {}, {}x{}", to_string(shape.family), shape.c,
                                 shape.h, shape.w, shape.m, shape.kernel[0], shape.kernel[1]);
  if (shape.n > 1) text += fmt::format(", batch {}", shape.n);
  if (shape.stride != Size2{1, 1}) text += fmt::format(" /{}", shape.stride[0]);
  if (shape.dilation != Size2{1, 1}) text += fmt::format(", dilation {}", shape.dilation[0]);
  if (shape.family == Family::kConv && shape.groups > 1) {
    text += fmt::format(", {} groups", shape.groups);
  }
  return text;
}

std::vector<CountedShape> shapes_of(const Graph& graph) {
  std::vector<CountedShape> shapes;
  for (const Operator& op : graph.operators()) {
    const std::optional<OperatorShape> shape = shape_of(graph, op);
    if (!shape) continue;
    const auto known = std::find_if(shapes.begin(), shapes.end(),
                                    [&shape](const CountedShape& s) { return s.shape == *shape; });
    if (known != shapes.end()) {
      ++known->count;
    } else {
      shapes.push_back({*shape, 1});
    }
  }
  return shapes;
}

std::string to_csv(const std::string& network, const std::vector<CountedShape>& shapes) {
  std::string text = fmt::format(
      "# Distinct convolutions and matrix products of {0}, as 'tandem zoo shapes {0}' prints "
      "them.\n"
      "# conv, depthwise: n,c,h,w is the input and m the output's channels. linear: n rows of c\n"
      "# inputs, m outputs. matmul: n products of h x c and c x m matrices. count: how often.\n"
      "{1}\n",
      network, kHeader);
  for (const CountedShape& row : shapes) {
    text += to_string(row.shape.family);
    visit_fields(row.shape, [&text](int64_t field) { text += fmt::format(",{}", field); });
    text += fmt::format(",{},{}\n", row.shape.transpose_b ? 1 : 0, row.count);
  }
  return text;
}

StatusOr<std::vector<CountedShape>> parse_csv(const std::string& text, const std::string& label) {
  std::vector<CountedShape> shapes;
  bool header = false;
  bool has_networks = false;
  int number = 0;
  for (std::string_view line : split(text, '\n')) {
    ++number;
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty() || line.starts_with('#')) continue;
    if (!header) {
      has_networks = line.starts_with(kNetworkColumn);
      if (has_networks) line.remove_prefix(kNetworkColumn.size());
      if (line != kHeader) {
        return corrupt(fmt::format("{}:{}: not a file of shapes: its header should be {}", label,
                                   number, kHeader));
      }
      header = true;
      continue;
    }
    std::string network;
    if (has_networks) {
      const size_t end = std::min(line.find(','), line.size());
      network = line.substr(0, end);
      line.remove_prefix(std::min(end + 1, line.size()));
    }
    const StatusOr<CountedShape> row = parse_row(line);
    if (!row.ok()) return row.status().with_context(fmt::format("{}:{}", label, number));
    shapes.push_back(*row);
    shapes.back().network = std::move(network);
  }
  if (shapes.empty())
    return corrupt(label +
                   ": no shapes in it; 'tandem zoo shapes NAME -o FILE' writes such a file");
  return shapes;
}

StatusOr<Graph> graph_of(const OperatorShape& shape) {
  Graph graph;
  graph.name = to_string(shape);
  TANDEM_RETURN_IF_ERROR(add_operator(shape, graph).with_context(graph.name));
  TANDEM_RETURN_IF_ERROR(graph.validate().with_context(graph.name));
  return graph;
}

}  // namespace tandem::cli
