#include "profile/profile_batch.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "profile/describe_slice.h"
#include "profile/on_lane.h"
#include "support/statistics.h"

namespace tandem {
namespace {

using predict::OtherLoad;

// Rounds that count: at least, and at most while something spreads too wide.
constexpr int kLeastRounds = 6;
constexpr int kMostRounds = 9;
constexpr size_t kLeastSamples = 5;
// Distance of the quartiles that is too wide: relative to the median, and what clocks and signals
// blur anyway. With a load, what matters is a ratio of medians measured in turn.
constexpr double kMostSpread = 0.12;
constexpr double kMostLoadedSpread = 0.25;
constexpr double kBlurUs = 1;
// Of repeated cases: rounds, and runs in a row as long as this takes, about.
constexpr int kRepeatedRounds = 2;
constexpr double kRepeatedUs = 2000;
constexpr int kLeastRepeats = 3;
constexpr int kMostRepeats = 24;
// With a load: rounds that count. Slices below this are too short to be timed while others work.
constexpr int kContendedRounds = 5;
constexpr double kLeastContendedUs = 100;

struct Quartiles {
  double low = 0;
  double median = 0;
  double high = 0;

  bool too_wide(double most_spread = kMostSpread) const {
    return high - low > std::max(most_spread * median, kBlurUs);
  }
};

Quartiles quartiles(std::vector<double> samples) {
  std::sort(samples.begin(), samples.end());
  return {quantile(samples, 0.25), quantile(samples, 0.5), quantile(samples, 0.75)};
}

double median(const std::vector<double>& samples) {
  return samples.empty() ? 0 : quartiles(samples).median;
}

bool is_mixed(const ProfileCase& c) { return !c.repeated && c.load == OtherLoad::kNone; }

void shuffle(std::vector<size_t>& order, ProfileRandom& random) {
  for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random() % i]);
}

// A list of tasks of which some are timed.
struct Round {
  std::vector<Task*> tasks;
  std::vector<std::pair<size_t, size_t>> timed;  // position in `tasks`, index of the case
};

}  // namespace

std::string key_of(const ProfileCase& c, const std::string& lane) {
  return fmt::format("{} | {} | {} | {} | {} | {}{}", c.sample->signature, to_string(c.cut), lane,
                     c.threads, to_string(c.load), c.repeated ? "repeated" : "mixed",
                     c.sample->second_time ? " | second time" : "");
}

StatusOr<std::unique_ptr<ProfileBatch>> ProfileBatch::create(LaneCrew& crew,
                                                             const std::vector<ProfileLane>& lanes,
                                                             std::vector<ProfileCase> cases,
                                                             uint64_t seed) {
  std::unique_ptr<ProfileBatch> batch(new ProfileBatch(crew, seed));
  TANDEM_RETURN_IF_ERROR(batch->build(lanes, std::move(cases)));
  return batch;
}

ProfileBatch::~ProfileBatch() {
  for (OnLane& on_lane : lanes_) {
    crew_.thread(on_lane.lane->index).run([&] {
      on_lane.bound.clear();
      on_lane.writers.clear();
      on_lane.program.reset();
    });
  }
}

template <typename Work>
Status ProfileBatch::on_thread(const OnLane& on_lane, const Work& work) {
  return tandem::on_lane(crew_, on_lane.lane->index, "profiling", work);
}

