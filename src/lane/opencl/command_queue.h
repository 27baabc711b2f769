// An in-order queue that can keep when the device did what was put into it.
#pragma once

#include <chrono>
#include <deque>
#include <string_view>
#include <vector>

#include "lane/lane.h"
#include "lane/opencl/api.h"

namespace tandem::opencl {

// Two OpenCL queues: one that costs what a queue costs, and while a recording lasts, another whose
// commands are timed by the device (CL_QUEUE_PROFILING_ENABLE). Whatever is enqueued goes to get()
// with event() as they are at that moment.
class CommandQueue {
 public:
  static StatusOr<CommandQueue> create(cl_context context, cl_device_id device);

  cl_command_queue get() const { return recording_ ? timed_.get() : plain_.get(); }
  // Where the event of the command goes that is enqueued next; null unless a recording lasts.
  cl_event* event() { return recording_ ? events_.emplace_back().receive() : nullptr; }
  // Of a command that has been given an event: keeps it if a recording lasts.
  Status keep(cl_event event);

  // See QueueLane. Nothing is in the queue.
  Status start_recording();
  size_t recorded() const { return events_.size(); }
  StatusOr<std::vector<CommandTimes>> stop_recording();

 private:
  Status measure_offset();

  cl_context context_ = nullptr;
  cl_device_id device_ = nullptr;
  Queue plain_;
  Queue timed_;  // null until the first recording
  bool recording_ = false;
  std::deque<Event> events_;            // of the recording
  std::chrono::nanoseconds offset_{0};  // what makes the device's clock the host's
};

// Enqueues a kernel of one work-item.
Status enqueue_single(CommandQueue& queue, cl_kernel kernel, std::string_view name);

}  // namespace tandem::opencl
