// Counters that the device polls and advances: mechanisms `svm` and `pinned` of lane.h.
#include <algorithm>
#include <array>
#include <numeric>
#include <thread>

#include "fmt/format.h"
#include "lane/opencl/opencl_lane_impl.h"
#include "support/clock.h"

namespace tandem::opencl {
namespace {

constexpr auto kSelfTestDeadline = std::chrono::seconds(5);
// Enough for a clock to measure, few enough not to be felt.
constexpr uint64_t kMeasuredPolls = 200'000;
// A device may give up a wait only because this process was kept from running meanwhile.
constexpr int kSelfTestAttempts = 3;

template <typename T>
Status set_value(cl_kernel kernel, cl_uint index, const T& value) {
  return check(clSetKernelArg(kernel, index, sizeof(value), &value), "an argument of a counter");
}

// What a self-test says by the counters.
struct Board {
  ProgressCounter host;
  ProgressCounter device;
  ProgressCounter abort;
};

// The data that a self-test passes on, round by round: the device adds one to each word.
class Messages {
 public:
  virtual ~Messages() = default;
  // What the device does in a round, between its wait and its signal.
  virtual Status enqueue(cl_kernel pass_on, uint32_t round) = 0;
  // What the host does before its word, and what it finds after the device's.
  virtual void ask(uint32_t round) = 0;
  virtual bool is_answered(uint32_t round) const = 0;

 protected:
  static constexpr uint32_t kWords = 64;
};

Status enqueue_pass_on(CommandQueue& queue, cl_kernel pass_on, const void* from, void* to,
                       cl_int count) {
  TANDEM_RETURN_IF_ERROR(check(clSetKernelArgSVMPointer(pass_on, 0, from), "pass_on"));
  TANDEM_RETURN_IF_ERROR(check(clSetKernelArgSVMPointer(pass_on, 1, to), "pass_on"));
  TANDEM_RETURN_IF_ERROR(set_value(pass_on, 2, count));
  return enqueue_single(queue, pass_on, "pass_on");
}

// Each round the host asks something else, in memory that both sides have.
class SharedMessages final : public Messages {
 public:
  SharedMessages(CommandQueue& queue, std::shared_ptr<std::byte> memory)
      : queue_(queue), memory_(std::move(memory)) {
    question_ = reinterpret_cast<uint32_t*>(memory_.get());
    answer_ = question_ + kWords;
  }
  static constexpr size_t kBytes = 2 * kWords * sizeof(uint32_t);

  Status enqueue(cl_kernel pass_on, uint32_t) override {
    return enqueue_pass_on(queue_, pass_on, question_, answer_, kWords);
  }
  void ask(uint32_t round) override { std::iota(question_, question_ + kWords, 1000 * round); }
  bool is_answered(uint32_t round) const override {
    for (uint32_t i = 0; i < kWords; ++i) {
      if (answer_[i] != 1000 * round + i + 1) return false;
    }
    return true;
  }

 private:
  CommandQueue& queue_;
  std::shared_ptr<std::byte> memory_;
  uint32_t* question_;
  uint32_t* answer_;
};

// The device passes on its own answers, which are copied to the host before its word: as in a run,
// where what is copied to the device has to be there when the copy is enqueued.
class CopiedMessages final : public Messages {
 public:
  static StatusOr<std::unique_ptr<Messages>> create(cl_context context, CommandQueue& queue,
                                                    CopyMethod method) {
    auto messages = std::make_unique<CopiedMessages>();
    messages->queue_ = &queue;
    for (DeviceBlock& block : messages->blocks_) {
      TANDEM_ASSIGN_OR_RETURN(block, DeviceBlock::create(context, queue, kRows.bytes, method));
    }
    return std::unique_ptr<Messages>(std::move(messages));
  }

  Status enqueue(cl_kernel pass_on, uint32_t round) override {
    const DeviceBlock& to = blocks_[round % 2];
    TANDEM_RETURN_IF_ERROR(
        enqueue_pass_on(*queue_, pass_on, blocks_[(round + 1) % 2].data(), to.data(), kWords));
    return to.enqueue_download(*queue_, answers_[round].data(), 0, kRows);
  }
  void ask(uint32_t) override {}
  bool is_answered(uint32_t round) const override {
    return std::all_of(answers_[round].begin(), answers_[round].end(),
                       [round](uint32_t word) { return word == round; });
  }

 private:
  static constexpr int64_t kBytes = kWords * sizeof(uint32_t);
  static constexpr Rows kRows{.offset = 0, .bytes = kBytes, .count = 1, .pitch = kBytes};

