#include "lane/cpu/kernel.h"

#include <cstring>
#include <new>

namespace tandem::cpu {
namespace {

constexpr std::align_val_t kAlignment{64};

}  // namespace

void FreeFloats::operator()(float* p) const { ::operator delete(p, kAlignment); }

AlignedFloats allocate_floats(int64_t count) {
  void* p = ::operator new(count * sizeof(float), kAlignment);
  std::memset(p, 0, count * sizeof(float));
  return AlignedFloats(static_cast<float*>(p));
}

std::shared_ptr<const float> Resources::packed(const std::string& key, int64_t count,
                                               const std::function<void(float*)>& fill) {
  std::shared_ptr<const float>& entry = packed_[key];
  if (entry == nullptr) {
    AlignedFloats floats = allocate_floats(count);
    fill(floats.get());
    held_bytes_ += count * sizeof(float);
    entry = std::shared_ptr<const float>(
        floats.release(), [](const float* p) { FreeFloats()(const_cast<float*>(p)); });
  }
  return entry;
}

void Resources::reserve_scratch(size_t bytes) {
  if (bytes <= scratch_bytes_) return;
  // The old contents need not be kept, and freeing them first keeps the peak down.
  scratch_.reset();
  scratch_bytes_ = 0;
  scratch_ = allocate_floats(static_cast<int64_t>((bytes + sizeof(float) - 1) / sizeof(float)));
  scratch_bytes_ = bytes;
}

ShapeMemo::Answer ShapeMemo::find(const Key& key, const std::function<Answer()>& ask) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto [entry, is_new] = answers_.try_emplace(key);
  if (is_new) entry->second = ask();
  return entry->second;
}

Status check_channels_contiguous(const Problem& p) {
  const auto contiguous = [](const TensorView& view) {
    return view.dims[1] == 1 || view.strides[1] == 1;
  };
  bool all = contiguous(p.output);
  for (size_t i = 0; i < p.inputs.size(); ++i) {
    all = all && (is_packed_input(*p.op, static_cast<int>(i)) || contiguous(p.inputs[i]));
  }
  return all ? Status()
             : unsupported(p.op->name +
                           ": channels are not contiguous in memory; give its tensors " +
                           "the channels-last order");
}

void Implementation::describe(const Problem& problem, ImplementationInfo& info) const {
  info.computed_flops = work_of(*problem.graph, problem.slice).flops;
  info.work_groups = problem.threads;
}

}  // namespace tandem::cpu
