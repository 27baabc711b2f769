#include "schedule/random_problem.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "support/random_numbers.h"

namespace tandem {
namespace {

// Every output has these extents along either axis, and parts begin on multiples of the grain.
constexpr int64_t kExtent = 64;
constexpr int64_t kGrain = 2;
constexpr int kChannels = 1;
constexpr int kRows = 3;

enum class Kind {
  kDense,  // a convolution: every output channel needs all input channels
  kLocal,  // a depthwise convolution, a sum, a pooling
  kWholeOnly
};

struct Work {
  Kind kind = Kind::kDense;
  int64_t halo = 0;           // rows that are read beyond those that are made
  std::vector<double> us;     // whole, by lane
  std::vector<int> lanes_by;  // fastest first
  double split_loss = 0;      // how much longer all parts take together than the whole
  double copy_us = 0;         // of the whole output to or from a lane's own memory
};

// A partition: parts of lanes in ascending order.
struct Cut {
  int axis = kNone;
  std::vector<int> lanes;
  std::vector<int64_t> places;  // where parts begin, and the extent

  bool operator==(const Cut&) const = default;
};

class Generator {
 public:
  explicit Generator(const RandomProblemOptions& options)
      : options_(options), random_(options.seed) {}

  ModeProblem make() &&;

 private:
  void add_lanes();
  Work random_work();
  double part_us(const Work& work, int lane, double share) const;
  double end_us(const Work& work, const Cut& cut) const;
  Cut cut_by(const std::vector<double>& weights, int axis, const std::vector<int>& lanes) const;
  Cut balanced(const Work& work, int axis, const std::vector<int>& lanes) const;
  std::vector<Cut> cuts_of(int op);
  void add_modes(int op);
  void add_edge(int from, int to);
  bool waits(int to, const Part& reader, const Part& maker) const;

