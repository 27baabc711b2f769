// The lane interface: what runs slices. Lanes know operators and memory, nothing of schedules.
//
// Ownership: a Lane outlives the LanePrograms it made, a LaneProgram the Tasks it made, and the
// graph and the memory bound to it outlive the program. A lane may serve several programs; calls on
// one lane (any object of it) must not overlap in time, except where stated.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "graph/partition.h"

namespace tandem {

enum class LaneKind : uint8_t { kCpu, kOpenCl, kSimulated };

// Of a device with its own driver. Zeros and empty on lanes that are host cores only.
struct DeviceInfo {
  std::string vendor;
  int compute_units = 0;       // that the lane uses
  int64_t local_bytes = 0;     // of local memory that a work-group may have
  int64_t cache_bytes = 0;     // of the cache before its global memory
  int64_t max_work_group = 0;  // work-items
};

struct LaneInfo {
  std::string name;  // "cpu", "cpu.big", "gpu": what plans, pins and reports call it
  LaneKind kind = LaneKind::kCpu;
  std::string description;  // for people: model, driver, version
  std::string fingerprint;  // changes whenever measured times may: model, driver, libraries, cores
  std::vector<int> cores;   // logical processors that the lane computes on; empty: not on this host
  int max_threads = 1;      // that one slice can use
  bool asynchronous = false;  // true: launch() only enqueues (see QueueLane)
  DeviceInfo device = {};
};

// Where each tensor of a graph lies: views by TensorId. Tensors that need no shared memory
// (constants packed by lanes) have a null data pointer.
struct TensorBindings {
  std::vector<TensorView> views;

  const TensorView& operator[](TensorId id) const { return views[id]; }
};

// What a lane will do for a slice: for reports, and later for predictors.
struct ImplementationInfo {
  std::string name;                    // "loops_tiled_gemm", "cl_conv_direct_14x32", ...
  int64_t global_size[3] = {0, 0, 0};  // work-items; zero where it does not apply
  int64_t local_size[3] = {0, 0, 0};   // CPU: columns and rows of a register tile
  int64_t work_groups = 0;             // or CPU tiles
  int threads = 1;                     // CPU: that compute the slice
  int64_t dispatches = 1;              // kernels enqueued, or library calls
  double computed_flops = 0;           // with the padding of tiles; work_of() has the useful ones
  std::string library_variant = {};    // the library's own name of what it runs; empty: no library

  bool operator==(const ImplementationInfo&) const = default;
};

// One slice bound to memory and ready to run, any number of times.
class Task {
 public:
  virtual ~Task() = default;
  // Computes the slice, or enqueues it on an asynchronous lane. Must be called on the lane's
  // controlling thread (CPU lanes: the thread that was given to enter()).
  virtual Status launch() = 0;
  virtual const ImplementationInfo& info() const = 0;
};

// What making a program's slices ready took apart from choosing implementations and packing
// weights.
struct PreparationStats {
  double compile_us = 0;      // compiling programs, or loading them from a cache
  double warm_us = 0;         // first launches, in which drivers finish compiling
  int programs_compiled = 0;  // from source
  int programs_cached = 0;    // from a cache on disk
};

// One graph on one lane: holds packed weights and scratch.
class LaneProgram {
 public:
  virtual ~LaneProgram() = default;
  // Picks an implementation, packs what is not packed yet, and makes the slice ready, so that the
  // first launch costs what later ones do. `threads` <= 0: the lane's maximum. Asynchronous lanes
  // ignore it. The slice must pass check_slice().
  virtual StatusOr<std::unique_ptr<Task>> bind(const Slice& slice, int threads) = 0;
  // What bind() would choose, without packing anything.
  virtual StatusOr<ImplementationInfo> implementation(const Slice& slice, int threads) const = 0;
  // Bytes held in packed weights and scratch.
  virtual size_t bytes() const = 0;
  // Of all calls of bind() so far. Zeros on lanes that compile nothing.
  virtual PreparationStats preparation() const { return {}; }

  // Of a lane that computes on memory of its own (see computes_on_own_memory()): enqueue a copy of
  // a region of a tensor from where the bindings say that it lies to the lane's memory, and back.
  // The host must leave the region alone until the copy has been made: an upload is enqueued when
  // its data are there. Constants need none. No-ops for all other lanes.
  virtual Status enqueue_upload(TensorId /*tensor*/, const Region& /*region*/) { return {}; }
  virtual Status enqueue_download(TensorId /*tensor*/, const Region& /*region*/) { return {}; }
};

class Lane {
 public:
  virtual ~Lane() = default;
  virtual const LaneInfo& info() const = 0;

  // Makes the calling thread the lane's controlling thread: pins it. Called once per thread, before
  // that thread's first bind() or launch().
  virtual Status enter() = 0;

  virtual StatusOr<std::unique_ptr<LaneProgram>> load(const Graph& graph,
                                                      const TensorBindings& bindings) = 0;

