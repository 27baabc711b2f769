#include "profile/profiler.h"

#include <algorithm>
#include <chrono>
#include <deque>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>
#include <unordered_map>
#include <utility>

#include "lane/sim/world.h"
#include "profile/describe_slice.h"
#include "profile/machine_watch.h"
#include "profile/profile_batch.h"
#include "support/memory_left.h"

namespace tandem {
namespace {

using predict::OtherLoad;

// Of a case whose times cannot be trusted.
constexpr int kMostAttempts = 3;
// Of one batch: operators, their memory, and what it should take on a machine of 50 GFLOPS and
// 10 GB/s.
constexpr size_t kBatchOperators = 16;
constexpr double kBatchBytes = 512e6;
constexpr double kBatchSeconds = 2;
// Runs of a sample on one lane, about.
constexpr double kRuns = 12;
// Cases that are measured again wait until there are so many, so that they too are run between
// strangers; and so many other batches come between two of theirs.
constexpr size_t kEnoughAgain = 40;
constexpr int kBatchesBetween = 3;
// How far beyond its time a batch may go to get the samples that it needs.
constexpr std::chrono::seconds kGrace{3};

double unix_time() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

// What the probe of memory would find on simulated lanes: as much as one of them streams at most.
double streamed_gbps(const sim::PlatformModel& model) {
  double most = 0;
  for (int lane = 0; lane < static_cast<int>(model.lanes.size()); ++lane) {
    most = std::max(most, sim::bus_gbps(model, lane, sim::OtherWork::kMemory));
  }
  return most;
}

class Profiler {
 public:
  Profiler(const std::vector<Sample>& samples, LaneCrew& crew, MeasurementStore& store,
           const ProfilerOptions& options, std::vector<int> cores)
      : samples_(samples),
        crew_(crew),
        store_(store),
        options_(options),
        watch_(std::move(cores)) {}

  StatusOr<ProfilerOutcome> run(const Topology& topology) {
    TANDEM_RETURN_IF_ERROR(prepare(topology));
    begin_ = Clock::now();
    while (!is_over()) {
      std::vector<ProfileCase> cases = next_cases();
      if (cases.empty()) {
        outcome_.complete = true;
        break;
      }
      TANDEM_RETURN_IF_ERROR(measure(std::move(cases)));
    }
    outcome_.seconds = elapsed();
    for (const auto& [key, state] : measured_) {
      ++outcome_.rows;
      outcome_.disturbed += state.disturbed;
      outcome_.measured_again += state.attempts > 1;
    }
    return outcome_;
  }

 private:
  using RowState = MeasurementStore::RowState;

  Status prepare(const Topology& topology) {
    TANDEM_ASSIGN_OR_RETURN(known_, store_.keys());
    std::vector<int> indices = options_.lanes;
    if (indices.empty()) {
      indices.resize(crew_.lanes().size());
      std::iota(indices.begin(), indices.end(), 0);
    }
    for (const int index : indices) {
      ProfileLane& lane = lanes_.emplace_back();
      lane.index = index;
      lane.facts = lane_facts(crew_.info(index), topology);
      TANDEM_ASSIGN_OR_RETURN(lane.timer, SliceTimer::create(crew_, index));
    }
    // The best speed that was ever seen is what this machine can do.
    TANDEM_RETURN_IF_ERROR(store_.for_each([this](const Measurement& row) {
      watch_.remember({row.probe_gflops, row.probe_gbps});
    }));
    if (crew_.lanes().size() > 1) {
      TANDEM_ASSIGN_OR_RETURN(loads_, OtherLoads::create(crew_, last_cache_bytes(topology)));
    }
    return {};
  }

  double elapsed() const {
    return microseconds(Clock::now() - begin_) * 1e-6 - outcome_.compile_seconds;
  }
  double left() const { return options_.seconds > 0 ? options_.seconds - elapsed() : 1e9; }
  bool is_over() {
    if (options_.stop && options_.stop()) outcome_.stopped = true;
    return outcome_.stopped || left() <= 0;
  }
  void show_progress() const {
    if (!options_.on_progress) return;
    options_.on_progress(options_.seconds > 0
                             ? elapsed() / options_.seconds
                             : static_cast<double>(next_) / static_cast<double>(samples_.size()));
  }

  // --- what comes next ---