Status ProfileBatch::build(const std::vector<ProfileLane>& lanes, std::vector<ProfileCase> cases) {
  ConstantPool constants(true);
  for (const ProfileCase& c : cases) {
    const auto [entry, fresh] = operators_.try_emplace(c.sample->signature);
    if (!fresh) continue;
    TANDEM_ASSIGN_OR_RETURN(
        entry->second,
        add_to(graph_, *c.sample->op, fmt::format("op{}", operators_.size()), constants));
  }
  TANDEM_RETURN_IF_ERROR(graph_.validate());
  placement_ = analyse(graph_);
  const auto value_of = [&](const Tensor& tensor) {
    return tensor.type == DataType::kFloat32 ? *constants.get(tensor.dims)
                                             : HostTensor(tensor.type, tensor.dims);
  };
  TANDEM_ASSIGN_OR_RETURN(memory_, GraphMemory::create(graph_, crew_.lanes(), value_of));
  for (const ProfileLane& lane : lanes) {
    OnLane& on_lane = lanes_.emplace_back();
    on_lane.lane = &lane;
    for (ProfileCase& c : cases) {
      if (c.lane != lane.index) continue;
      const OperatorId op = operators_.at(c.sample->signature).op;
      Bound& bound = on_lane.bound.emplace_back();
      bound.slice = {op, c.cut.axis, c.cut.begin, c.cut.end};
      bound.profile_case = std::move(c);
    }
  }
  for (OnLane& on_lane : lanes_) {
    TANDEM_RETURN_IF_ERROR(on_thread(on_lane, [&] { return load(on_lane); }));
  }
  return {};
}

Status ProfileBatch::load(OnLane& on_lane) {
  if (on_lane.bound.empty()) return {};
  TANDEM_ASSIGN_OR_RETURN(on_lane.program,
                          crew_.lanes()[on_lane.lane->index]->load(graph_, memory_.bindings()));
  LaneProgram& program = *on_lane.program;
  for (const TensorId input : graph_.inputs()) {
    TANDEM_RETURN_IF_ERROR(program.enqueue_upload(input, whole_region(graph_.tensor(input).dims)));
  }
  // Cases of one slice and number of threads differ in how they are run only; but a task belongs to
  // one, and binding again costs little once the kernel is there.
  for (Bound& bound : on_lane.bound) {
    const ProfileCase& c = bound.profile_case;
    TANDEM_ASSIGN_OR_RETURN(bound.task, program.bind(bound.slice, c.threads));
    for (const OperatorId writer : operators_.at(c.sample->signature).writers) {
      std::unique_ptr<Task>& task = on_lane.writers[writer];
      if (!task) {
        TANDEM_ASSIGN_OR_RETURN(task, program.bind(Slice{.op = writer}, 0));
      }
      bound.writers.push_back(task.get());
    }
  }
  const PreparationStats stats = program.preparation();
  if (stats.programs_compiled > 0) compile_us_ += stats.compile_us + stats.warm_us;
  return {};
}

Status ProfileBatch::measure_mixed(OnLane& on_lane, bool keep) {
  std::vector<size_t> order;
  for (size_t i = 0; i < on_lane.bound.size(); ++i) {
    if (is_mixed(on_lane.bound[i].profile_case)) order.push_back(i);
  }
  if (order.empty()) return {};
  shuffle(order, random_);
  Round round;
  for (const size_t i : order) {
    const Bound& bound = on_lane.bound[i];
    round.tasks.insert(round.tasks.end(), bound.writers.begin(), bound.writers.end());
    round.timed.emplace_back(round.tasks.size(), i);
    round.tasks.push_back(bound.task.get());
  }
  TANDEM_ASSIGN_OR_RETURN(const SliceTimer::Times times, on_lane.lane->timer->time(round.tasks));
  for (const auto& [position, i] : round.timed) {
    if (keep && times[position]) on_lane.bound[i].us.push_back(*times[position]);
  }
  return {};
}

Status ProfileBatch::measure_repeated(OnLane& on_lane) {
  for (Bound& bound : on_lane.bound) {
    if (!bound.profile_case.repeated) continue;
    SliceTimer& timer = *on_lane.lane->timer;
    const auto run = [&](int times) {
      std::vector<Task*> tasks = bound.writers;
      tasks.insert(tasks.end(), static_cast<size_t>(times), bound.task.get());
      return timer.time(tasks);
    };
    if (bound.us.empty()) {
      TANDEM_ASSIGN_OR_RETURN(const SliceTimer::Times first, run(2));
      bound.us.push_back(first.back().value_or(kRepeatedUs));
      continue;  // which was for warming up, and to know how often
    }
    const int repeats =
        std::clamp(static_cast<int>(kRepeatedUs / bound.us.front()), kLeastRepeats, kMostRepeats);
    TANDEM_ASSIGN_OR_RETURN(const SliceTimer::Times times, run(1 + repeats));
    for (size_t i = bound.writers.size() + 1; i < times.size(); ++i) {
      if (times[i]) bound.us.push_back(*times[i]);
    }
  }
  return {};
}