  // Waits until everything launched so far has finished. A no-op on synchronous lanes.
  virtual Status drain(std::chrono::steady_clock::time_point deadline) = 0;
};

// A lane's progress: how many slices it has finished since the session began, modulo 2^32. Each
// lies on a cache line of its own in memory that all lanes share.
struct alignas(64) ProgressCounter {
  std::atomic<uint32_t> value;
};
static_assert(sizeof(ProgressCounter) == 64);
static_assert(std::atomic<uint32_t>::is_always_lock_free);

// True once `progress` has reached `target`; both wrap around.
inline bool reached(uint32_t progress, uint32_t target) {
  return static_cast<int32_t>(progress - target) >= 0;
}

// How the host waits for a point in a device's queue.
class DeviceEvent {
 public:
  virtual ~DeviceEvent() = default;
  // Blocks (does not spin) until the queue has passed the point; kDeadlineExceeded, kDeviceError.
  virtual Status wait(std::chrono::steady_clock::time_point deadline) = 0;
  // Whether it has. Returns at once.
  virtual StatusOr<bool> passed() const = 0;
};

// How a device's queue waits for the host.
class HostEvent {
 public:
  virtual ~HostEvent() = default;
  // Lets the queue go on. Callable from any thread, once.
  virtual Status set() = 0;
  // Makes the queue give up what is enqueued behind the event. Callable from any thread.
  virtual void abandon() = 0;
};

// What kind of memory the device shares with the host. Stronger kinds include weaker ones.
enum class SharedMemoryKind : uint8_t {
  kNone,
  kCoarse,       // coarse-grained SVM: host access between map and unmap only
  kFine,         // fine-grained SVM buffers, no atomics: visible at synchronisation points
  kFineAtomics,  // fine-grained SVM with atomics: counters may be polled while kernels run
};
const char* to_string(SharedMemoryKind kind);

// When a device did one thing that was enqueued, by Clock of support/clock.h: of drivers that use
// another clock, as exactly as that can be told.
struct CommandTimes {
  std::chrono::steady_clock::time_point queued;
  std::chrono::steady_clock::time_point begin;
  std::chrono::steady_clock::time_point end;
};

// A lane with an in-order device queue.
class QueueLane : public Lane {
 public:
  virtual SharedMemoryKind shared_memory() const = 0;
  // Memory that the device and the host share, zeroed, 64-byte aligned; freed by the returned
  // pointer's deleter, which must run before the lane is destroyed. kUnsupported where
  // computes_on_own_memory().
  virtual StatusOr<std::shared_ptr<std::byte>> allocate(size_t bytes) = 0;

  // Counters that devices poll. Mechanism `svm`: they lie in memory of allocate(), which must be
  // kFineAtomics. Mechanism `pinned`: in memory of allocate_pinned().
  //
  // Enqueues a one-item kernel that polls until `counter` has reached `target`, or `abort`, which
  // lies in the same piece of memory, is not zero, or so long as `patience` lasts, about: then it
  // stores 1 to `abort`. Kernels enqueued behind it then run on whatever memory holds; the run is
  // discarded.
  virtual Status enqueue_wait(const ProgressCounter* counter, uint32_t target,
                              std::atomic<uint32_t>* abort,
                              std::chrono::duration<double> patience) = 0;
  // The same where nothing depends on whether it gives up: keeps the device awake until what it is
  // to do is enqueued. Kernels enqueued behind it are as good as any.
  virtual Status enqueue_doze(const ProgressCounter* counter, uint32_t target,
                              std::atomic<uint32_t>* gave_up,
                              std::chrono::duration<double> patience) {
    return enqueue_wait(counter, target, gave_up, patience);
  }
  // Enqueues a one-item kernel that stores `value` with release order.
  virtual Status enqueue_signal(ProgressCounter* counter, uint32_t value) = 0;
  // Memory of the host, zeroed, 64-byte aligned, that the device reaches, for counters only. OpenCL
  // promises nothing of what one side sees there while the other's writes it: pinned_self_test()
  // says what this device does. As for allocate() otherwise.
  virtual StatusOr<std::shared_ptr<std::byte>> allocate_pinned(size_t bytes) = 0;

  // Mechanism `event`.
  virtual StatusOr<std::unique_ptr<HostEvent>> enqueue_host_wait() = 0;
  virtual StatusOr<std::unique_ptr<DeviceEvent>> enqueue_device_event() = 0;

  // Mechanism `finish`. Blocks until everything enqueued so far has run, however long that takes:
  // for queues in which nothing waits for the host. Callable from any thread, also beside another
  // call.
  virtual Status finish() = 0;

  // Enqueues a kernel that does nothing: something to measure by.
  virtual Status enqueue_nothing() = 0;

  // Submits everything enqueued; must precede any host wait on it.
  virtual Status flush() = 0;

  // Between the two calls, at both of which nothing is in the queue, the lane keeps when the device
  // does each thing that is enqueued, which costs it some time. stop_recording() returns them in
  // their order, and ends the recording even if it fails. kUnsupported where devices cannot tell.
  virtual Status start_recording() { return unsupported(info().name + " does not record times"); }
  virtual StatusOr<std::vector<CommandTimes>> stop_recording() {
    return std::vector<CommandTimes>();
  }
  // How many things have been enqueued since start_recording().
  virtual size_t recorded() const { return 0; }

  // Message passing host -> device -> host through a counter, both ways, and each side seeing the
  // data that the other publishes by a counter. Ok: `svm` may be used. Otherwise why not.
  virtual Status self_test() = 0;
  // The same for `pinned`.
  virtual Status pinned_self_test() = 0;
};

// True: what the device computes on cannot be read and written by the host while a queue is busy.
// Its programs keep copies of the memory that is bound to them.
inline bool computes_on_own_memory(const QueueLane& lane) {
  return lane.shared_memory() < SharedMemoryKind::kFine;
}

}  // namespace tandem
