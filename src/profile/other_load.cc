#include "profile/other_load.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <utility>

#include "lane/sim/world.h"
#include "profile/lone_operator.h"
#include "profile/on_lane.h"

namespace tandem {
namespace {

using predict::OtherLoad;

// Of the streaming load: rows of 16 kB, 16 of them a task, which takes some tens of microseconds on
// a core.
constexpr int64_t kColumns = 4096;
constexpr int64_t kRowsOfTask = 16;
// Source and result together.
constexpr int64_t kLeastBytes = int64_t{32} << 20;
constexpr int64_t kMostBytes = int64_t{256} << 20;
constexpr int64_t kMemorySamples = 16;
// Of the computing load: 2 MFLOPs on 300 kB for each core.
constexpr int64_t kProductRows = 16;
constexpr int64_t kProductSize = 256;
constexpr int64_t kSampleRows = 512;
constexpr size_t kComputeSamples = 12;

constexpr double kMostMargin = 8;
constexpr int kMostQueued = 20'000;
constexpr std::chrono::seconds kDeadline{30};

OperatorId memory_op(int lane) { return 3 * lane; }
OperatorId compute_op(int lane) { return 3 * lane + 1; }
OperatorId sample_op(int lane) { return 3 * lane + 2; }

int64_t cores_of(const Lane& lane) { return std::max<int64_t>(1, lane.info().cores.size()); }

}  // namespace

// A lane that computes the load on a thread of its own, until the end of its life.
struct OtherLoads::Busy {
  Busy(WorkerThread& thread, Load& load) {
    thread.post([this, &load] {
      const Clock::time_point deadline = Clock::now() + kDeadline;
      while (!stop.load(std::memory_order_relaxed) && status.ok() && Clock::now() < deadline) {
        status = load.launch_next();
        begun.store(true);
      }
      begun.store(true);
      const std::lock_guard lock(mutex);
      done = true;
      ended.notify_one();
    });
  }
  ~Busy() { static_cast<void>(finish()); }
  Busy(const Busy&) = delete;
  Busy& operator=(const Busy&) = delete;

  void await_begin() const {
    while (!begun.load()) std::this_thread::yield();
  }
  Status finish() {
    stop.store(true);
    std::unique_lock lock(mutex);
    ended.wait(lock, [this] { return done; });
    return status;
  }