// Alone and under each load in turn, in another order each time, so that whatever else changes
// meanwhile is the same for all. All slices are run twice and the second time counts: what the load
// before has left in caches is gone by then.
Status ProfileBatch::measure_contended(OnLane& on_lane, OtherLoads& loads, bool keep) {
  Round round;
  std::map<std::pair<OperatorId, std::string>, size_t> positions;
  for (size_t i = 0; i < on_lane.bound.size(); ++i) {
    const Bound& bound = on_lane.bound[i];
    if (bound.profile_case.load == OtherLoad::kNone) continue;
    // Both loads' cases of a slice share a place.
    const auto [place, fresh] =
        positions.try_emplace({bound.slice.op, to_string(bound.profile_case.cut)}, 0);
    if (fresh) {
      round.tasks.insert(round.tasks.end(), bound.writers.begin(), bound.writers.end());
      place->second = round.tasks.size();
      round.tasks.push_back(bound.task.get());
    }
    round.timed.emplace_back(place->second, i);
  }
  if (round.tasks.empty()) return {};
  const size_t once = round.tasks.size();
  round.tasks.reserve(2 * once);
  std::copy_n(round.tasks.begin(), once, std::back_inserter(round.tasks));

  SliceTimer& timer = *on_lane.lane->timer;
  std::map<OtherLoad, SliceTimer::Times> times;
  const auto time = [&](OtherLoad load, const SliceTimer::Meanwhile& meanwhile) -> Status {
    const Clock::time_point begin = Clock::now();
    TANDEM_ASSIGN_OR_RETURN(times[load], timer.time(round.tasks, meanwhile));
    if (load == OtherLoad::kNone) on_lane.alone_us = microseconds(Clock::now() - begin);
    return {};
  };
  std::vector<OtherLoad> order = {OtherLoad::kNone, OtherLoad::kMemory, OtherLoad::kCompute};
  // How long it takes alone has to be known first.
  if (keep) std::rotate(order.begin(), order.begin() + random_() % order.size(), order.end());
  for (const OtherLoad load : order) {
    if (load == OtherLoad::kNone) {
      TANDEM_RETURN_IF_ERROR(on_thread(on_lane, [&] { return time(load, nullptr); }));
      continue;
    }
    TANDEM_ASSIGN_OR_RETURN(const bool lasted,
                            loads.during(on_lane.lane->index, load, on_lane.alone_us,
                                         [&](const SliceTimer::Meanwhile& meanwhile) {
                                           return time(load, meanwhile);
                                         }));
    if (!lasted) times.erase(load);
  }
  const SliceTimer::Times& alone = times.at(OtherLoad::kNone);
  for (const auto& [position, i] : round.timed) {
    Bound& bound = on_lane.bound[i];
    const auto found = times.find(bound.profile_case.load);
    if (!keep || found == times.end()) continue;
    const std::optional<double> us = found->second[once + position];
    if (!us || !alone[once + position]) continue;
    bound.us.push_back(*us);
    bound.alone_us.push_back(*alone[once + position]);
  }
  return {};
}