  bool is_wanted(const ProfileCase& c) const {
    const auto found = known_.find(key_of(c, crew_.info(c.lane).name));
    return found == known_.end() ||
           (found->second.disturbed && found->second.attempts < kMostAttempts);
  }
  int attempts_at(const ProfileCase& c) const {
    const auto found = known_.find(key_of(c, crew_.info(c.lane).name));
    return found == known_.end() ? 0 : found->second.attempts;
  }

  // All threads that the lane has, and another number of them, in turn.
  static std::vector<int> threads_of(const LaneInfo& lane, size_t sample) {
    std::vector<int> fewer;
    for (int threads = 1; threads < lane.max_threads; threads *= 2) fewer.push_back(threads);
    std::vector<int> result = {lane.max_threads};
    if (!fewer.empty() && !lane.asynchronous) result.push_back(fewer[sample % fewer.size()]);
    return result;
  }

  // Of one sample, those that are not in the store.
  std::vector<ProfileCase> cases_of(size_t index) const {
    std::vector<ProfileCase> cases;
    const auto sample = std::make_shared<const Sample>(samples_[index]);
    for (const ProfileLane& lane : lanes_) {
      const LaneInfo& info = crew_.info(lane.index);
      for (const int threads : threads_of(info, index)) {
        ProfileCase c{.sample = sample,
                      .cut = info.asynchronous ? sample->tail : sample->head,
                      .lane = lane.index,
                      .threads = threads};
        const bool is_new = attempts_at(c) == 0;
        if (is_wanted(c)) cases.push_back(c);
        if (sample->repeated) {
          c.repeated = true;
          if (is_wanted(c)) cases.push_back(c);
          c.repeated = false;
        }
        // With the mixed row, which tells whether the slice is too short to be measured with a
        // load.
        if (!is_new || !sample->contended || !loads_ || threads != info.max_threads) continue;
        for (const OtherLoad load : {OtherLoad::kMemory, OtherLoad::kCompute}) {
          c.load = load;
          if (attempts_at(c) == 0) cases.push_back(c);
        }
      }
    }
    for (ProfileCase& c : cases) c.attempts = attempts_at(c);
    return cases;
  }

  // Sources, inputs, outputs, and weights as given and as each lane packs them.
  double bytes_of(const Sample& sample) const {
    return sample.bytes * static_cast<double>(2 + lanes_.size());
  }
  double seconds_of(const Sample& sample) const {
    const double us = std::max(sample.flops / 50e3, 3 * sample.bytes / 10e3);
    return us * 1e-6 * kRuns * static_cast<double>(lanes_.size());
  }

  std::vector<ProfileCase> next_cases() {
    std::vector<ProfileCase> cases;
    const bool enough = again_.size() >= kEnoughAgain && since_again_ >= kBatchesBetween;
    if (enough || (next_ == samples_.size() && !again_.empty())) return cases_again();
    ++since_again_;
    std::set<std::string> operators;
    double bytes = 0;
    double seconds = 0;
    const double most_seconds = std::min(kBatchSeconds, left());
    for (; next_ < samples_.size() && operators.size() < kBatchOperators; ++next_) {
      const Sample& sample = samples_[next_];
      std::vector<ProfileCase> more = cases_of(next_);
      const auto fresh = std::stable_partition(
          more.begin(), more.end(), [](const ProfileCase& c) { return c.attempts == 0; });
      if (more.empty()) continue;
      if (bytes_of(sample) > static_cast<double>(memory_left()) / 2) {
        ++outcome_.skipped;
        continue;
      }
      if (fresh != more.begin()) {
        if (!operators.contains(sample.signature)) bytes += bytes_of(sample);
        seconds += seconds_of(sample);
      }
      if (!cases.empty() && (bytes > kBatchBytes || seconds > most_seconds)) break;
      // Those that an earlier run could not measure well have their turn with others of the kind.
      std::move(fresh, more.end(), std::back_inserter(again_));
      more.erase(fresh, more.end());
      if (more.empty()) continue;
      operators.insert(sample.signature);
      std::move(more.begin(), more.end(), std::back_inserter(cases));
    }
    // Of a run that goes on there may be nothing else.
    return cases.empty() ? cases_again() : cases;
  }

  std::vector<ProfileCase> cases_again() {
    const size_t count = std::min(again_.size(), kEnoughAgain);
    std::vector<ProfileCase> cases(again_.begin(),
                                   again_.begin() + static_cast<std::ptrdiff_t>(count));
    again_.erase(again_.begin(), again_.begin() + static_cast<std::ptrdiff_t>(count));
    since_again_ = 0;
    return cases;
  }

