#include "profile/slice_timer.h"

#include <algorithm>
#include <new>

#include "lane/sim/world.h"
#include "support/cpu_relax.h"
#include "support/statistics.h"

namespace tandem {
namespace {

constexpr std::chrono::seconds kDeadline{30};

class HostTimer : public SliceTimer {
 public:
  StatusOr<Times> time(const std::vector<Task*>& tasks, const Meanwhile&) override {
    Times result;
    Clock::time_point before = Clock::now();
    for (Task* task : tasks) {
      TANDEM_RETURN_IF_ERROR(task->launch());
      const Clock::time_point now = Clock::now();
      result.push_back(microseconds(now - before));
      before = now;
    }
    return result;
  }
};

// For devices that signal: everything is enqueued behind a gate, with a signal after each task, and
// the host notes when it sees each. What a signal itself takes is measured alike, and subtracted.
class SignalTimer : public SliceTimer {
 public:
  SignalTimer(QueueLane& lane, std::shared_ptr<std::byte> memory)
      : lane_(lane), memory_(std::move(memory)) {
    lines_ = new (memory_.get()) ProgressCounter[3];
    for (int i = 0; i < 3; ++i) lines_[i].value.store(0);
  }

  StatusOr<Times> time(const std::vector<Task*>& tasks, const Meanwhile& meanwhile) override {
    ++round_;
    const Clock::time_point deadline = Clock::now() + kDeadline;
    const uint32_t first = lines_[kDone].value.load();
    uint32_t count = first;
    const auto enqueue = [&]() -> Status {
      TANDEM_RETURN_IF_ERROR(
          lane_.enqueue_wait(&lines_[kGate], round_, &lines_[kAbort].value, 2 * kDeadline));
      for (int i = 0; i <= kEmpty; ++i) {
        TANDEM_RETURN_IF_ERROR(lane_.enqueue_signal(&lines_[kDone], ++count));
      }
      const Clock::time_point start = Clock::now();
      for (Task* task : tasks) {
        TANDEM_RETURN_IF_ERROR(task->launch());
        TANDEM_RETURN_IF_ERROR(lane_.enqueue_signal(&lines_[kDone], ++count));
      }
      TANDEM_RETURN_IF_ERROR(lane_.flush());
      note_enqueue_us(microseconds(Clock::now() - start) / static_cast<double>(tasks.size()));
      return {};
    };
    const Status enqueued = enqueue();
    // Whatever has been enqueued waits for the gate.
    Clock::time_point looked = Clock::now();
    lines_[kGate].value.store(round_, std::memory_order_release);
    TANDEM_RETURN_IF_ERROR(enqueued);

    std::vector<Sight> seen;
    while (first + seen.size() != count) {
      const uint32_t done = lines_[kDone].value.load(std::memory_order_acquire) - first;
      const Clock::time_point now = Clock::now();
      while (seen.size() < done) seen.push_back({now, microseconds(now - looked)});
      looked = now;
      if (now >= deadline) {
        return deadline_exceeded("lane " + lane_.info().name + " did not finish what was timed");
      }
      if (meanwhile) {
        TANDEM_RETURN_IF_ERROR(meanwhile());
      } else {
        cpu_relax();
      }
    }
    TANDEM_RETURN_IF_ERROR(lane_.drain(deadline));

    std::vector<double> empty;
    for (int i = 1; i <= kEmpty; ++i) {
      if (const auto us = between(seen[i - 1], seen[i], kDoubt)) empty.push_back(*us);
    }
    // What disturbs makes it longer. With something to do meanwhile, most signals come between two
    // looks: then what was seen undisturbed before holds.
    if (!meanwhile) signal_us_ = summarize(empty).min;
    Times result;
    for (size_t i = kEmpty + 1; i < seen.size(); ++i) {
      const std::optional<double> us =
          between(seen[i - 1], seen[i], meanwhile ? kBusyDoubt : kDoubt);
      result.push_back(us ? std::optional(std::max(kLeast, *us - signal_us_)) : std::nullopt);
    }
    return result;
  }

 private:
  // When a signal was seen, and for how long before that nobody looked.
  struct Sight {
    Clock::time_point at;
    double blind_us;
  };
  // Nothing if this process was kept from looking: the signals may have come at any time meanwhile.
  static std::optional<double> between(const Sight& begin, const Sight& end, double share) {
    const double us = microseconds(end.at - begin.at);
    const double doubt = std::max(begin.blind_us, end.blind_us);
    return doubt <= std::max(kBlinkUs, share * us) ? std::optional(us) : std::nullopt;
  }

  static constexpr double kBlinkUs = 2;  // more than a look takes
  // Of a task's time, that it may be wrong by: usually, and with something to do between two looks.
  static constexpr double kDoubt = 0.1;
  static constexpr double kBusyDoubt = 0.5;
  static constexpr int kEmpty = 9;       // signals without a task before them
  static constexpr double kLeast = 0.1;  // microseconds
  enum Line { kGate, kDone, kAbort };

