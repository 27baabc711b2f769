// Operators that move elements: Concat, Copy, Reshape, Gather, Pad. Any element type.
#include <algorithm>
#include <atomic>
#include <optional>
#include <vector>

#include "graph/reshape_groups.h"
#include "lane/cpu/loops/box_copy.h"
#include "lane/cpu/loops/loops.h"
#include "lane/cpu/loops/nest.h"

namespace tandem::cpu {
namespace {

template <typename T>
std::unique_ptr<Kernel> prepare_copy(const Problem& p) {
  const auto& a = p.op->as<CopyAttributes>();
  const TensorView& x = p.inputs[0];
  const T* from = x.as<T>();
  for (size_t axis = 0; axis < a.start.size(); ++axis) from += a.start[axis] * x.strides[axis];
  std::vector<Nest<2>::Loop> dims;
  for (size_t d = 0; d < p.region.size(); ++d) {
    const int axis = a.source_axis[d];
    const int64_t stride = axis == kNone ? 0 : a.step[d] * x.strides[axis];
    dims.push_back({p.region[d].size(), {p.output.strides[d], stride}});
    from += p.region[d].begin * stride;
  }
  return make_kernel(
      [copy = BoxCopy<T>(dims, at<T>(p.output, p.region), from), threads = p.threads] {
        copy.run(threads);
        return Status();
      });
}

template <typename T>
std::unique_ptr<Kernel> prepare_concat(const Problem& p) {
  const int axis = p.op->as<ConcatAttributes>().axis;
  std::vector<BoxCopy<T>> copies;
  int64_t offset = 0;
  for (const TensorView& x : p.inputs) {
    const int64_t extent = x.dims[axis];
    Region to = p.region;
    to[axis] = {std::max(to[axis].begin, offset), std::min(to[axis].end, offset + extent)};
    Region from = to;
    from[axis] = {to[axis].begin - offset, to[axis].end - offset};
    offset += extent;
    if (is_empty(to)) continue;
    const T* source = at<T>(x, from);
    T* target = at<T>(p.output, to);
    // The operand lies inside the output already.
    if (source == target) continue;
    std::vector<Nest<2>::Loop> dims;
    for (size_t d = 0; d < to.size(); ++d) {
      dims.push_back({to[d].size(), {p.output.strides[d], x.strides[d]}});
    }
    copies.push_back(BoxCopy<T>(dims, target, source));
  }
  return make_kernel([copies = std::move(copies), threads = p.threads] {
    for (const BoxCopy<T>& copy : copies) copy.run(threads);
    return Status();
  });
}

// A tensor's elements by their number in row-major order. Runs of `run` elements that begin at
// multiples of it lie `stride` apart.
struct Linear {
  Dims dims, strides;
  int64_t run = 1, stride = 1;
  size_t outer = 0;  // dimensions before the run

  explicit Linear(const TensorView& view) : dims(view.dims), strides(view.strides) {
    outer = dims.size();
    bool started = false;
    while (outer > 0) {
      const size_t d = outer - 1;
      if (dims[d] > 1) {
        if (started && strides[d] != stride * run) break;
        if (!started) stride = strides[d];
        started = true;
        run *= dims[d];
      }
      --outer;
    }
  }

