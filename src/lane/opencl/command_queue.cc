#include "lane/opencl/command_queue.h"

#include <algorithm>
#include <array>
#include <ctime>
#include <limits>

#include "fmt/format.h"
#include "support/clock.h"

namespace tandem::opencl {
namespace {

// Nanoseconds of the device's clock, as OpenCL tells them.
struct DeviceTimes {
  int64_t queued = 0;
  int64_t begin = 0;
  int64_t end = 0;
};

StatusOr<DeviceTimes> times_of(cl_event event) {
  if (!event) return device_error("a command that was recorded has no event");
  std::array<cl_ulong, 3> times{};
  const std::array<cl_profiling_info, 3> what = {
      CL_PROFILING_COMMAND_QUEUED, CL_PROFILING_COMMAND_START, CL_PROFILING_COMMAND_END};
  for (size_t i = 0; i < what.size(); ++i) {
    TANDEM_RETURN_IF_ERROR(
        check(clGetEventProfilingInfo(event, what[i], sizeof(cl_ulong), &times[i], nullptr),
              "clGetEventProfilingInfo"));
  }
  return DeviceTimes{static_cast<int64_t>(times[0]), static_cast<int64_t>(times[1]),
                     static_cast<int64_t>(times[2])};
}

int64_t host_now() { return std::chrono::nanoseconds(Clock::now().time_since_epoch()).count(); }

// What has to be added to that clock of the system to get Clock's.
int64_t offset_of_system_clock(clockid_t id) {
  constexpr int kTries = 10;
  int64_t narrowest = std::numeric_limits<int64_t>::max();
  int64_t offset = 0;
  for (int i = 0; i < kTries; ++i) {
    timespec time{};
    const int64_t before = host_now();
    clock_gettime(id, &time);
    const int64_t after = host_now();
    if (after - before >= narrowest) continue;
    narrowest = after - before;
    offset = before + narrowest / 2 - (time.tv_sec * 1'000'000'000 + time.tv_nsec);
  }
  return offset;
}

}  // namespace

StatusOr<CommandQueue> CommandQueue::create(cl_context context, cl_device_id device) {
  CommandQueue queue;
  queue.context_ = context;
  queue.device_ = device;
  cl_int code = CL_SUCCESS;
  queue.plain_ = Queue(clCreateCommandQueueWithProperties(context, device, nullptr, &code));
  TANDEM_RETURN_IF_ERROR(check(code, "clCreateCommandQueueWithProperties"));
  return queue;
}

Status CommandQueue::keep(cl_event event) {
  if (!recording_) return {};
  TANDEM_RETURN_IF_ERROR(check(clRetainEvent(event), "clRetainEvent"));
  events_.emplace_back(event);
  return {};
}

Status CommandQueue::start_recording() {
  events_.clear();
  if (!timed_.get()) {
    const std::array<cl_queue_properties, 3> properties = {CL_QUEUE_PROPERTIES,
                                                           CL_QUEUE_PROFILING_ENABLE, 0};
    cl_int code = CL_SUCCESS;
    timed_ = Queue(clCreateCommandQueueWithProperties(context_, device_, properties.data(), &code));
    TANDEM_RETURN_IF_ERROR(check(code, "clCreateCommandQueueWithProperties with profiling"));
  }
  // Clocks drift apart.
  TANDEM_RETURN_IF_ERROR(measure_offset());
  recording_ = true;
  return {};
}

// A command is queued after its call begins, and ends before clFinish returns: that bounds the
// offset from both sides. Devices that are the host's processor use a clock of the system: if one
// of those fits, its offset is exact.
Status CommandQueue::measure_offset() {
  constexpr int kProbes = 5;
  int64_t least = std::numeric_limits<int64_t>::min();
  int64_t most = std::numeric_limits<int64_t>::max();
  for (int probe = 0; probe < kProbes; ++probe) {
    Event event;
    const int64_t before = host_now();
    TANDEM_RETURN_IF_ERROR(
        check(clEnqueueMarkerWithWaitList(timed_.get(), 0, nullptr, event.receive()),
              "clEnqueueMarkerWithWaitList"));
    TANDEM_RETURN_IF_ERROR(check(clFinish(timed_.get()), "clFinish"));
    const int64_t after = host_now();
    TANDEM_ASSIGN_OR_RETURN(const DeviceTimes times, times_of(event.get()));
    least = std::max(least, before - times.queued);
    most = std::min(most, after - times.end);
  }
  int64_t offset = least + (most - least) / 2;
  for (const clockid_t clock : {CLOCK_MONOTONIC, CLOCK_MONOTONIC_RAW, CLOCK_REALTIME}) {
    const int64_t of_clock = clock == CLOCK_MONOTONIC ? 0 : offset_of_system_clock(clock);
    if (of_clock >= least && of_clock <= most) {
      offset = of_clock;
      break;
    }
  }
  offset_ = std::chrono::nanoseconds(offset);
  return {};
}

StatusOr<std::vector<CommandTimes>> CommandQueue::stop_recording() {
  recording_ = false;
  const std::deque<Event> events = std::move(events_);
  events_.clear();
  std::vector<CommandTimes> result;
  const auto on_host = [this](int64_t time) {
    return Clock::time_point(std::chrono::nanoseconds(time) + offset_);
  };
  for (const Event& event : events) {
    TANDEM_ASSIGN_OR_RETURN(const DeviceTimes times, times_of(event.get()));
    result.push_back({on_host(times.queued), on_host(times.begin), on_host(times.end)});
  }
  return result;
}

Status enqueue_single(CommandQueue& queue, cl_kernel kernel, std::string_view name) {
  const size_t one = 1;
  return check(clEnqueueNDRangeKernel(queue.get(), kernel, 1, nullptr, &one, &one, 0, nullptr,
                                      queue.event()),
               fmt::format("enqueueing {}", name));
}

}  // namespace tandem::opencl