  QueueLane& lane_;
  std::shared_ptr<std::byte> memory_;
  ProgressCounter* lines_;
  uint32_t round_ = 0;
  double signal_us_ = 0;
};

// For all other devices: each task is launched and awaited by itself, once, and again several times
// over. The difference is what launches take behind each other, without what it takes the host to
// notice an end, which may be far more than a task and differ from that of an empty queue.
class DrainTimer : public SliceTimer {
 public:
  explicit DrainTimer(QueueLane& lane) : lane_(lane) {}
  bool repeats_tasks() const override { return true; }

  StatusOr<Times> time(const std::vector<Task*>& tasks, const Meanwhile& meanwhile) override {
    Times result;
    for (Task* task : tasks) {
      TANDEM_ASSIGN_OR_RETURN(double once_us, launched_us(*task, 1, meanwhile));
      TANDEM_ASSIGN_OR_RETURN(const double again_us, launched_us(*task, 1, meanwhile));
      once_us = std::min(once_us, again_us);  // what disturbs makes it longer, and the rest less
      const int more = std::clamp(static_cast<int>(kLongEnoughUs / once_us), kLeastMore, kMostMore);
      TANDEM_ASSIGN_OR_RETURN(const double us, launched_us(*task, 1 + more, meanwhile));
      if (once_us >= kNoticeIsNothingUs) {
        result.push_back(us / (1 + more));
      } else if (us > once_us) {
        result.push_back(std::max(kLeast, (us - once_us) / more));
      } else {
        result.push_back(std::nullopt);  // the single launch was disturbed, both times
      }
    }
    return result;
  }

 private:
  StatusOr<double> launched_us(Task& task, int times, const Meanwhile& meanwhile) {
    const Clock::time_point start = Clock::now();
    for (int i = 0; i < times; ++i) TANDEM_RETURN_IF_ERROR(task.launch());
    note_enqueue_us(microseconds(Clock::now() - start) / times);
    TANDEM_ASSIGN_OR_RETURN(const std::unique_ptr<DeviceEvent> end, lane_.enqueue_device_event());
    TANDEM_RETURN_IF_ERROR(lane_.flush());
    // Asked for, as EventSynchronization does: a driver may tell of it by itself milliseconds late.
    while (true) {
      TANDEM_ASSIGN_OR_RETURN(const bool passed, end->passed());
      if (passed) return microseconds(Clock::now() - start);
      if (Clock::now() >= start + kDeadline) {
        return deadline_exceeded("lane " + lane_.info().name + " did not finish what was timed");
      }
      if (meanwhile) {
        TANDEM_RETURN_IF_ERROR(meanwhile());
      } else {
        cpu_relax();
      }
    }
  }

  static constexpr double kLongEnoughUs = 2000;
  // To notice the end of so long a launch takes so little that no difference is needed, which a
  // disturbed single launch would spoil.
  static constexpr double kNoticeIsNothingUs = 1000;
  static constexpr int kLeastMore = 3;
  static constexpr int kMostMore = 20;
  static constexpr double kLeast = 0.1;  // microseconds

  QueueLane& lane_;
};

// Time is that of the simulated world: whatever the tasks do there.
class SimulatedTimer : public SliceTimer {
 public:
  SimulatedTimer(sim::SimulatedLane& lane, bool queue) : lane_(lane), queue_(queue) {}

  StatusOr<Times> time(const std::vector<Task*>& tasks, const Meanwhile& /*meanwhile*/) override {
    Times result;
    const sim::World& world = lane_.world();
    for (Task* task : tasks) {
      const double before = world.now_us(lane_.index());
      TANDEM_RETURN_IF_ERROR(task->launch());
      result.emplace_back(world.now_us(lane_.index()) - before);
      if (queue_) note_enqueue_us(world.model().sync.enqueue_us);
    }
    return result;
  }

 private:
  sim::SimulatedLane& lane_;
  const bool queue_;
};

}  // namespace

double SliceTimer::enqueue_us() const { return summarize(enqueue_us_).median; }

StatusOr<std::unique_ptr<SliceTimer>> SliceTimer::create(LaneCrew& crew, int lane) {
  std::unique_ptr<SliceTimer> timer;
  QueueLane* queue = crew.queue_lane(lane);
  if (sim::SimulatedLane* simulated = sim::as_simulated(crew.lanes()[lane])) {
    timer = std::make_unique<SimulatedTimer>(*simulated, queue != nullptr);
  } else if (!queue) {
    timer = std::make_unique<HostTimer>();
  } else if (queue->shared_memory() == SharedMemoryKind::kFineAtomics && queue->self_test().ok()) {
    TANDEM_ASSIGN_OR_RETURN(std::shared_ptr<std::byte> memory,
                            queue->allocate(3 * sizeof(ProgressCounter)));
    timer = std::make_unique<SignalTimer>(*queue, std::move(memory));
  } else {
    timer = std::make_unique<DrainTimer>(*queue);
  }
  return timer;
}

}  // namespace tandem
