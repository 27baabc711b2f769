#include "graph/passes/evaluate.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "graph/reference.h"

namespace tandem {
namespace {

// Elements walked by one dimension of a copy: `count` of them, `step` elements of the source apart,
// and `stride` elements of the output.
struct Walk {
  int64_t count = 1;
  int64_t step = 0;
  int64_t stride = 1;
};

// Both dimensions in small tiles, so that each side's cache lines are used up while they are warm:
// transposing a large weight matrix is what takes time here.
template <typename T>
void copy_plane(const T* from, T* to, const Walk& rows, const Walk& columns) {
  constexpr int64_t kTile = 32;
  for (int64_t r0 = 0; r0 < rows.count; r0 += kTile) {
    const int64_t r1 = std::min(r0 + kTile, rows.count);
    for (int64_t c0 = 0; c0 < columns.count; c0 += kTile) {
      const int64_t c1 = std::min(c0 + kTile, columns.count);
      for (int64_t r = r0; r < r1; ++r) {
        for (int64_t c = c0; c < c1; ++c) {
          to[r * rows.stride + c * columns.stride] = from[r * rows.step + c * columns.step];
        }
      }
    }
  }
}

template <typename T>
void copy_walks(const T* from, T* to, const std::vector<Walk>& walks, size_t d) {
  if (walks.size() - d <= 2) {
    const Walk rows = walks.size() - d == 2 ? walks[d] : Walk{};
    const Walk columns = walks.empty() ? Walk{} : walks.back();
    copy_plane(from, to, rows, columns);
    return;
  }
  for (int64_t i = 0; i < walks[d].count; ++i) {
    copy_walks(from + i * walks[d].step, to + i * walks[d].stride, walks, d + 1);
  }
}

template <typename T>
void run_copy(const CopyAttributes& copy, const HostTensor& x, HostTensor& y) {
  const Dims from = strides_of(x.dims, {.order = Order::kRowMajor, .padded = false});
  const Dims to = strides_of(y.dims, {.order = Order::kRowMajor, .padded = false});
  const T* start = x.data<T>();
  for (size_t a = 0; a < from.size(); ++a) start += copy.start[a] * from[a];
  std::vector<Walk> walks;
  for (size_t d = 0; d < y.dims.size(); ++d) {
    const int axis = copy.source_axis[d];
    walks.push_back({y.dims[d], axis == kNone ? 0 : copy.step[d] * from[axis], to[d]});
  }
  copy_walks(start, y.data<T>(), walks, 0);
}

// Bytes of everything inside one step along `axis`.
size_t inner_bytes(const HostTensor& tensor, int axis) {
  size_t bytes = element_size(tensor.type);
  for (size_t d = static_cast<size_t>(axis); d < tensor.dims.size(); ++d) bytes *= tensor.dims[d];
  return bytes;
}

void run_concat(const ConcatAttributes& concat, const std::vector<const Tensor*>& inputs,
                HostTensor& y) {
  const size_t row = inner_bytes(y, concat.axis);
  size_t offset = 0;
  for (const Tensor* input : inputs) {
    const HostTensor& x = *input->value;
    const size_t part = inner_bytes(x, concat.axis);
    for (size_t i = 0; i * row < y.bytes.size(); ++i) {
      std::memcpy(y.bytes.data() + i * row + offset, x.bytes.data() + i * part, part);
    }
    offset += part;
  }
}

void run_gather(const GatherAttributes& gather, const HostTensor& x, const HostTensor& indices,
                HostTensor& y) {
  const int64_t extent = x.dims[gather.axis];
  const size_t row = inner_bytes(x, gather.axis);
  const size_t item = row / static_cast<size_t>(extent);
  std::byte* to = y.bytes.data();
  for (const std::byte* from = x.bytes.data(); from != x.bytes.data() + x.bytes.size();
       from += row) {
    for (int64_t i = 0; i < indices.size(); ++i) {
      int64_t index = indices.data<int64_t>()[i];
      if (index < 0) index += extent;
      // Out of range is undefined in a graph, but must not read past the end.
      index = std::clamp<int64_t>(index, 0, extent - 1);
      std::memcpy(to, from + static_cast<size_t>(index) * item, item);
      to += item;
    }
  }
}

// By the reference interpreter, in a graph of this operator alone.
HostTensor run_reference(const Attributes& attributes, const std::vector<const Tensor*>& inputs,
                         const Shape& output) {
  Graph graph;
  std::vector<TensorId> ids;
  std::vector<ReferenceTensor> values;
  for (const Tensor* input : inputs) {
    ids.push_back(graph.add_constant("", input->value));
    values.push_back(to_reference(*input->value));
  }
  HostTensor y(output.type, output.dims);
  if (!graph.add("", attributes, ids, output.dims).ok()) return y;  // excluded by the contract
  std::vector<const ReferenceTensor*> pointers;
  pointers.reserve(values.size());
  for (const ReferenceTensor& value : values) pointers.push_back(&value);
  const ReferenceTensor result = reference(graph, 0, pointers);
  std::transform(result.values.begin(), result.values.end(), y.data<float>(),
                 [](double value) { return static_cast<float>(value); });
  return y;
}

}  // namespace

HostTensor evaluate(const Attributes& attributes, const std::vector<const Tensor*>& inputs,
                    const Shape& output) {
  if (std::holds_alternative<ReshapeAttributes>(attributes)) {
    HostTensor y = *inputs[0]->value;
    y.dims = output.dims;
    return y;
  }
  HostTensor y(output.type, output.dims);
  if (const auto* copy = std::get_if<CopyAttributes>(&attributes)) {
    if (output.type == DataType::kFloat32) {
      run_copy<float>(*copy, *inputs[0]->value, y);
    } else {
      run_copy<int64_t>(*copy, *inputs[0]->value, y);
    }
    return y;
  }
  if (const auto* concat = std::get_if<ConcatAttributes>(&attributes)) {
    run_concat(*concat, inputs, y);
    return y;
  }
  if (const auto* gather = std::get_if<GatherAttributes>(&attributes)) {
    run_gather(*gather, *inputs[0]->value, *inputs[1]->value, y);
    return y;
  }
  return run_reference(attributes, inputs, output);
}

}  // namespace tandem