  const RandomProblemOptions options_;
  RandomNumbers random_;
  ModeProblem problem_;
  std::vector<std::vector<int>> inputs_;
  std::vector<double> speeds_;     // of lanes
  std::vector<double> overheads_;  // of a part, by lane
  std::vector<bool> own_memory_;   // by lane
  std::vector<Work> works_;
  std::vector<std::vector<Cut>> cuts_;
};

void Generator::add_lanes() {
  const bool feeding = random_.coin();
  const bool telling = random_.integer(0, 3) == 0;
  const bool copying = random_.integer(0, 5) == 0;
  const double latency = random_.ratio(0.5, random_.integer(0, 3) == 0 ? 100 : 15);
  for (int lane = 0; lane < options_.lanes; ++lane) {
    ModeLane added;
    added.name = fmt::format("lane{}", lane);
    const bool last = lane > 0 && lane + 1 == options_.lanes;
    if (last && feeding) {
      added.fed_by = 0;
      added.enqueue_us = random_.real(1, 4);
    }
    if (telling) {
      added.send_us = random_.real(0, 3);
      added.receive_us = random_.real(0, 3);
    }
    problem_.lanes.push_back(added);
    own_memory_.push_back(last && copying);
    speeds_.push_back(random_.ratio(0.4, 2.5));
    overheads_.push_back(added.enqueue_us + random_.real(1, 8));
  }
  for (int from = 0; from < options_.lanes; ++from) {
    problem_.latency_us.emplace_back();
    for (int to = 0; to < options_.lanes; ++to) {
      problem_.latency_us.back().push_back(from == to ? 0 : latency * random_.real(0.5, 1.5));
    }
  }
}

Work Generator::random_work() {
  Work work;
  const int64_t draw = random_.integer(0, 19);
  work.kind = draw < 12 ? Kind::kDense : draw < 18 ? Kind::kLocal : Kind::kWholeOnly;
  work.halo = random_.integer(0, 2);
  const double us = random_.ratio(20, 2000) * (work.kind == Kind::kDense ? 1 : 0.2);
  for (const double speed : speeds_) work.us.push_back(us / speed * random_.ratio(0.6, 1.7));
  work.split_loss = random_.real(0, 0.15);
  work.copy_us = random_.ratio(2, 60);
  work.lanes_by.resize(speeds_.size());
  std::iota(work.lanes_by.begin(), work.lanes_by.end(), 0);
  std::sort(work.lanes_by.begin(), work.lanes_by.end(),
            [&](int a, int b) { return work.us[a] < work.us[b]; });
  return work;
}

double Generator::part_us(const Work& work, int lane, double share) const {
  const double loss = share < 1 ? 1 + work.split_loss : 1;
  return overheads_[lane] + work.us[lane] * share * loss;
}

double Generator::end_us(const Work& work, const Cut& cut) const {
  double end = 0;
  for (size_t i = 0; i < cut.lanes.size(); ++i) {
    const double share =
        cut.axis == kNone ? 1 : static_cast<double>(cut.places[i + 1] - cut.places[i]) / kExtent;
    end = std::max(end, part_us(work, cut.lanes[i], share));
  }
  return end;
}

// Lanes without a share are left out.
Cut Generator::cut_by(const std::vector<double>& weights, int axis,
                      const std::vector<int>& lanes) const {
  const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
  Cut cut{axis, {}, {0}};
  double sum = 0;
  for (size_t i = 0; i < lanes.size(); ++i) {
    sum += weights[i];
    const int64_t end = std::llround(kExtent / kGrain * sum / total) * kGrain;
    if (end <= cut.places.back()) continue;
    cut.lanes.push_back(lanes[i]);
    cut.places.push_back(end);
  }
  if (cut.lanes.size() == 1) return {kNone, cut.lanes, {}};
  return cut;
}

Cut Generator::balanced(const Work& work, int axis, const std::vector<int>& lanes) const {
  std::vector<double> weights;
  for (const int lane : lanes) weights.push_back(1 / work.us[lane]);
  return cut_by(weights, axis, lanes);
}

std::vector<Cut> Generator::cuts_of(int op) {
  const Work& work = works_[op];
  std::vector<Cut> cuts;
  const auto add = [&](const Cut& cut) {
    if (static_cast<int>(cuts.size()) == options_.max_modes) return;
    if (std::find(cuts.begin(), cuts.end(), cut) == cuts.end()) cuts.push_back(cut);
  };
  for (int lane = 0; lane < options_.lanes; ++lane) add({kNone, {lane}, {}});
  if (work.kind == Kind::kWholeOnly) return cuts;
  std::vector<int> all(options_.lanes);
  std::iota(all.begin(), all.end(), 0);
  for (const int axis : {kChannels, kRows}) add(balanced(work, axis, all));
  for (const int input : inputs_[op]) {
    for (const Cut& cut : cuts_[input]) {
      if (cut.axis != kNone && end_us(work, cut) < 1.3 * end_us(work, cuts.back())) add(cut);
    }
  }
  for (size_t count = 2; count < all.size(); ++count) {
    std::vector<int> lanes(work.lanes_by.begin(), work.lanes_by.begin() + count);
    std::sort(lanes.begin(), lanes.end());
    for (const int axis : {kChannels, kRows}) add(balanced(work, axis, lanes));
  }
  for (const double shift : {0.7, 1.4}) {
    for (const int axis : {kChannels, kRows}) {
      std::vector<double> weights;
      for (const int lane : all) weights.push_back((lane == 0 ? shift : 1) / work.us[lane]);
      add(cut_by(weights, axis, all));
    }
  }
  return cuts;
}

void Generator::add_modes(int op) {
  const Work& work = works_[op];
  ModeOperator added{fmt::format("op{}", op), {}};
  for (const Cut& cut : cuts_[op]) {
    Mode mode;
    for (size_t i = 0; i < cut.lanes.size(); ++i) {
      Part part;
      part.lane = cut.lanes[i];
      part.slice = {.op = op};
      double share = 1;
      if (cut.axis != kNone) {
        part.slice = {op, cut.axis, cut.places[i], cut.places[i + 1]};
        share = static_cast<double>(part.slice.end - part.slice.begin) / kExtent;
      }
      part.us = part_us(work, part.lane, share);
      if (own_memory_[part.lane]) part.leave_us = work.copy_us * share;
      mode.parts.push_back(part);
    }
    added.modes.push_back(std::move(mode));
  }
  problem_.operators.push_back(std::move(added));
}

bool Generator::waits(int to, const Part& reader, const Part& maker) const {
  if (reader.slice.whole() || maker.slice.whole()) return true;
  if (reader.slice.axis != maker.slice.axis) return true;
  int64_t beyond = 0;
  if (reader.slice.axis == kRows) beyond = works_[to].halo;
  if (reader.slice.axis == kChannels && works_[to].kind == Kind::kDense) return true;
  return maker.slice.begin < reader.slice.end + beyond &&
         reader.slice.begin - beyond < maker.slice.end;
}

void Generator::add_edge(int from, int to) {
  ModeEdge edge{from, to, {}, {}};
  edge.waits.assign(problem_.index_size(edge), 0);
  const bool copying = std::find(own_memory_.begin(), own_memory_.end(), true) != own_memory_.end();
  if (copying) edge.fetch_us.assign(edge.waits.size(), 0);
  const std::vector<Mode>& from_modes = problem_.operators[from].modes;
  const std::vector<Mode>& to_modes = problem_.operators[to].modes;
  for (size_t f = 0; f < from_modes.size(); ++f) {
    for (size_t t = 0; t < to_modes.size(); ++t) {
      for (size_t p = 0; p < to_modes[t].parts.size(); ++p) {
        const Part& reader = to_modes[t].parts[p];
        const size_t at =
            problem_.index(edge, static_cast<int>(f), static_cast<int>(t), static_cast<int>(p));
        for (size_t q = 0; q < from_modes[f].parts.size(); ++q) {
          const Part& maker = from_modes[f].parts[q];
          if (!waits(to, reader, maker)) continue;
          edge.waits[at] = static_cast<PartMask>(edge.waits[at] | 1u << q);
          if (!own_memory_[reader.lane] || maker.lane == reader.lane) continue;
          const double share =
              maker.slice.whole()
                  ? 1
                  : static_cast<double>(maker.slice.end - maker.slice.begin) / kExtent;
          edge.fetch_us[at] += works_[from].copy_us * share;
        }
      }
    }
  }
  problem_.edges.push_back(std::move(edge));
}

ModeProblem Generator::make() && {
  add_lanes();
  inputs_ = random_topology(options_.family, options_.operators, options_.seed);
  problem_.name = fmt::format("{}-{}x{}-{}", to_string(options_.family), options_.operators,
                              options_.lanes, options_.seed);
  for (int op = 0; op < static_cast<int>(inputs_.size()); ++op) {
    works_.push_back(random_work());
    cuts_.push_back(cuts_of(op));
    add_modes(op);
    for (const int from : inputs_[op]) add_edge(from, op);
  }
  return std::move(problem_);
}

}  // namespace

ModeProblem random_problem(const RandomProblemOptions& options) {
  return Generator(options).make();
}

}  // namespace tandem
