#include "tests/faults/opencl_faults.h"

#include <dlfcn.h>

#include <condition_variable>
#include <cstdlib>
#include <limits>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

namespace tandem::testing::opencl_faults {
namespace {

constexpr int kNever = std::numeric_limits<int>::max();

struct State {
  std::mutex mutex;
  std::condition_variable healed;
  int heals = 0;
  int calls = 0;
  int kernels = 0;
  int callbacks = 0;
  int allocations = 0;
  int lost_at = kNever;
  int stalled_at = kNever;
  int event_fails_at = kNever;
  int allocation_fails_at = kNever;
  cl_int code = CL_SUCCESS;
  cl_int event_code = CL_SUCCESS;
  std::chrono::milliseconds stall{};
  int unset_user_events = 0;
  cl_command_queue queue = nullptr;  // the last one used
  std::map<void*, size_t> held;
  std::vector<std::thread> stallers;
};

State& state() {
  static auto* const made = new State;
  return *made;
}

// The driver's function (through the ICD loader).
template <typename Function>
Function* real(Function* /*ours*/, const char* name) {
  void* const found = dlsym(RTLD_NEXT, name);
  if (!found) std::abort();
  return reinterpret_cast<Function*>(found);
}
#define REAL(name) real(&(name), #name)

// Counts a call, and says what it shall return.
cl_int count_call(cl_command_queue queue) {
  const std::lock_guard lock(state().mutex);
  if (queue) state().queue = queue;
  return state().calls++ >= state().lost_at ? state().code : CL_SUCCESS;
}

// Until everything enqueued has run, unless it waits for the host.
void wait_until_idle(cl_command_queue queue) {
  cl_event end = nullptr;
  if (REAL(clEnqueueMarkerWithWaitList)(queue, 0, nullptr, &end) != CL_SUCCESS) return;
  REAL(clFlush)(queue);
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(2);
  cl_int status = CL_QUEUED;
  while (status > CL_COMPLETE && std::chrono::steady_clock::now() < deadline) {
    {
      const std::lock_guard lock(state().mutex);
      if (state().unset_user_events > 0) break;
    }
    std::this_thread::yield();
    clGetEventInfo(end, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(status), &status, nullptr);
  }
  clReleaseEvent(end);
}

// Holds up what is enqueued behind it. The caller has the mutex.
void enqueue_stall(cl_command_queue queue, std::chrono::milliseconds time) {
  cl_context context = nullptr;
  clGetCommandQueueInfo(queue, CL_QUEUE_CONTEXT, sizeof(context), &context, nullptr);
  const cl_event gate = REAL(clCreateUserEvent)(context, nullptr);
  REAL(clEnqueueBarrierWithWaitList)(queue, 1, &gate, nullptr);
  state().stallers.emplace_back([gate, time, heals = state().heals] {
    {
      std::unique_lock lock(state().mutex);
      state().healed.wait_for(lock, time, [heals] { return state().heals > heals; });
    }
    REAL(clSetUserEventStatus)(gate, CL_COMPLETE);
    clReleaseEvent(gate);
  });
}

struct Callback {
  void(CL_CALLBACK* function)(cl_event, cl_int, void*);
  void* data;
};

void CL_CALLBACK pass_on(cl_event event, cl_int status, void* data) {
  const auto* callback = static_cast<Callback*>(data);
  {
    const std::lock_guard lock(state().mutex);
    if (state().callbacks++ >= state().event_fails_at) status = state().event_code;
  }
  callback->function(event, status, callback->data);
  delete callback;
}

}  // namespace

void lose_device_at(int n, cl_int code) {
  const std::lock_guard lock(state().mutex);
  state().lost_at = state().calls + n;
  state().code = code;
}

void stall_kernel_at(int n, std::chrono::milliseconds time) {
  const std::lock_guard lock(state().mutex);
  state().stalled_at = state().kernels + n;
  state().stall = time;
}

void fail_events_from(int n, cl_int code) {
  const std::lock_guard lock(state().mutex);
  state().event_fails_at = state().callbacks + n;
  state().event_code = code;
}

void fail_allocations_from(int n) {
  const std::lock_guard lock(state().mutex);
  state().allocation_fails_at = state().allocations + n;
}

void heal() {
  std::vector<std::thread> stallers;
  cl_command_queue queue = nullptr;
  {
    const std::lock_guard lock(state().mutex);
    state().lost_at = state().stalled_at = state().event_fails_at = kNever;
    state().allocation_fails_at = kNever;
    state().calls = state().allocations = 0;
    stallers.swap(state().stallers);
    queue = state().queue;
    ++state().heals;
  }
  state().healed.notify_all();
  for (std::thread& staller : stallers) staller.join();
  if (queue) REAL(clFinish)(queue);
}

int calls() {
  const std::lock_guard lock(state().mutex);
  return state().calls;
}

int allocations() {
  const std::lock_guard lock(state().mutex);
  return state().allocations;
}

long long bytes_held() {
  const std::lock_guard lock(state().mutex);
  long long bytes = 0;
  for (const auto& [memory, size] : state().held) bytes += static_cast<long long>(size);
  return bytes;
}

}  // namespace tandem::testing::opencl_faults