  // --- measuring ---

  MachineSpeed look() {
    const sim::SimulatedLane* simulated = sim::as_simulated(crew_.lanes().front());
    if (simulated) return {0, streamed_gbps(simulated->world().model())};
    return watch_.look();
  }

  Status measure(std::vector<ProfileCase> cases) {
    TANDEM_ASSIGN_OR_RETURN(
        const std::unique_ptr<ProfileBatch> batch,
        ProfileBatch::create(crew_, lanes_, std::move(cases), options_.seed + batches_++));
    outcome_.compile_seconds += batch->compile_us() * 1e-6;
    const MachineSpeed before = look();
    TANDEM_RETURN_IF_ERROR(batch->measure(loads_.get(), [this](int rounds) {
      show_progress();
      if (options_.stop && options_.stop()) outcome_.stopped = true;
      constexpr int kEnough = 6;
      const double over = -left();
      return !outcome_.stopped &&
             (over < 0 ||
              (rounds < kEnough && over < std::chrono::duration<double>(kGrace).count()));
    }));
    const MachineSpeed after = look();
    return keep(*batch, before, after);
  }

  Status keep(const ProfileBatch& batch, const MachineSpeed& before, const MachineSpeed& after) {
    std::vector<Measurement> rows = batch.rows();
    std::vector<ProfileCase> cases = batch.measured_cases();
    const bool disturbed = watch_.is_disturbed(before) || watch_.is_disturbed(after);
    const double now = unix_time();
    for (size_t i = 0; i < rows.size(); ++i) {
      Measurement& row = rows[i];
      row.disturbed = row.disturbed || disturbed;
      row.probe_gflops = std::min(before.gflops, after.gflops);
      row.probe_gbps = std::min(before.gigabytes_per_second, after.gigabytes_per_second);
      row.unix_time = now;
      known_[row.key] = measured_[row.key] = {row.attempts, row.disturbed};
      const bool loaded = cases[i].load != OtherLoad::kNone;
      if (row.disturbed && row.attempts < kMostAttempts && !loaded) {
        cases[i].attempts = row.attempts;
        again_.push_back(cases[i]);
      }
    }
    return store_.add(rows);
  }

  const std::vector<Sample>& samples_;
  LaneCrew& crew_;
  MeasurementStore& store_;
  const ProfilerOptions& options_;
  MachineWatch watch_;
  std::unordered_map<std::string, RowState> known_;     // in the store
  std::unordered_map<std::string, RowState> measured_;  // by this run
  std::vector<ProfileLane> lanes_;
  std::unique_ptr<OtherLoads> loads_;
  std::deque<ProfileCase> again_;
  int since_again_ = 0;  // batches
  size_t next_ = 0;      // into samples_
  uint64_t batches_ = 0;
  Clock::time_point begin_;
  ProfilerOutcome outcome_;
};

}  // namespace

StatusOr<ProfilerOutcome> profile(const std::vector<Sample>& samples, LaneCrew& crew,
                                  const Topology& topology, MeasurementStore& store,
                                  const ProfilerOptions& options) {
  std::set<int> cores;
  for (const Lane* lane : crew.lanes()) {
    cores.insert(lane->info().cores.begin(), lane->info().cores.end());
  }
  return Profiler(samples, crew, store, options, {cores.begin(), cores.end()}).run(topology);
}

std::string lane_facts_json(const LaneCrew& crew, const Topology& topology) {
  nlohmann::json lanes = nlohmann::json::object();
  for (const Lane* lane : crew.lanes()) {
    const predict::LaneFacts facts = lane_facts(lane->info(), topology);
    lanes[facts.name] = {{"kind", facts.kind},
                         {"vendor", facts.vendor},
                         {"cores", facts.cores},
                         {"max_threads", facts.max_threads},
                         {"compute_units", facts.compute_units},
                         {"simd_floats", facts.simd_floats},
                         {"l1_bytes", facts.l1_bytes},
                         {"l2_bytes", facts.l2_bytes},
                         {"l3_bytes", facts.l3_bytes},
                         {"local_bytes", facts.local_bytes},
                         {"max_work_group", facts.max_work_group}};
  }
  return lanes.dump();
}

}  // namespace tandem
