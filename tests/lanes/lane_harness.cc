#include "tests/lanes/lane_harness.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <numeric>

#include "graph/partition.h"

namespace tandem::testing {
namespace {

constexpr uint32_t kCanary = 0x7fc0deadu;    // a quiet NaN
constexpr int64_t kGuard = 4 * kLineFloats;  // elements before and behind each tensor

void fill_with_canaries(std::byte* bytes, size_t size) {
  for (size_t i = 0; i + sizeof(kCanary) <= size; i += sizeof(kCanary)) {
    std::memcpy(bytes + i, &kCanary, sizeof(kCanary));
  }
}

bool is_canary(const std::byte* bytes, size_t size) {
  for (size_t i = 0; i < size; i += sizeof(kCanary)) {
    if (std::memcmp(bytes + i, &kCanary, sizeof(kCanary)) != 0) return false;
  }
  return true;
}

int64_t round_up(int64_t n) { return (n + kLineFloats - 1) / kLineFloats * kLineFloats; }

// The innermost dimension in memory of extent > 1; kNone if there is none.
int innermost(const Dims& dims, const Dims& strides) {
  int found = kNone;
  for (int d = 0; d < static_cast<int>(dims.size()); ++d) {
    if (dims[d] > 1 && (found == kNone || strides[d] < strides[found])) found = d;
  }
  return found;
}

// Calls f(index, offset) for every element of a view, in row-major order.
template <typename F>
void for_each_element(const TensorView& view, const F& f) {
  Dims index(view.dims.size(), 0);
  for (int64_t left = element_count(view.dims); left > 0; --left) {
    f(index, std::inner_product(index.begin(), index.end(), view.strides.begin(), int64_t{0}));
    for (size_t d = view.dims.size(); d-- > 0;) {
      if (++index[d] < view.dims[d]) break;
      index[d] = 0;
    }
  }
}

bool inside(const Dims& index, const Region& region) {
  for (size_t d = 0; d < index.size(); ++d) {
    if (index[d] < region[d].begin || index[d] >= region[d].end) return false;
  }
  return true;
}

double read(const TensorView& view, int64_t offset) {
  if (view.type == DataType::kFloat32) return view.as<const float>()[offset];
  return static_cast<double>(view.as<const int64_t>()[offset]);
}

std::shared_ptr<std::byte> host_memory(size_t bytes) {
  return {static_cast<std::byte*>(std::aligned_alloc(64, (bytes + 63) / 64 * 64)),
          [](std::byte* p) { std::free(p); }};
}

}  // namespace

LaneThread::LaneThread(std::unique_ptr<Lane> lane)
    : lane_(std::move(lane)), thread_([this] { serve(); }) {
  entered_ = run([this] { return lane_->enter(); });
}

LaneThread::~LaneThread() {
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

Status LaneThread::run(const std::function<Status()>& f) {
  std::unique_lock lock(mutex_);
  call_ = &f;
  changed_.notify_all();
  changed_.wait(lock, [this] { return call_ == nullptr; });
  return result_;
}

void LaneThread::serve() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return stop_ || call_ != nullptr; });
    if (stop_) return;
    result_ = (*call_)();
    call_ = nullptr;
    changed_.notify_all();
  }
}

BoundCase::BoundCase(const BuiltCase& built, Placement placement, QueueLane* shared)
    : built_(built), memory_(built.graph.tensors().size()) {
  const Graph& graph = built.graph;
  for (const Tensor& tensor : graph.tensors()) {
    bindings_.views.push_back(view_of(tensor, nullptr));
  }
  const Operator& op = graph.op(0);
  for (size_t i = 0; i < op.inputs.size(); ++i) {
    if (!is_packed_input(op, static_cast<int>(i))) place(op.inputs[i], placement, shared);
  }
  place(op.output, placement, shared);

  const auto set = [this](TensorId id, const HostTensor& value) {
    copy_to_view(value, bindings_[id]);
    Memory& memory = memory_[id];
    memory.before.assign(memory.bytes.get(), memory.bytes.get() + memory.size);
  };
  for (size_t i = 0; i < built.inputs.size(); ++i) set(graph.inputs()[i], built.inputs[i]);
  for (TensorId id : op.inputs) {
    if (bindings_[id].data && graph.tensor(id).value) set(id, *graph.tensor(id).value);
  }
}

void BoundCase::place(TensorId id, Placement placement, QueueLane* shared) {
  const Tensor& tensor = built_.graph.tensor(id);
  TensorView& view = bindings_.views[id];
  Memory& memory = memory_[id];
  if (memory.bytes) return;  // an input that is read twice
  memory.first = kGuard;
  int64_t span = span_of(tensor.dims, tensor.layout);
  const int inner = innermost(tensor.dims, view.strides);
  if (placement == Placement::kInside && tensor.layout.padded && inner != kNone) {
    Dims larger = tensor.dims;
    larger[inner] = round_up(larger[inner]) + 2 * kLineFloats;
    view.strides = strides_of(larger, tensor.layout);
    span = span_of(larger, tensor.layout);
    memory.first += kLineFloats;
  }
  memory.size = static_cast<size_t>(span + 2 * kGuard) * element_size(tensor.type);
  if (shared && !computes_on_own_memory(*shared)) {
    StatusOr<std::shared_ptr<std::byte>> bytes = shared->allocate(memory.size);
    ASSERT_TRUE(bytes.ok()) << bytes.status().to_string();
    memory.bytes = std::move(*bytes);
  } else {
    memory.bytes = host_memory(memory.size);
  }
  fill_with_canaries(memory.bytes.get(), memory.size);
  view.data = memory.bytes.get() + static_cast<size_t>(memory.first) * element_size(tensor.type);
}