  int64_t offset(int64_t number) const {
    int64_t result = number % run * stride;
    int64_t rest = number / run;
    for (size_t d = outer; d-- > 0;) {
      result += rest % dims[d] * strides[d];
      rest /= dims[d];
    }
    return result;
  }
};

// A reshape as loops over factors that are dimensions, or parts of dimensions, on both sides:
// output, input. Nothing where the extents have no common factors, or the region cuts a dimension
// that falls apart into several.
std::optional<std::vector<Nest<2>::Loop>> common_factors(const Problem& p) {
  const TensorView &x = p.inputs[0], &y = p.output;
  std::vector<Nest<2>::Loop> loops;
  for (const ReshapeGroup& group : reshape_groups(x.dims, y.dims)) {
    // From the innermost dimension out. What is left of the dimensions at hand, and the strides of
    // the next factor.
    size_t from = group.source_end, to = group.output_end;
    int64_t from_left = 1, to_left = 1, from_stride = 0, to_stride = 0;
    bool cut = false;
    while (true) {
      while (from_left == 1 && from > group.source_begin) {
        from_left = x.dims[--from];
        from_stride = x.strides[from];
      }
      while (to_left == 1 && to > group.output_begin) {
        to_left = y.dims[--to];
        to_stride = y.strides[to];
        cut = p.region[to].size() != y.dims[to];
      }
      if (from_left == 1 && to_left == 1) break;
      const int64_t factor = std::min(from_left, to_left);
      if (from_left % factor != 0 || to_left % factor != 0) return std::nullopt;
      if (cut && factor != y.dims[to]) return std::nullopt;
      loops.push_back({cut ? p.region[to].size() : factor, {to_stride, from_stride}});
      from_left /= factor;
      to_left /= factor;
      from_stride *= factor;
      to_stride *= factor;
    }
  }
  return loops;
}

template <typename T>
std::unique_ptr<Kernel> prepare_reshape(const Problem& p) {
  if (const auto factors = common_factors(p)) {
    int64_t number = 0;
    for (size_t d = 0; d < p.region.size(); ++d) {
      number = number * p.output.dims[d] + p.region[d].begin;
    }
    const T* from = p.inputs[0].as<T>() + Linear(p.inputs[0]).offset(number);
    return make_kernel(
        [copy = BoxCopy<T>(*factors, at<T>(p.output, p.region), from), threads = p.threads] {
          copy.run(threads);
          return Status();
        });
  }
  // Rows of the output's region along its last dimension; the number of their first elements.
  Dims numbers(p.region.size(), 1);
  for (size_t d = p.region.size(); d-- > 1;) numbers[d - 1] = numbers[d] * p.output.dims[d];
  std::vector<Nest<2>::Loop> dims;  // offset in the output, number
  int64_t first = 0;
  for (size_t d = 0; d < p.region.size(); ++d) {
    dims.push_back({p.region[d].size(), {p.output.strides[d], numbers[d]}});
    first += p.region[d].begin * numbers[d];
  }
  // Loops in the order of numbers, so that runs follow it whatever the output's order is.
  for (auto& loop : dims) std::swap(loop.strides[0], loop.strides[1]);
  return make_kernel([nest = Nest<2>::of(dims), source = Linear(p.inputs[0]), first,
                      to = at<T>(p.output, p.region), from = p.inputs[0].as<T>(),
                      threads = p.threads] {
    // Runs ascend by one unless the region is a single element wide.
    const auto [number_step, to_stride] = nest.inner().strides;
    nest.for_each_run(threads, [&](const Nest<2>::Offsets& at, int64_t count) {
      T* target = to + at[1];
      int64_t number = first + at[0];
      while (count > 0) {
        const int64_t n = number_step == 1 ? std::min(count, source.run - number % source.run) : 1;
        copy_run(target, to_stride, from + source.offset(number), source.stride, n);
        target += n * to_stride;
        number += n * number_step;
        count -= n;
      }
    });
    return Status();
  });
}

template <typename T>
std::unique_ptr<Kernel> prepare_gather(const Problem& p) {
  const size_t axis = p.op->as<GatherAttributes>().axis;
  const TensorView& x = p.inputs[0];
  const TensorView& indices = p.inputs[1];
  const size_t index_rank = indices.dims.size();
  // Positions among the indices, and the box that each of them copies.
  std::vector<Nest<2>::Loop> positions, box;
  const T* from = x.as<T>();
  const int64_t* first_index = indices.as<int64_t>();
  for (size_t d = 0; d < p.region.size(); ++d) {
    const Range range = p.region[d];
    if (d >= axis && d < axis + index_rank) {
      positions.push_back({range.size(), {p.output.strides[d], indices.strides[d - axis]}});
      first_index += range.begin * indices.strides[d - axis];
    } else {
      const int64_t stride = x.strides[d < axis ? d : d - index_rank + 1];
      box.push_back({range.size(), {p.output.strides[d], stride}});
      from += range.begin * stride;
    }
  }
  return make_kernel([positions = Nest<2>::of(positions), box = Nest<2>::of(box), from, first_index,
                      to = at<T>(p.output, p.region), extent = x.dims[axis],
                      stride = x.strides[axis], threads = p.threads, name = p.op->name] {
    std::atomic<bool> outside = false;
    const auto [to_step, index_step] = positions.inner().strides;
    const auto [to_stride, from_stride] = box.inner().strides;
    positions.for_each_run(threads, [&](const Nest<2>::Offsets& at, int64_t count) {
      for (int64_t i = 0; i < count; ++i) {
        int64_t index = first_index[at[1] + i * index_step];
        if (index < 0) index += extent;
        if (index < 0 || index >= extent) {
          outside = true;
          continue;
        }
        const T* source = from + index * stride;
        T* target = to + at[0] + i * to_step;
        box.for_each_run(1, [&](const Nest<2>::Offsets& in_box, int64_t n) {
          copy_run(target + in_box[0], to_stride, source + in_box[1], from_stride, n);
        });
      }
    });
    if (!outside) return Status();
    return invalid_argument(name + ": an index lies outside of the gathered axis, which has " +
                            std::to_string(extent) + " elements; check the model's input");
  });
}

// Where position `i` of a padded axis comes from; kNone for the constant.
int64_t pad_source(PadAttributes::Mode mode, int64_t i, int64_t extent) {
  if (i >= 0 && i < extent) return i;
  switch (mode) {
    case PadAttributes::Mode::kEdge:
      return i < 0 ? 0 : extent - 1;
    case PadAttributes::Mode::kReflect:
      return i < 0 ? -i : 2 * (extent - 1) - i;
    case PadAttributes::Mode::kConstant:
      break;
  }
  return kNone;
}

template <typename T>
std::unique_ptr<Kernel> prepare_pad(const Problem& p) {
  const auto& a = p.op->as<PadAttributes>();
  const size_t rank = p.region.size();
  // Per dimension and position of the region, the offset in the input, or kNone.
  std::vector<std::vector<int64_t>> sources(rank);
  Dims extents, strides;
  for (size_t d = 0; d < rank; ++d) {
    for (int64_t i = p.region[d].begin; i < p.region[d].end; ++i) {
      const int64_t source = pad_source(a.mode, i - a.before[d], p.inputs[0].dims[d]);
      sources[d].push_back(source == kNone ? kNone : source * p.inputs[0].strides[d]);
    }
    extents.push_back(p.region[d].size());
    strides.push_back(p.output.strides[d]);
  }
  // The output's contiguous dimension goes innermost.
  size_t inner = 0;
  for (size_t d = 0; d < rank; ++d) {
    if (extents[d] > 1 && (extents[inner] == 1 || strides[d] < strides[inner])) inner = d;
  }
  std::vector<size_t> outer;
  int64_t rows = 1;
  for (size_t d = 0; d < rank; ++d) {
    if (d == inner) continue;
    outer.push_back(d);
    rows *= extents[d];
  }
  return make_kernel([=, sources = std::move(sources), to = at<T>(p.output, p.region),
                      from = p.inputs[0].as<T>(), value = static_cast<T>(a.value),
                      threads = p.threads] {
    const std::vector<int64_t>& line = sources[inner];
    parallel(threads, [&](int index, int parts) {
      const Part part = part_of(rows, index, parts);
      for (int64_t row = part.begin; row < part.end; ++row) {
        int64_t target = 0, source = 0, rest = row;
        bool constant = false;
        for (size_t k = outer.size(); k-- > 0;) {
          const size_t d = outer[k];
          const int64_t position = rest % extents[d];
          rest /= extents[d];
          target += position * strides[d];
          constant = constant || sources[d][position] == kNone;
          source += sources[d][position];
        }
        for (int64_t i = 0; i < extents[inner]; ++i) {
          T& element = to[target + i * strides[inner]];
          element = constant || line[i] == kNone ? value : from[source + line[i]];
        }
      }
    });
    return Status();
  });
}

template <typename T>
std::unique_ptr<Kernel> prepare_for(const Problem& p) {
  switch (p.op->kind()) {
    case OperatorKind::kConcat:
      return prepare_concat<T>(p);
    case OperatorKind::kReshape:
      return prepare_reshape<T>(p);
    case OperatorKind::kGather:
      return prepare_gather<T>(p);
    case OperatorKind::kPad:
      return prepare_pad<T>(p);
    default:
      return prepare_copy<T>(p);
  }
}

class CopyLoops : public Implementation {
 public:
  const char* name() const override { return "loops_copy"; }

  Status supports(const Problem& p) const override {
    switch (p.op->kind()) {
      case OperatorKind::kConcat:
      case OperatorKind::kCopy:
      case OperatorKind::kReshape:
      case OperatorKind::kGather:
      case OperatorKind::kPad:
        return {};
      default:
        return unsupported(std::string("copy loops do not do ") + to_string(p.op->kind()));
    }
  }

  StatusOr<std::unique_ptr<Kernel>> prepare(const Problem& p, Resources&) const override {
    return p.output.type == DataType::kInt64 ? prepare_for<int64_t>(p) : prepare_for<float>(p);
  }
};

}  // namespace

const Implementation& copy_loops() {
  static const CopyLoops implementation;
  return implementation;
}

}  // namespace tandem::cpu