  std::atomic<bool> stop = false;
  std::atomic<bool> begun = false;
  std::mutex mutex;
  std::condition_variable ended;
  bool done = false;
  Status status;
};

OtherLoads::~OtherLoads() {
  for (size_t lane = 0; lane < lanes_.size(); ++lane) {
    crew_.thread(static_cast<int>(lane)).run([&] {
      lanes_[lane].memory.tasks.clear();
      lanes_[lane].compute.tasks.clear();
      lanes_[lane].memory_sample.clear();
      lanes_[lane].compute_sample.clear();
      lanes_[lane].program.reset();
    });
  }
}

StatusOr<std::unique_ptr<OtherLoads>> OtherLoads::create(LaneCrew& crew, int64_t last_cache_bytes) {
  std::unique_ptr<OtherLoads> loads(new OtherLoads(crew));
  // Simulated lanes are told what the others do.
  if (sim::as_simulated(crew.lanes().front())) return loads;
  Graph& graph = loads->graph_;
  const int64_t bytes = std::clamp(2 * last_cache_bytes, kLeastBytes, kMostBytes);
  const int64_t rows = bytes / 2 / (kColumns * int64_t{sizeof(float)});
  loads->rows_ = rows;
  ConstantPool constants(true);
  for (const Lane* lane : crew.lanes()) {
    const std::string& name = lane->info().name;
    const TensorId source = graph.add_input(name + ".source", DataType::kFloat32, {rows, kColumns});
    TANDEM_ASSIGN_OR_RETURN(
        const TensorId streamed,
        graph.add(name + ".memory", UnaryAttributes{{Function::kRelu}}, {source}));
    const TensorId w = graph.add_constant(name + ".w", constants.get({kProductSize, kProductSize}));
    graph.mark_output(streamed);
    for (const auto& [suffix, product_rows] :
         {std::pair{".compute", kProductRows}, std::pair{".sample", kSampleRows}}) {
      const TensorId x = graph.add_input(name + suffix + ".x", DataType::kFloat32,
                                         {product_rows * cores_of(*lane), kProductSize});
      TANDEM_ASSIGN_OR_RETURN(const TensorId product,
                              graph.add(name + suffix, LinearAttributes{}, {x, w}));
      graph.mark_output(product);
    }
  }
  const auto ones = [&](const Tensor& tensor) { return *constants.get(tensor.dims); };
  TANDEM_ASSIGN_OR_RETURN(loads->memory_, GraphMemory::create(graph, crew.lanes(), ones));
  loads->lanes_.resize(crew.lanes().size());
  for (size_t lane = 0; lane < loads->lanes_.size(); ++lane) {
    const auto index = static_cast<int>(lane);
    TANDEM_RETURN_IF_ERROR(on_lane(crew, index, "preparing work for", [&]() -> Status {
      TANDEM_RETURN_IF_ERROR(loads->bind(index));
      return loads->bind_sample(index);
    }));
  }
  return loads;
}

Status OtherLoads::bind(int lane) {
  LaneLoads& loads = lanes_[lane];
  TANDEM_ASSIGN_OR_RETURN(loads.program, crew_.lanes()[lane]->load(graph_, memory_.bindings()));
  for (const TensorId input : graph_.inputs()) {
    TANDEM_RETURN_IF_ERROR(
        loads.program->enqueue_upload(input, whole_region(graph_.tensor(input).dims)));
  }
  for (int64_t row = 0; row < rows_; row += kRowsOfTask) {
    const Slice slice{memory_op(lane), 0, row, std::min(row + kRowsOfTask, rows_)};
    TANDEM_ASSIGN_OR_RETURN(std::unique_ptr<Task> task, loads.program->bind(slice, 0));
    loads.memory.tasks.push_back(std::move(task));
  }
  TANDEM_ASSIGN_OR_RETURN(std::unique_ptr<Task> task,
                          loads.program->bind(Slice{.op = compute_op(lane)}, 0));
  loads.compute.tasks.push_back(std::move(task));
  TANDEM_ASSIGN_OR_RETURN(const std::unique_ptr<SliceTimer> timer, SliceTimer::create(crew_, lane));
  for (Load* load : {&loads.memory, &loads.compute}) {
    std::vector<Task*> tasks;
    constexpr size_t kTimed = 16;
    for (size_t i = 0; i < kTimed; ++i) tasks.push_back(load->tasks[i % load->tasks.size()].get());
    TANDEM_RETURN_IF_ERROR(timer->time(tasks).status());
    TANDEM_ASSIGN_OR_RETURN(const SliceTimer::Times times, timer->time(tasks));
    double sum = 0;
    int told = 0;
    for (const std::optional<double>& us : times) {
      sum += us.value_or(0);
      told += us.has_value();
    }
    load->task_us = told > 0 ? sum / told : 1;
  }
  return {};
}

Status OtherLoads::bind_sample(int lane) {
  LaneLoads& loads = lanes_[lane];
  const int64_t rows_each = (rows_ + kMemorySamples - 1) / kMemorySamples;
  for (int64_t row = 0; row < rows_; row += rows_each) {
    const Slice slice{memory_op(lane), 0, row, std::min(row + rows_each, rows_)};
    TANDEM_ASSIGN_OR_RETURN(std::unique_ptr<Task> task, loads.program->bind(slice, 0));
    loads.memory_sample.push_back(std::move(task));
  }
  TANDEM_ASSIGN_OR_RETURN(std::unique_ptr<Task> task,
                          loads.program->bind(Slice{.op = sample_op(lane)}, 0));
  loads.compute_sample.push_back(std::move(task));
  return {};
}

OtherLoads::Sample OtherLoads::sample(int lane, OtherLoad load) const {
  const LaneLoads& loads = lanes_[lane];
  Sample sample;
  if (load == OtherLoad::kMemory) {
    for (const auto& task : loads.memory_sample) sample.tasks.push_back(task.get());
    sample.bytes = static_cast<double>(2 * rows_ * kColumns * sizeof(float)) /
                   static_cast<double>(loads.memory_sample.size());
  } else {
    sample.tasks.assign(kComputeSamples, loads.compute_sample.front().get());
    sample.bytes = work_of(graph_, Slice{.op = sample_op(lane)}).bytes;
  }
  return sample;
}

OtherLoads::Load& OtherLoads::load_of(int lane, OtherLoad load) {
  return load == OtherLoad::kMemory ? lanes_[lane].memory : lanes_[lane].compute;
}

StatusOr<std::unique_ptr<DeviceEvent>> OtherLoads::fill(int lane, Load& load, double us) {
  QueueLane& queue = *crew_.queue_lane(lane);
  TANDEM_RETURN_IF_ERROR(load.launch_next());
  TANDEM_ASSIGN_OR_RETURN(const std::unique_ptr<DeviceEvent> begin, queue.enqueue_device_event());
  const int count = std::clamp(static_cast<int>(us / load.task_us), 4, kMostQueued);
  for (int i = 0; i < count; ++i) TANDEM_RETURN_IF_ERROR(load.launch_next());
  TANDEM_ASSIGN_OR_RETURN(std::unique_ptr<DeviceEvent> end, queue.enqueue_device_event());
  TANDEM_RETURN_IF_ERROR(queue.flush());
  TANDEM_RETURN_IF_ERROR(begin->wait(Clock::now() + kDeadline));
  return end;
}

StatusOr<bool> OtherLoads::during(
    int lane, OtherLoad load, double expected_us,
    const std::function<Status(const SliceTimer::Meanwhile&)>& measure) {
  WorkerThread& own = crew_.thread(lane);
  if (sim::SimulatedLane* simulated = sim::as_simulated(crew_.lanes()[lane])) {
    sim::World& world = simulated->world();
    world.set_other_work(
        lane, load == OtherLoad::kMemory ? sim::OtherWork::kMemory : sim::OtherWork::kCompute);
    Status measured;
    own.run([&] { measured = measure(nullptr); });
    world.set_other_work(lane, sim::OtherWork::kNone);
    TANDEM_RETURN_IF_ERROR(measured);
    return true;
  }
  std::vector<std::unique_ptr<Busy>> busy;
  std::vector<int> queues;
  SliceTimer::Meanwhile meanwhile;
  for (int other = 0; other < static_cast<int>(lanes_.size()); ++other) {
    if (other == lane) continue;
    Load& work = load_of(other, load);
    if (crew_.queue_lane(other)) {
      queues.push_back(other);
    } else if (&crew_.thread(other) == &own) {
      meanwhile = [&work] { return work.launch_next(); };
    } else {
      busy.push_back(std::make_unique<Busy>(crew_.thread(other), work));
    }
  }
  for (const auto& b : busy) b->await_begin();
  bool lasted = true;
  const auto run = [&]() -> Status {
    std::vector<std::unique_ptr<DeviceEvent>> ends;
    for (const int queue : queues) {
      TANDEM_ASSIGN_OR_RETURN(std::unique_ptr<DeviceEvent> end,
                              fill(queue, load_of(queue, load), margin_ * expected_us));
      ends.push_back(std::move(end));
    }
    const Status measured = measure(meanwhile);
    for (const auto& end : ends) {
      TANDEM_ASSIGN_OR_RETURN(const bool passed, end->passed());
      lasted = lasted && !passed;
      TANDEM_RETURN_IF_ERROR(end->wait(Clock::now() + kDeadline));
    }
    return measured;
  };
  Status status;
  own.run([&] { status = run(); });
  for (const auto& b : busy) {
    const Status ended = b->finish();
    if (status.ok()) status = ended;
  }
  TANDEM_RETURN_IF_ERROR(status);
  if (!lasted) margin_ = std::min(margin_ * 1.5, kMostMargin);
  return lasted;
}

}  // namespace tandem
