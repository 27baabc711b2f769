// The small interface behind which the CPU lane's libraries and loops lie.
#pragma once

#include <omp.h>

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "lane/lane.h"

namespace tandem::cpu {

// What a library said about shapes, so that asking again costs little. Calls may overlap in time.
class ShapeMemo {
 public:
  using Key = std::vector<int64_t>;
  struct Answer {
    std::string refusal;  // why the library will not do it, or not well; empty: it will
    std::string variant;  // the library's name of what it would run
    size_t weight_bytes = 0;
  };
  // What `ask` returned for the key, at the first request or now.
  Answer find(const Key& key, const std::function<Answer()>& ask);

 private:
  std::mutex mutex_;
  std::map<Key, Answer> answers_;  // guarded by mutex_
};

// One slice with everything that an implementation needs to know about it.
struct Problem {
  const Graph* graph = nullptr;
  const Operator* op = nullptr;
  Slice slice;
  Region region;  // of the output: the slice's box
  // Constants that a lane packs (is_packed_input) have a dense row-major view of the model's own
  // memory here. Never written.
  std::vector<TensorView> inputs;
  TensorView output;
  int threads = 1;
  ShapeMemo* memo = nullptr;  // or null
};

// Floats on 64-byte boundaries: vector loads then never straddle two cache lines.
struct FreeFloats {
  void operator()(float* p) const;
};
using AlignedFloats = std::unique_ptr<float[], FreeFloats>;
AlignedFloats allocate_floats(int64_t count);  // zeros

// Memory that the slices of one program share. Slices of a lane run one at a time, so that one
// scratch block serves them all; it grows while slices are bound and is stable while they run.
class Resources {
 public:
  // The values stored under `key`: at the first request, `count` zeros that `fill` writes to.
  std::shared_ptr<const float> packed(const std::string& key, int64_t count,
                                      const std::function<void(float*)>& fill);
  // Makes scratch() at least this large.
  void reserve_scratch(size_t bytes);
  // 64-byte aligned. Ask at each run: the block moves when it grows.
  float* scratch() const { return scratch_.get(); }
  // Counts memory held elsewhere (by a library's objects).
  void account(size_t bytes) { held_bytes_ += bytes; }
  size_t bytes() const { return held_bytes_ + scratch_bytes_; }

 private:
  std::map<std::string, std::shared_ptr<const float>> packed_;
  AlignedFloats scratch_;
  size_t scratch_bytes_ = 0;
  size_t held_bytes_ = 0;  // packed and accounted
};

// One prepared slice.
class Kernel {
 public:
  virtual ~Kernel() = default;
  virtual Status run() = 0;
};

// One way to compute slices of some operator kinds.
class Implementation {
 public:
  virtual ~Implementation() = default;
  virtual const char* name() const = 0;
  // Ok, or why not: kUnsupported. Depends on shapes and strides, not on addresses. Never says ok
  // for what a library would run with its reference code. Packs nothing.
  virtual Status supports(const Problem& problem) const = 0;
  // Fills in what is known beyond the name. Requires supports().
  virtual void describe(const Problem& problem, ImplementationInfo& info) const;
  // Requires supports(). `resources` outlives the kernel.
  virtual StatusOr<std::unique_ptr<Kernel>> prepare(const Problem& problem,
                                                    Resources& resources) const = 0;
};

// Every implementation that may compute the slice, preferred first: the rule is documented in the
// source. The first one whose supports() says ok is to be taken.
std::vector<const Implementation*> candidates(const Problem& problem);

// The element at the lower corner of `region`.
template <typename T = float>
T* at(const TensorView& view, const Region& region) {
  T* p = view.as<T>();
  for (size_t d = 0; d < region.size(); ++d) p += region[d].begin * view.strides[d];
  return p;
}

// kUnsupported unless the channels of every activation of an image operator are contiguous.
Status check_channels_contiguous(const Problem& problem);

// The kernel that calls `f`, which returns a Status.
template <typename F>
std::unique_ptr<Kernel> make_kernel(F f) {
  struct Call : Kernel {
    explicit Call(F f) : f(std::move(f)) {}
    Status run() override { return f(); }
    F f;
  };
  return std::make_unique<Call>(std::move(f));
}

// [begin, end) of part `index` of `parts` nearly equal ones of `count` things, cut at multiples of
// `unit`.
struct Part {
  int64_t begin, end;
};
inline Part part_of(int64_t count, int index, int parts, int64_t unit = 1) {
  const int64_t units = (count + unit - 1) / unit;
  const int64_t begin = units * index / parts * unit;
  const int64_t end = units * (index + 1) / parts * unit;
  return {begin < count ? begin : count, end < count ? end : count};
}

// Calls f(index, parts) on a team of `threads`.
template <typename F>
void parallel(int threads, F f) {
  if (threads == 1) {
    f(0, 1);
    return;
  }
#pragma omp parallel num_threads(threads)
  {
    // A team can be smaller than asked for (a thread limit).
    f(omp_get_thread_num(), omp_get_num_threads());
  }
}

}  // namespace tandem::cpu
