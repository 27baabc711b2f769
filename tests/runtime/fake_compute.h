// What fake lanes compute with: the reference, on bound memory.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "graph/reference.h"
#include "lane/lane.h"

namespace tandem::testing {

inline float to_float(double value) { return static_cast<float>(value); }

// Calls f(flat index, element offset) for every element of the region.
template <typename F>
void for_each_element(const Region& region, const TensorView& view, const F& f) {
  if (is_empty(region)) return;
  Dims index;
  for (const Range& range : region) index.push_back(range.begin);
  while (true) {
    int64_t flat = 0;
    int64_t offset = 0;
    for (size_t d = 0; d < index.size(); ++d) {
      flat = flat * view.dims[d] + index[d];
      offset += index[d] * view.strides[d];
    }
    f(flat, offset);
    size_t d = index.size();
    while (d > 0 && ++index[d - 1] == region[d - 1].end) {
      index[d - 1] = region[d - 1].begin;
      --d;
    }
    if (d == 0) return;
  }
}

// Computes a slice from exactly the elements that the region rules say it reads (all others are
// NaN), and writes exactly the slice; operands of a concat that lie in its output are left alone.
inline void compute_slice(const Graph& graph, const TensorBindings& bindings, const Slice& slice) {
  const Operator& op = graph.op(slice.op);
  const Region region = output_region(graph, slice);
  const TensorView& output = bindings[op.output];
  std::vector<ReferenceTensor> inputs;
  std::vector<const ReferenceTensor*> pointers;
  std::vector<Region> in_place;
  int64_t concat_offset = 0;
  for (size_t i = 0; i < op.inputs.size(); ++i) {
    const Tensor& tensor = graph.tensor(op.inputs[i]);
    if (tensor.kind == TensorKind::kConstant) {
      inputs.push_back(to_reference(*tensor.value));
    } else {
      const TensorView& view = bindings[op.inputs[i]];
      ReferenceTensor input{tensor.dims,
                            std::vector<double>(element_count(tensor.dims),
                                                std::numeric_limits<double>::quiet_NaN())};
      bool skip = false;
      if (op.kind() == OperatorKind::kConcat) {
        const int axis = op.as<ConcatAttributes>().axis;
        Region place = whole_region(output.dims);
        place[axis] = {concat_offset, concat_offset + tensor.dims[axis]};
        skip = view.data == output.as<float>() + concat_offset * output.strides[axis];
        if (skip) in_place.push_back(place);
        concat_offset += tensor.dims[axis];
      }
      if (!skip) {
        for_each_element(input_region(graph, slice.op, static_cast<int>(i), region), view,
                         [&](int64_t flat, int64_t offset) {
                           input.values[flat] = static_cast<double>(view.as<float>()[offset]);
                         });
      }
      inputs.push_back(std::move(input));
    }
  }
  for (const ReferenceTensor& input : inputs) pointers.push_back(&input);
  const ReferenceTensor result = reference(graph, slice.op, pointers);
  for_each_element(region, output, [&](int64_t flat, int64_t offset) {
    for (const Region& place : in_place) {
      int64_t rest = flat;
      bool inside = true;
      for (size_t d = place.size(); d-- > 0; rest /= output.dims[d]) {
        const int64_t at = rest % output.dims[d];
        inside = inside && at >= place[d].begin && at < place[d].end;
      }
      if (inside) return;
    }
    output.as<float>()[offset] = to_float(result.values[flat]);
  });
}

// A lane's own copy of everything that bindings point at: NaN until something is copied or
// computed.
class FakeMirror {
 public:
  explicit FakeMirror(const Graph& graph, const TensorBindings& host) : host_(host) {
    auto* begin = reinterpret_cast<std::byte*>(std::numeric_limits<uintptr_t>::max());
    std::byte* end = nullptr;
    for (const TensorView& view : host.views) {
      if (!view.data) continue;
      begin = std::min(begin, view.as<std::byte>());
      int64_t last = 0;
      for (size_t d = 0; d < view.dims.size(); ++d) last += (view.dims[d] - 1) * view.strides[d];
      end = std::max(end, view.as<std::byte>() + (last + 1) * sizeof(float));
    }
    if (end) memory_.assign((end - begin) / sizeof(float), std::numeric_limits<float>::quiet_NaN());
    for (size_t t = 0; t < host.views.size(); ++t) {
      TensorView view = host.views[t];
      if (view.data) view.data = memory_.data() + (view.as<std::byte>() - begin) / sizeof(float);
      own_.views.push_back(view);
      const Tensor& tensor = graph.tensor(static_cast<TensorId>(t));
      if (view.data && tensor.value) copy_to_view(*tensor.value, view);
    }
  }
  const TensorBindings& bindings() const { return own_; }
  void upload(TensorId id, const Region& region) {
    for_each_element(region, host_[id], [&](int64_t, int64_t offset) {
      own_[id].as<float>()[offset] = host_[id].as<float>()[offset];
    });
  }
  void download(TensorId id, const Region& region) {
    for_each_element(region, host_[id], [&](int64_t, int64_t offset) {
      host_[id].as<float>()[offset] = own_[id].as<float>()[offset];
    });
  }

 private:
  TensorBindings host_;
  TensorBindings own_;
  std::vector<float> memory_;
};

}  // namespace tandem::testing
