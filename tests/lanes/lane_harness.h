// Runs cases of the operator table on lanes, through lane.h alone.
#pragma once

#include <gtest/gtest.h>

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "lane/lane.h"
#include "tests/support/operator_table.h"

namespace tandem::testing {

// A lane and the thread that controls it.
class LaneThread {
 public:
  explicit LaneThread(std::unique_ptr<Lane> lane);
  ~LaneThread();

  Lane& lane() { return *lane_; }
  // The status of enter().
  const Status& entered() const { return entered_; }
  // Calls f on the lane's thread and returns when it has.
  Status run(const std::function<Status()>& f);

 private:
  void serve();

  std::unique_ptr<Lane> lane_;
  Status entered_;
  std::mutex mutex_;
  std::condition_variable changed_;
  const std::function<Status()>* call_ = nullptr;
  Status result_;
  bool stop_ = false;
  std::thread thread_;
};

// Where the tensors of a case lie.
enum class Placement {
  kOwn,     // in memory of their own
  kInside,  // inside larger tensors, as the operands of a Concat done in place: only the strides
            // say
};

// A case with memory: inputs in place, everything else, paddings included, filled with a NaN that
// no computation yields.
class BoundCase {
 public:
  // `shared` allocates memory that its device sees. Memory of the host if it is null, or its device
  // computes on memory of its own.
  BoundCase(const BuiltCase& built, Placement placement, QueueLane* shared);

  const TensorBindings& bindings() const { return bindings_; }
  void clear_output();
  // The elements of the output inside the region are as expected, and nothing else has changed: no
  // other element, no memory around the tensor, no input. (Padding up to the end of a cache line
  // belongs to whoever writes that line.)
  ::testing::AssertionResult check(const Expected& expected, const Region& written) const;

 private:
  struct Memory {
    std::shared_ptr<std::byte> bytes;
    size_t size = 0;
    int64_t first = 0;              // element at which the view begins
    std::vector<std::byte> before;  // inputs: a copy
  };

  void place(TensorId id, Placement placement, QueueLane* shared);

  const BuiltCase& built_;
  TensorBindings bindings_;
  std::vector<Memory> memory_;  // by TensorId
};

// Binds the slice to a new program and runs it once.
Status run_slice(LaneThread& thread, const BuiltCase& built, const TensorBindings& bindings,
                 const Slice& slice, int threads);

}  // namespace tandem::testing
