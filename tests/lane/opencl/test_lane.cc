#include "tests/lane/opencl/test_lane.h"

#include <sched.h>

#include <cstring>

#include "gtest/gtest.h"

namespace tandem::opencl {
namespace {

// As a float, a NaN.
constexpr std::byte kPattern{0xff};
// Floats in front of and behind each tensor that nobody may touch.
constexpr size_t kGuard = 64;

int first_core() {
  cpu_set_t mask;
  sched_getaffinity(0, sizeof(mask), &mask);
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &mask)) return core;
  }
  return 0;
}

}  // namespace

LaneImpl* test_lane() {
  static const auto lane = [] {
    OpenClLaneOptions options;
    options.cores = {first_core()};
    options.program_cache_dir = "none";
    return LaneImpl::create(options);
  }();
  if (!lane.ok()) {
    ADD_FAILURE() << lane.status().to_string();
    return nullptr;
  }
  return lane->get();
}

Memory::Memory(LaneImpl* lane, const Graph& graph) {
  for (size_t id = 0; id < graph.tensors().size(); ++id) {
    const Tensor& tensor = graph.tensors()[id];
    const auto elements = static_cast<size_t>(span_of(tensor.dims, tensor.layout));
    const size_t bytes = elements * element_size(tensor.type) + 2 * kGuard * sizeof(float);
    auto block = lane->allocate(bytes);
    EXPECT_TRUE(block.ok()) << block.status().to_string();
    blocks.push_back(std::move(block).value());
    sizes.push_back(bytes);
    bindings.views.push_back(view_of(tensor, blocks.back().get() + kGuard * sizeof(float)));
    spoil(static_cast<TensorId>(id));
    if (tensor.value) copy_to_view(*tensor.value, bindings.views.back());
  }
  for (const Operator& op : graph.operators()) {
    for (size_t i = 0; i < op.inputs.size(); ++i) {
      if (is_packed_input(op, static_cast<int>(i))) {
        bindings.views[static_cast<size_t>(op.inputs[i])].data = nullptr;
      }
    }
  }
}

void Memory::spoil(TensorId tensor) {
  std::memset(blocks[static_cast<size_t>(tensor)].get(), static_cast<int>(kPattern),
              sizes[static_cast<size_t>(tensor)]);
}

bool Memory::untouched_outside(TensorId tensor) const {
  const auto id = static_cast<size_t>(tensor);
  std::vector<std::byte> copy(blocks[id].get(), blocks[id].get() + sizes[id]);
  TensorView view = bindings.views[id];
  view.data = copy.data() + kGuard * sizeof(float);
  HostTensor pattern(view.type, view.dims);
  std::memset(pattern.bytes.data(), static_cast<int>(kPattern), pattern.bytes.size());
  copy_to_view(pattern, view);
  for (const std::byte byte : copy) {
    if (byte != kPattern) return false;
  }
  return true;
}

}  // namespace tandem::opencl