  CommandQueue* queue_ = nullptr;
  std::array<DeviceBlock, 2> blocks_;
  std::array<std::array<uint32_t, kWords>, 16> answers_{};  // by round
};

}  // namespace

Status LaneImpl::CounterPlace::set_base(cl_kernel kernel) const {
  return check(buffer ? clSetKernelArg(kernel, 0, sizeof(buffer), &buffer)
                      : clSetKernelArgSVMPointer(kernel, 0, base),
               "the memory of a counter");
}

LaneImpl::CounterPlace LaneImpl::place_of(const void* counter) {
  const auto* address = static_cast<const std::byte*>(counter);
  const std::lock_guard<std::mutex> lock(pinned_mutex_);
  const auto after = pinned_blocks_.upper_bound(address);
  if (after != pinned_blocks_.begin()) {
    const auto& [base, block] = *std::prev(after);
    if (address < base + block.bytes) return {&pinned_, block.buffer.get(), base};
  }
  return {&svm_, nullptr, address};
}

Status LaneImpl::load(CounterKernels* kernels) {
  if (kernels->wait.get()) return {};
  const bool pinned = kernels == &pinned_;
  TANDEM_ASSIGN_OR_RETURN(const cl_program program,
                          programs_->program({pinned ? "pinned.cl" : "sync.cl"},
                                             pinned                        ? ""
                                             : device_.summary.is_host_cpu ? "-DHOST_CPU=1"
                                                                           : "-DHOST_CPU=0"));
  TANDEM_ASSIGN_OR_RETURN(kernels->signal, make_kernel(program, "signal_progress"));
  TANDEM_ASSIGN_OR_RETURN(kernels->wait, make_kernel(program, "wait_for"));
  return {};
}

StatusOr<std::shared_ptr<std::byte>> LaneImpl::allocate_pinned(size_t bytes) {
  cl_int code = CL_SUCCESS;
  PinnedBlock block;
  block.bytes = std::max<size_t>(64, bytes);
  block.buffer = Buffer(clCreateBuffer(context_.get(), CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR,
                                       block.bytes, nullptr, &code));
  TANDEM_RETURN_IF_ERROR(check(code, "clCreateBuffer of memory of the host"));
  void* mapped =
      clEnqueueMapBuffer(queue_.get(), block.buffer.get(), CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, 0,
                         block.bytes, 0, nullptr, nullptr, &code);
  TANDEM_RETURN_IF_ERROR(check(code, "clEnqueueMapBuffer of memory of the host"));
  auto* address = static_cast<std::byte*>(mapped);
  std::fill_n(address, block.bytes, std::byte{0});
  {
    const std::lock_guard<std::mutex> lock(pinned_mutex_);
    pinned_blocks_[address] = std::move(block);
  }
  return std::shared_ptr<std::byte>(address, [this](std::byte* p) {
    const std::lock_guard<std::mutex> lock(pinned_mutex_);
    clEnqueueUnmapMemObject(queue_.get(), pinned_blocks_.at(p).buffer.get(), p, 0, nullptr,
                            nullptr);
    clFlush(queue_.get());
    pinned_blocks_.erase(p);
  });
}

Status LaneImpl::enqueue_wait(const ProgressCounter* counter, uint32_t target,
                              std::atomic<uint32_t>* abort,
                              std::chrono::duration<double> patience) {
  const double rate = place_of(counter).kernels->polls_per_second;
  if (rate == 0) return failed_precondition("counters are polled before the self-test");
  return enqueue_bounded_wait(counter, target, abort,
                              static_cast<uint64_t>(std::max(1.0, patience.count() * rate)));
}

Status LaneImpl::enqueue_bounded_wait(const ProgressCounter* counter, uint32_t target,
                                      std::atomic<uint32_t>* abort, uint64_t max_polls) {
  const CounterPlace place = place_of(counter);
  TANDEM_RETURN_IF_ERROR(load(place.kernels));
  const cl_kernel kernel = place.kernels->wait.get();
  const cl_ulong polls = max_polls;
  TANDEM_RETURN_IF_ERROR(place.set_base(kernel));
  TANDEM_RETURN_IF_ERROR(set_value(kernel, 1, place.word(&counter->value)));
  TANDEM_RETURN_IF_ERROR(set_value(kernel, 2, target));
  TANDEM_RETURN_IF_ERROR(set_value(kernel, 3, place.word(abort)));
  TANDEM_RETURN_IF_ERROR(set_value(kernel, 4, polls));
  return enqueue_single(queue_, kernel, "wait_for");
}

Status LaneImpl::enqueue_signal(ProgressCounter* counter, uint32_t value) {
  const CounterPlace place = place_of(counter);
  TANDEM_RETURN_IF_ERROR(load(place.kernels));
  const cl_kernel kernel = place.kernels->signal.get();
  TANDEM_RETURN_IF_ERROR(place.set_base(kernel));
  TANDEM_RETURN_IF_ERROR(set_value(kernel, 1, place.word(&counter->value)));
  TANDEM_RETURN_IF_ERROR(set_value(kernel, 2, value));
  return enqueue_single(queue_, kernel, "signal_progress");
}

Status LaneImpl::self_test() {
  if (shared_memory() != SharedMemoryKind::kFineAtomics) {
    return unsupported(fmt::format("{} has no atomics in shared memory", device_.summary.device));
  }
  return test_counters(&svm_);
}

Status LaneImpl::pinned_self_test() { return test_counters(&pinned_); }

Status LaneImpl::test_counters(CounterKernels* kernels) {
  TANDEM_RETURN_IF_ERROR(load(kernels));
  TANDEM_RETURN_IF_ERROR(load_pass_on());
  // First: it tells how many polls make a second.
  TANDEM_RETURN_IF_ERROR(measure_polls(kernels));
  Status passed = pass_messages(kernels);
  for (int attempt = 1;
       passed.code() == StatusCode::kDeadlineExceeded && attempt < kSelfTestAttempts; ++attempt) {
    passed = pass_messages(kernels);
  }
  return passed;
}

StatusOr<std::shared_ptr<std::byte>> LaneImpl::allocate_counters(const CounterKernels* kernels,
                                                                 size_t bytes) {
  return kernels == &pinned_ ? allocate_pinned(bytes) : allocate(bytes);
}

// Rounds enqueued ahead, as in an inference: the device waits for the host's word, answers with
// data made from what it has, and signals.
Status LaneImpl::pass_messages(const CounterKernels* kernels) {
  constexpr uint32_t kRounds = 8;
  TANDEM_ASSIGN_OR_RETURN(const std::shared_ptr<std::byte> memory,
                          allocate_counters(kernels, sizeof(Board)));
  Board* board = new (memory.get()) Board();
  std::unique_ptr<Messages> messages;
  if (computes_on_own_memory(*this)) {
    TANDEM_ASSIGN_OR_RETURN(messages, CopiedMessages::create(context_.get(), queue_, copy_method_));
  } else {
    TANDEM_ASSIGN_OR_RETURN(std::shared_ptr<std::byte> shared, allocate(SharedMessages::kBytes));
    messages = std::make_unique<SharedMessages>(queue_, std::move(shared));
  }
  const auto enqueue = [&]() -> Status {
    for (uint32_t round = 1; round <= kRounds; ++round) {
      TANDEM_RETURN_IF_ERROR(
          enqueue_wait(&board->host, round, &board->abort.value, kSelfTestDeadline));
      TANDEM_RETURN_IF_ERROR(messages->enqueue(pass_on_kernel_.get(), round));
      TANDEM_RETURN_IF_ERROR(enqueue_signal(&board->device, round));
    }
    return flush();
  };
  Status result = enqueue();

  const auto deadline = Clock::now() + kSelfTestDeadline;
  for (uint32_t round = 1; round <= kRounds && result.ok(); ++round) {
    messages->ask(round);
    board->host.value.store(round, std::memory_order_release);
    while (!reached(board->device.value.load(std::memory_order_acquire), round) &&
           Clock::now() < deadline) {
      std::this_thread::yield();
    }
    // Before judging the answer: kernels behind a wait that has given up run on old data.
    if (board->abort.value.load(std::memory_order_acquire) != 0 || Clock::now() >= deadline) {
      result = deadline_exceeded(
          fmt::format("{} did not see a counter in time", device_.summary.device));
    } else if (!messages->is_answered(round)) {
      result = device_error(fmt::format("{} saw a counter before the data that it publishes",
                                        device_.summary.device));
    }
  }
  // Whatever happened, the board must not be freed under the kernels.
  if (!result.ok()) board->abort.value.store(1, std::memory_order_release);
  TANDEM_RETURN_IF_ERROR(check(clFinish(queue_.get()), "clFinish after the self-test"));
  return result;
}

Status LaneImpl::measure_polls(CounterKernels* kernels) {
  TANDEM_ASSIGN_OR_RETURN(const std::shared_ptr<std::byte> memory,
                          allocate_counters(kernels, sizeof(Board)));
  // A first launch may still compile something, and anything may keep the device from polling, or
  // this thread from looking: the fastest of a few tells, so that waits are not given up too early.
  constexpr int kTimes = 3;
  double fastest = 0;
  for (int time = 0; time <= kTimes; ++time) {
    Board* board = new (memory.get()) Board();
    const auto start = Clock::now();
    TANDEM_RETURN_IF_ERROR(
        enqueue_bounded_wait(&board->host, 1, &board->abort.value, kMeasuredPolls));
    TANDEM_RETURN_IF_ERROR(check(clFinish(queue_.get()), "clFinish"));
    const std::chrono::duration<double> taken = Clock::now() - start;
    if (board->abort.value.load(std::memory_order_acquire) != 1) {
      return device_error(
          fmt::format("{} does not give up a wait that cannot end", device_.summary.device));
    }
    if (time > 0) fastest = std::max(fastest, static_cast<double>(kMeasuredPolls) / taken.count());
  }
  kernels->polls_per_second = fastest;
  return {};
}

}  // namespace tandem::opencl