void BoundCase::clear_output() {
  const Memory& memory = memory_[built_.graph.op(0).output];
  fill_with_canaries(memory.bytes.get(), memory.size);
}

::testing::AssertionResult BoundCase::check(const Expected& expected, const Region& written) const {
  const Operator& op = built_.graph.op(0);
  const TensorView& view = bindings_[op.output];
  const Memory& memory = memory_[op.output];
  const size_t width = element_size(view.type);
  const int inner = innermost(view.dims, view.strides);

  // Words of the allocation that may differ from the canary.
  std::vector<bool> accounted(memory.size / width, false);
  size_t next = 0;
  int64_t wrong = 0;
  std::string first_wrong;
  const auto complain = [&](const Dims& index, const std::string& what) {
    if (wrong++ == 0) first_wrong = "at " + to_string(index) + " " + what;
  };
  for_each_element(view, [&](const Dims& index, int64_t offset) {
    const size_t i = next++;
    const std::byte* bytes =
        memory.bytes.get() + static_cast<size_t>(memory.first + offset) * width;
    accounted[static_cast<size_t>(memory.first + offset)] = true;
    if (inner != kNone && index[inner] == view.dims[inner] - 1) {
      const int64_t tail = round_up(view.dims[inner]) - view.dims[inner];
      for (int64_t t = 1; t <= tail; ++t) {
        const size_t word = static_cast<size_t>(memory.first + offset + t);
        if (word < accounted.size()) accounted[word] = true;
      }
    }
    if (!inside(index, written)) {
      if (!is_canary(bytes, width)) complain(index, "was written");
      return;
    }
    const double value = read(view, offset);
    if (!(std::abs(value - expected.output.values[i]) <= expected.tolerance[i])) {
      complain(index, is_canary(bytes, width) ? "was not written"
                                              : "is " + std::to_string(value) + ", not " +
                                                    std::to_string(expected.output.values[i]) +
                                                    " +- " + std::to_string(expected.tolerance[i]));
    }
  });
  if (wrong > 0) {
    return ::testing::AssertionFailure()
           << wrong << " of " << next << " elements, first: " << to_string(view.dims) << " "
           << first_wrong;
  }
  for (size_t word = 0; word < accounted.size(); ++word) {
    if (!accounted[word] && !is_canary(memory.bytes.get() + word * width, width)) {
      return ::testing::AssertionFailure()
             << "memory outside of the tensor was written, element "
             << static_cast<int64_t>(word) - memory.first << " from its first";
    }
  }
  for (TensorId id : op.inputs) {
    const Memory& input = memory_[id];
    if (!input.before.empty() &&
        !std::equal(input.before.begin(), input.before.end(), input.bytes.get())) {
      return ::testing::AssertionFailure()
             << "input " << built_.graph.tensor(id).name << " was written";
    }
  }
  return ::testing::AssertionSuccess();
}

Status run_slice(LaneThread& thread, const BuiltCase& built, const TensorBindings& bindings,
                 const Slice& slice, int threads) {
  Lane& lane = thread.lane();
  return thread.run([&]() -> Status {
    TANDEM_ASSIGN_OR_RETURN(std::unique_ptr<LaneProgram> program, lane.load(built.graph, bindings));
    TANDEM_ASSIGN_OR_RETURN(const ImplementationInfo promised,
                            program->implementation(slice, threads));
    TANDEM_ASSIGN_OR_RETURN(std::unique_ptr<Task> task, program->bind(slice, threads));
    if (promised != task->info()) {
      return internal_error("implementation() promises " + promised.name + " with " +
                            std::to_string(promised.computed_flops) + " FLOPs, but bind() took " +
                            task->info().name + " with " +
                            std::to_string(task->info().computed_flops));
    }
    // No-ops where the memory is shared.
    for (TensorId id : built.graph.op(slice.op).inputs) {
      if (!bindings[id].data || built.graph.tensor(id).kind == TensorKind::kConstant) continue;
      TANDEM_RETURN_IF_ERROR(
          program->enqueue_upload(id, whole_region(built.graph.tensor(id).dims)));
    }
    TANDEM_RETURN_IF_ERROR(task->launch());
    TANDEM_RETURN_IF_ERROR(program->enqueue_download(built.graph.op(slice.op).output,
                                                     output_region(built.graph, slice)));
    if (auto* queue = dynamic_cast<QueueLane*>(&lane)) TANDEM_RETURN_IF_ERROR(queue->flush());
    return lane.drain(std::chrono::steady_clock::now() + std::chrono::seconds(30));
  });
}

}  // namespace tandem::testing
