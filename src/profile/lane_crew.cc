#include "profile/lane_crew.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <map>
#include <set>

namespace tandem {
namespace {

// True if lanes compute on every processor of the machine.
bool all_cores_taken(const std::vector<Lane*>& lanes) {
  std::set<int> taken;
  for (const Lane* lane : lanes) taken.insert(lane->info().cores.begin(), lane->info().cores.end());
  return taken.size() >= std::thread::hardware_concurrency();
}

}  // namespace

WorkerThread::WorkerThread() : thread_([this] { loop(); }) {}

WorkerThread::~WorkerThread() {
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

void WorkerThread::post(std::function<void()> work) {
  {
    std::lock_guard lock(mutex_);
    work_.push_back(std::move(work));
  }
  changed_.notify_one();
}

void WorkerThread::run(const std::function<void()>& work) {
  std::mutex mutex;
  std::condition_variable ended;
  bool done = false;
  std::exception_ptr thrown;
  post([&] {
    try {
      work();
    } catch (...) {
      thrown = std::current_exception();
    }
    // Notifies under the lock: the waiting side destroys these as soon as it gets it.
    std::lock_guard lock(mutex);
    done = true;
    ended.notify_one();
  });
  std::unique_lock lock(mutex);
  ended.wait(lock, [&] { return done; });
  if (thrown) std::rethrow_exception(thrown);
}

void WorkerThread::loop() {
  while (true) {
    std::function<void()> work;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return stop_ || !work_.empty(); });
      if (work_.empty()) return;
      work = std::move(work_.front());
      work_.pop_front();
    }
    work();
  }
}

StatusOr<std::shared_ptr<LaneCrew>> LaneCrew::create(std::vector<Lane*> lanes, Feeder feeder,
                                                     std::shared_ptr<const void> keep_alive) {
  std::shared_ptr<LaneCrew> crew(new LaneCrew);
  crew->keep_alive_ = std::move(keep_alive);
  crew->lanes_ = std::move(lanes);
  if (feeder == Feeder::kAuto) {
    feeder = all_cores_taken(crew->lanes_) ? Feeder::kFirstCpuLane : Feeder::kOwnThread;
  }
  std::shared_ptr<WorkerThread> first_cpu_thread;
  for (Lane* lane : crew->lanes_) {
    const bool asynchronous = lane->info().asynchronous;
    auto* queue_lane = asynchronous ? dynamic_cast<QueueLane*>(lane) : nullptr;
    if (asynchronous && !queue_lane) {
      return internal_error(
          fmt::format("lane {} is asynchronous but has no queue", lane->info().name));
    }
    crew->queue_lanes_.push_back(queue_lane);
    crew->threads_.push_back(asynchronous ? nullptr : std::make_shared<WorkerThread>());
    if (!asynchronous && !first_cpu_thread) first_cpu_thread = crew->threads_.back();
  }
  for (std::shared_ptr<WorkerThread>& thread : crew->threads_) {
    if (thread) continue;
    const bool share = feeder == Feeder::kFirstCpuLane && first_cpu_thread;
    thread = share ? first_cpu_thread : std::make_shared<WorkerThread>();
  }
  for (size_t i = 0; i < crew->lanes_.size(); ++i) {
    // A thread that only enqueues computes nothing, and stays free to run on any core.
    if (crew->queue_lanes_[i]) continue;
    Status entered;
    crew->threads_[i]->run([&] { entered = crew->lanes_[i]->enter(); });
    TANDEM_RETURN_IF_ERROR(entered.with_context("lane " + crew->lanes_[i]->info().name));
  }
  return crew;
}

StatusOr<std::shared_ptr<LaneCrew>> LaneCrew::of(const std::shared_ptr<Platform>& platform) {
  static std::mutex mutex;
  static std::map<const Platform*, std::weak_ptr<LaneCrew>> crews;
  std::lock_guard lock(mutex);
  std::erase_if(crews, [](const auto& entry) { return entry.second.expired(); });
  std::weak_ptr<LaneCrew>& entry = crews[platform.get()];
  if (std::shared_ptr<LaneCrew> crew = entry.lock()) return crew;
  std::vector<Lane*> lanes;
  for (const std::unique_ptr<Lane>& lane : platform->lanes()) lanes.push_back(lane.get());
  TANDEM_ASSIGN_OR_RETURN(std::shared_ptr<LaneCrew> crew,
                          create(std::move(lanes), Feeder::kAuto, platform));
  entry = crew;
  return crew;
}

StatusOr<LaneCrew::Lease> LaneCrew::acquire(const std::shared_ptr<LaneCrew>& crew,
                                            Clock::time_point deadline,
                                            const std::atomic<bool>* give_up) {
  // How long a cancelled call goes unnoticed.
  constexpr std::chrono::milliseconds kLook{5};
  std::unique_lock lock(crew->mutex_);
  const uint64_t ticket = crew->next_ticket_++;
  crew->waiting_.push_back(ticket);
  const auto leave = [&] {
    std::erase(crew->waiting_, ticket);
    crew->released_.notify_all();
  };
  while (crew->in_use_ || crew->waiting_.front() != ticket) {
    const bool cancel = give_up && give_up->load();
    if (cancel || Clock::now() >= deadline) {
      leave();
      if (cancel) return cancelled("the run was cancelled");
      return deadline_exceeded("the lanes were busy with other runs until the deadline");
    }
    crew->released_.wait_until(lock, give_up ? std::min(deadline, Clock::now() + kLook) : deadline);
  }
  crew->in_use_ = true;
  leave();
  return Lease(crew);
}

size_t LaneCrew::waiting() const {
  std::lock_guard lock(mutex_);
  return waiting_.size();
}

void LaneCrew::release() {
  {
    std::lock_guard lock(mutex_);
    in_use_ = false;
  }
  released_.notify_all();
}

}  // namespace tandem
