#include "lane/sim/workload.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>
#include <utility>
#include <vector>

namespace tandem::sim {
namespace {

double elements(const Region& region) {
  double count = 1;
  for (const Range& range : region) count *= static_cast<double>(range.size());
  return count;
}

Family family_of(const Operator& op, int64_t in_channels) {
  switch (op.kind()) {
    case OperatorKind::kConv: {
      const auto groups = op.as<ConvAttributes>().groups;
      return groups > 1 && groups == in_channels ? Family::kDepthwise : Family::kConv;
    }
    case OperatorKind::kConvTranspose:
      return Family::kConv;
    case OperatorKind::kLinear:
      return Family::kLinear;
    case OperatorKind::kMatMul:
      return Family::kMatMul;
    case OperatorKind::kPool:
      return Family::kPool;
    case OperatorKind::kReduce:
      return Family::kReduce;
    case OperatorKind::kUnary:
    case OperatorKind::kBinary:
      return Family::kElementwise;
    case OperatorKind::kSoftmax:
    case OperatorKind::kLayerNorm:
      return Family::kNormalize;
    default:
      return Family::kMove;
  }
}

// Batch, channels, height and width of a region: images as they are, other tensors as rows of their
// last dimension.
struct Extents {
  int64_t batch = 1, channels = 1, height = 1, width = 1;
};

Extents extents_of(const Region& region, bool image) {
  Extents e;
  if (image) return {region[0].size(), region[1].size(), region[2].size(), region[3].size()};
  if (region.empty()) return e;
  e.channels = region.back().size();
  for (size_t i = 0; i + 1 < region.size(); ++i) e.height *= region[i].size();
  return e;
}

// MatMul: all dimensions but the last two are its batch.
void set_matmul(const MatMulAttributes& attributes, const Region& out, const Region& a,
                Workload* work) {
  const size_t rank = out.size();
  work->out_h = out[rank - 2].size();
  work->batch = 1;
  for (size_t i = 0; i + 2 < rank; ++i) work->batch *= out[i].size();
  work->in_h = work->out_h;
  work->in_channels = a[attributes.transpose_a ? rank - 2 : rank - 1].size();
}

template <typename T>
void set_window(const T& attributes, Workload* work) {
  work->kernel_h = attributes.kernel[0];
  work->kernel_w = attributes.kernel[1];
  work->stride = attributes.stride[0];
}

}  // namespace

const char* to_string(Family family) {
  constexpr std::array<const char*, 9> kNames = {"conv",        "depthwise", "linear",
                                                 "matmul",      "pool",      "reduce",
                                                 "elementwise", "normalize", "move"};
  return kNames[static_cast<size_t>(family)];
}

Workload workload_of(const Graph& graph, const Slice& slice) {
  const Operator& op = graph.op(slice.op);
  const Region out = output_region(graph, slice);
  Workload work;
  std::vector<Region> inputs;
  for (int i = 0; i < static_cast<int>(op.inputs.size()); ++i) {
    const Tensor& tensor = graph.input_of(slice.op, i);
    inputs.push_back(input_region(graph, slice.op, i, out));
    if (inputs.back().empty() && !tensor.dims.empty()) continue;
    if (tensor.kind == TensorKind::kConstant) {
      work.weight_elements += elements(inputs.back());
    } else {
      work.input_elements += elements(inputs.back());
      if (i > 0) ++work.operands;
    }
  }
  work.output_elements = elements(out);
  work.flops = work_of(graph, slice).flops;
  const bool image = graph.output_of(slice.op).dims.size() == 4;
  const Extents o = extents_of(out, image);
  work.batch = o.batch;
  work.out_h = o.height;
  work.out_w = o.width;
  work.out_channels = o.channels;
  if (!inputs.empty()) {
    const Extents i = extents_of(inputs[0], inputs[0].size() == 4);
    work.in_h = i.height;
    work.in_w = i.width;
    work.in_channels = i.channels;
  }
  work.family = family_of(op, graph.input_of(slice.op, 0).dims.size() == 4
                                  ? graph.input_of(slice.op, 0).dims[1]
                                  : work.in_channels);
  if (op.kind() == OperatorKind::kConv) {
    set_window(op.as<ConvAttributes>(), &work);
    const int64_t groups = op.as<ConvAttributes>().groups;
    // Of a slice of channels, only the groups that it computes.
    const int64_t whole = graph.output_of(slice.op).dims[1];
    work.groups = std::max<int64_t>(1, groups * work.out_channels / whole);
    if (groups > 1) {
      work.in_channels = graph.input_of(slice.op, 0).dims[1] / groups * work.groups;
    }
  } else if (op.kind() == OperatorKind::kConvTranspose) {
    set_window(op.as<ConvTransposeAttributes>(), &work);
    // Each output pixel is made of one in stride * stride of the window's elements.
    work.kernel_h = std::max<int64_t>(1, work.kernel_h / work.stride);
    work.kernel_w = std::max<int64_t>(1, work.kernel_w / work.stride);
  } else if (op.kind() == OperatorKind::kPool) {
    // Pooling over the whole image is a mean.
    if (work.out_h * work.out_w == 1) {
      work.family = Family::kReduce;
    } else {
      set_window(op.as<PoolAttributes>(), &work);
    }
  } else if (op.kind() == OperatorKind::kMatMul) {
    set_matmul(op.as<MatMulAttributes>(), out, inputs[0], &work);
  }
  return work;
}

namespace {

// "56", or "56x28": height and width.
struct Pair {
  int64_t height = 0, width = 0;
};

bool parse_pair(std::string_view text, Pair* pair) {
  const auto number = [](std::string_view digits, int64_t* value) {
    const char* end = digits.data() + digits.size();
    const auto [last, error] = std::from_chars(digits.data(), end, *value);
    return error == std::errc() && last == end && *value >= 0;
  };
  const size_t cross = text.find('x');
  if (!number(text.substr(0, cross), &pair->height)) return false;
  pair->width = pair->height;
  return cross == std::string_view::npos || number(text.substr(cross + 1), &pair->width);
}

std::string pair_text(int64_t height, int64_t width) {
  return height == width ? fmt::format("{}", height) : fmt::format("{}x{}", height, width);
}

constexpr std::array<std::pair<const char*, Family>, 9> kFamilies = {
    {{"conv", Family::kConv},
     {"depthwise", Family::kDepthwise},
     {"linear", Family::kLinear},
     {"matmul", Family::kMatMul},
     {"pool", Family::kPool},
     {"mean", Family::kReduce},
     {"elementwise", Family::kElementwise},
     {"normalize", Family::kNormalize},
     {"concat", Family::kMove}}};

// Elements and operations from the extents.
void derive_work(Workload* w) {
  const auto per_image = static_cast<double>(w->batch);
  w->input_elements = per_image * static_cast<double>(w->in_h * w->in_w * w->in_channels);
  w->output_elements = per_image * static_cast<double>(w->out_h * w->out_w * w->out_channels);
  switch (w->family) {
    case Family::kConv:
    case Family::kDepthwise:
    case Family::kLinear:
      w->weight_elements = w->depth() * static_cast<double>(w->out_channels);
      w->flops = 2 * w->output_elements * w->depth();
      break;
    case Family::kMatMul:
      w->input_elements += w->depth() * per_image * static_cast<double>(w->out_channels);
      w->flops = 2 * w->output_elements * w->depth();
      break;
    case Family::kPool:
      w->flops = w->output_elements * static_cast<double>(w->kernel_h * w->kernel_w);
      break;
    case Family::kReduce:
      w->flops = w->input_elements;
      break;
    case Family::kElementwise:
      w->flops = w->output_elements;
      w->input_elements = w->output_elements * static_cast<double>(w->operands);
      break;
    case Family::kNormalize:
      w->flops = w->output_elements;
      break;
    case Family::kMove:
      w->input_elements = w->output_elements;
      break;
  }
}

}  // namespace

StatusOr<Workload> parse_workload(const std::string& text) {
  const auto wrong = [&](const std::string& why) {
    return invalid_argument(fmt::format(
        "'{}' is not family:input size:input channels:output size:output channels:kernel:stride:"
        "groups: {}",
        text, why));
  };
  const size_t colon = text.find(':');
  const std::string name = text.substr(0, colon);
  std::vector<Pair> n;
  for (size_t at = colon; at < text.size();) {
    const size_t end = std::min(text.find(':', at + 1), text.size());
    if (!parse_pair(std::string_view(text).substr(at + 1, end - at - 1), &n.emplace_back())) {
      return wrong("its numbers must be integers");
    }
    at = end;
  }
  if (n.size() != 7) return wrong(fmt::format("it has {} numbers", n.size()));
  const auto* family = std::find_if(kFamilies.begin(), kFamilies.end(),
                                    [&](const auto& known) { return name == known.first; });
  if (family == kFamilies.end()) return wrong("there is no family '" + name + "'");
  Workload w;
  w.family = family->second;
  w.in_h = n[0].height;
  w.in_w = n[0].width;
  w.in_channels = n[1].height;
  w.out_h = n[2].height;
  w.out_w = n[2].width;
  w.out_channels = n[3].height;
  w.stride = n[5].height;
  const int64_t last = std::max<int64_t>(1, n[6].height);
  if (w.family == Family::kMove) {
    w.operands = std::max<int64_t>(1, n[4].height);
  } else if (w.family == Family::kElementwise) {
    w.operands = last;
  } else if (w.family != Family::kReduce && w.family != Family::kNormalize) {
    w.kernel_h = n[4].height;
    w.kernel_w = n[4].width;
    (w.family == Family::kMatMul ? w.batch : w.groups) = last;
  }
  if (w.in_channels < 1 || w.out_channels < 1 || w.out_h < 1 || w.out_w < 1 || w.kernel_h < 1 ||
      w.kernel_w < 1) {
    return wrong("its sizes must be at least 1");
  }
  if (w.in_channels % w.groups != 0 || w.out_channels % w.groups != 0) {
    return wrong("groups must divide the channels");
  }
  derive_work(&w);
  return w;
}

std::string to_text(const Workload& w) {
  const auto* family = std::find_if(kFamilies.begin(), kFamilies.end(),
                                    [&](const auto& known) { return known.second == w.family; });
  std::string kernel = pair_text(w.kernel_h, w.kernel_w);
  int64_t last = w.groups;
  if (w.family == Family::kMove) kernel = fmt::format("{}", w.operands);
  if (w.family == Family::kElementwise) last = w.operands;
  if (w.family == Family::kMatMul) last = w.batch;
  return fmt::format("{}:{}:{}:{}:{}:{}:{}:{}", family->first, pair_text(w.in_h, w.in_w),
                     w.in_channels, pair_text(w.out_h, w.out_w), w.out_channels, kernel, w.stride,
                     last);
}

}  // namespace tandem::sim