// --- OpenCL's functions ---

using namespace tandem::testing::opencl_faults;  // NOLINT: this file is about nothing else

extern "C" {

cl_int clEnqueueNDRangeKernel(cl_command_queue queue, cl_kernel kernel, cl_uint dimensions,
                              const size_t* offset, const size_t* global, const size_t* local,
                              cl_uint waits, const cl_event* wait_list, cl_event* event) {
  if (const cl_int code = count_call(queue); code != CL_SUCCESS) return code;
  {
    const std::lock_guard lock(state().mutex);
    if (state().kernels++ == state().stalled_at) enqueue_stall(queue, state().stall);
  }
  return REAL(clEnqueueNDRangeKernel)(queue, kernel, dimensions, offset, global, local, waits,
                                      wait_list, event);
}

cl_int clFlush(cl_command_queue queue) {
  if (const cl_int code = count_call(queue); code != CL_SUCCESS) return code;
  return REAL(clFlush)(queue);
}

cl_int clFinish(cl_command_queue queue) {
  if (const cl_int code = count_call(queue); code != CL_SUCCESS) {
    wait_until_idle(queue);
    return code;
  }
  return REAL(clFinish)(queue);
}

cl_int clEnqueueMarkerWithWaitList(cl_command_queue queue, cl_uint waits, const cl_event* wait_list,
                                   cl_event* event) {
  if (const cl_int code = count_call(queue); code != CL_SUCCESS) {
    wait_until_idle(queue);
    return code;
  }
  return REAL(clEnqueueMarkerWithWaitList)(queue, waits, wait_list, event);
}

cl_int clEnqueueBarrierWithWaitList(cl_command_queue queue, cl_uint waits,
                                    const cl_event* wait_list, cl_event* event) {
  if (const cl_int code = count_call(queue); code != CL_SUCCESS) return code;
  return REAL(clEnqueueBarrierWithWaitList)(queue, waits, wait_list, event);
}

cl_int clEnqueueSVMMap(cl_command_queue queue, cl_bool blocking, cl_map_flags flags, void* memory,
                       size_t bytes, cl_uint waits, const cl_event* wait_list, cl_event* event) {
  if (const cl_int code = count_call(queue); code != CL_SUCCESS) return code;
  return REAL(clEnqueueSVMMap)(queue, blocking, flags, memory, bytes, waits, wait_list, event);
}

cl_int clEnqueueSVMUnmap(cl_command_queue queue, void* memory, cl_uint waits,
                         const cl_event* wait_list, cl_event* event) {
  if (const cl_int code = count_call(queue); code != CL_SUCCESS) return code;
  return REAL(clEnqueueSVMUnmap)(queue, memory, waits, wait_list, event);
}

cl_event clCreateUserEvent(cl_context context, cl_int* code) {
  if (const cl_int fault = count_call(nullptr); fault != CL_SUCCESS) {
    if (code) *code = fault;
    return nullptr;
  }
  {
    const std::lock_guard lock(state().mutex);
    ++state().unset_user_events;
  }
  return REAL(clCreateUserEvent)(context, code);
}

cl_int clSetUserEventStatus(cl_event event, cl_int status) {
  const cl_int code = count_call(nullptr);
  {
    const std::lock_guard lock(state().mutex);
    --state().unset_user_events;
  }
  // Or the driver's queue would wait for ever, which that of a lost device does not.
  const cl_int set = REAL(clSetUserEventStatus)(event, status);
  return code != CL_SUCCESS ? code : set;
}

cl_int clSetEventCallback(cl_event event, cl_int type,
                          void(CL_CALLBACK* function)(cl_event, cl_int, void*), void* data) {
  if (const cl_int code = count_call(nullptr); code != CL_SUCCESS) return code;
  auto* callback = new Callback{function, data};
  const cl_int code = REAL(clSetEventCallback)(event, type, &pass_on, callback);
  if (code != CL_SUCCESS) delete callback;
  return code;
}

void* clSVMAlloc(cl_context context, cl_svm_mem_flags flags, size_t bytes, cl_uint alignment) {
  {
    const std::lock_guard lock(state().mutex);
    if (state().allocations++ >= state().allocation_fails_at) return nullptr;
  }
  void* const memory = REAL(clSVMAlloc)(context, flags, bytes, alignment);
  const std::lock_guard lock(state().mutex);
  if (memory) state().held[memory] = bytes;
  return memory;
}

void clSVMFree(cl_context context, void* memory) {
  {
    const std::lock_guard lock(state().mutex);
    state().held.erase(memory);
  }
  REAL(clSVMFree)(context, memory);
}

}  // extern "C"