Status ProfileBatch::measure(OtherLoads* loads, const GoOn& go_on) {
  const auto settled = [&] {
    return std::all_of(lanes_.begin(), lanes_.end(), [](const OnLane& on_lane) {
      return std::all_of(on_lane.bound.begin(), on_lane.bound.end(), [](const Bound& bound) {
        return !is_mixed(bound.profile_case) ||
               (bound.us.size() >= kLeastSamples && !quartiles(bound.us).too_wide());
      });
    });
  };
  for (int round = 0; round <= kMostRounds && go_on(round); ++round) {
    if (round > kLeastRounds && settled()) break;
    for (OnLane& on_lane : lanes_) {
      TANDEM_RETURN_IF_ERROR(on_thread(on_lane, [&] { return measure_mixed(on_lane, round > 0); }));
    }
  }
  for (int round = 0; round <= kRepeatedRounds && go_on(kLeastRounds); ++round) {
    for (OnLane& on_lane : lanes_) {
      TANDEM_RETURN_IF_ERROR(on_thread(on_lane, [&] { return measure_repeated(on_lane); }));
    }
  }
  if (!loads) return {};
  for (OnLane& on_lane : lanes_) leave_out_short(on_lane);
  for (int round = 0; round <= kContendedRounds && go_on(kLeastRounds); ++round) {
    for (OnLane& on_lane : lanes_) {
      TANDEM_RETURN_IF_ERROR(measure_contended(on_lane, *loads, round > 0));
    }
  }
  return {};
}

// Cases with a load whose slice is too short for it, as the mixed case of the same slice tells.
void ProfileBatch::leave_out_short(OnLane& on_lane) {
  std::set<std::pair<OperatorId, std::string>> shorts;
  const auto slice_of = [](const Bound& bound) {
    return std::pair(bound.slice.op, to_string(bound.profile_case.cut));
  };
  for (const Bound& bound : on_lane.bound) {
    if (is_mixed(bound.profile_case) && median(bound.us) < kLeastContendedUs) {
      shorts.insert(slice_of(bound));
    }
  }
  std::erase_if(on_lane.bound, [&](const Bound& bound) {
    return bound.profile_case.load != OtherLoad::kNone && shorts.contains(slice_of(bound));
  });
}

Measurement ProfileBatch::row_of(const OnLane& on_lane, const Bound& bound) const {
  const ProfileCase& c = bound.profile_case;
  const std::string& lane = crew_.info(c.lane).name;
  std::vector<double> us = bound.us;
  if (c.repeated) us.erase(us.begin());  // which told how often to run it
  const Quartiles times = quartiles(us);
  predict::SliceCase description =
      describe_slice(graph_, placement_, bound.slice, on_lane.lane->facts, bound.task->info());
  description.repeated = c.repeated;
  description.load = c.load;
  Measurement row;
  row.key = key_of(c, lane);
  row.family = to_string(c.sample->family);
  row.op = c.sample->signature;
  row.slice = to_string(c.cut);
  row.networks = c.sample->networks;
  row.lane = lane;
  row.threads = c.threads;
  row.implementation = bound.task->info().name;
  row.load = to_string(c.load);
  row.repeated = c.repeated;
  row.median_us = times.median;
  row.low_us = times.low;
  row.high_us = times.high;
  row.samples = static_cast<int>(us.size());
  row.attempts = c.attempts + 1;
  if (c.load == OtherLoad::kNone) {
    row.disturbed = times.too_wide();
  } else {
    row.disturbed =
        times.too_wide(kMostLoadedSpread) || quartiles(bound.alone_us).too_wide(kMostLoadedSpread);
  }
  row.alone_us = median(bound.alone_us);
  row.slice_case = to_json(description);
  return row;
}

template <typename Visit>
void ProfileBatch::visit_measured(const Visit& visit) const {
  for (const OnLane& on_lane : lanes_) {
    for (const Bound& bound : on_lane.bound) {
      if (bound.us.size() >= kLeastSamples + bound.profile_case.repeated) visit(on_lane, bound);
    }
  }
}

std::vector<Measurement> ProfileBatch::rows() const {
  std::vector<Measurement> rows;
  visit_measured(
      [&](const OnLane& lane, const Bound& bound) { rows.push_back(row_of(lane, bound)); });
  return rows;
}

std::vector<ProfileCase> ProfileBatch::measured_cases() const {
  std::vector<ProfileCase> cases;
  visit_measured([&](const OnLane&, const Bound& bound) { cases.push_back(bound.profile_case); });
  return cases;
}

}  // namespace tandem
