#include "profile/sampler.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <set>
#include <utility>

#include "profile/describe_slice.h"
#include "profile/signature.h"
#include "schedule/placement.h"

namespace tandem {
namespace {

using predict::SliceFamily;

// Of a family's time, what goes by its part of the networks' time; the rest is shared equally.
constexpr double kByNetworks = 0.75;
// Cuts of one operator along one axis.
constexpr int kFractions = 16;
constexpr size_t kAxes = 3;
// Operators between those of networks, per one of these, and at least.
constexpr double kBetweenPerOperator = 2;
constexpr size_t kLeastBetween = 60;
// Every so many samples are measured repeated too, and contended too.
constexpr int kRepeatedEvery = 2;
constexpr int kContendedEvery = 7;
// Every so many samples come a second time, so many samples later: several batches.
constexpr size_t kSecondTimeEvery = 8;
constexpr size_t kSecondTimeAfter = 200;
// Longer ones are left alone: it would take long, and shorter ones tell the same.
constexpr double kMostContendedUs = 10'000;

// A time to compare operators by where none is measured: microseconds on a machine of 50 GFLOPS and
// 10 GB/s.
double nominal_us(double flops, double bytes) { return std::max(flops / 50e3, bytes / 10e3); }
// What a sample costs beside: preparing its kernels.
constexpr double kOverheadUs = 8000;
// Runs of a sample on all lanes, and of one that is also contended.
constexpr double kRuns = 25;
constexpr double kContendedRuns = 90;

// An operator in a graph of its own, to be asked.
struct Examined {
  Graph graph;
  OperatorId op = kNone;
  std::string signature;
  Work work;
};

// Nothing if the operator would not be launched, or does not exist.
std::optional<Examined> examine(const LoneOperator& op) {
  Examined result;
  ConstantPool constants(false);
  const StatusOr<AddedOperator> added = add_to(result.graph, op, "op", constants);
  if (!added.ok()) return std::nullopt;
  const Placement placement = analyse(result.graph);
  result.op = added->op;
  if (!placement.launched[result.op]) return std::nullopt;
  result.signature = signature(result.graph, placement, result.op);
  result.work = work_of(result.graph, result.op);
  return result;
}

// 1/2, 1/4, 3/4, 1/8, 5/8, 3/8, ...: van der Corput's sequence.
double fraction_at(int index) {
  double result = 0;
  double part = 0.5;
  for (unsigned i = static_cast<unsigned>(index) + 1; i > 0; i >>= 1, part /= 2) {
    if (i & 1) result += part;
  }
  return result;
}

struct Cuts {
  Cut head;
  Cut tail;
};

// The operator's distinct cuts, the most telling first: axes in turn.
std::vector<Cuts> cuts_of(const Examined& op) {
  std::vector<std::vector<Cuts>> by_axis;
  for (const PartitionAxis& axis : partition_axes(op.graph, op.op)) {
    if (by_axis.size() == kAxes) break;
    const int64_t extent = op.graph.output_of(op.op).dims[axis.axis];
    const int64_t units = (extent + axis.granularity - 1) / axis.granularity;
    std::set<int64_t> taken;
    std::vector<Cuts> cuts;
    // Small extents have fewer cuts than the sequence has members.
    for (int i = 0; i < 4 * kFractions && static_cast<int>(cuts.size()) < kFractions; ++i) {
      const auto unit = std::llround(fraction_at(i) * static_cast<double>(units));
      const int64_t at = unit * axis.granularity;
      if (at <= 0 || at >= extent || !taken.insert(unit).second) continue;
      cuts.push_back({{axis.axis, 0, at}, {axis.axis, at, extent}});
    }
    by_axis.push_back(std::move(cuts));
  }
  std::vector<Cuts> all;
  for (size_t i = 0; i < kFractions; ++i) {
    for (const std::vector<Cuts>& cuts : by_axis) {
      if (i < cuts.size()) all.push_back(cuts[i]);
    }
  }
  return all;
}

}  // namespace

std::string to_string(const Cut& cut) {
  return cut.axis == kNone ? "whole" : fmt::format("{} {}:{}", cut.axis, cut.begin, cut.end);
}

void Sampler::add_network(const std::string& name, const Graph& graph) {
  const Placement placement = analyse(graph);
  for (size_t i = 0; i < graph.operators().size(); ++i) {
    const auto id = static_cast<OperatorId>(i);
    if (!placement.launched[i]) continue;
    auto op = std::make_shared<LoneOperator>(lone_operator(graph, id));
    const SliceFamily family = family_of(graph, id);
    const bool wanted = options_.families.empty() ||
                        std::find(options_.families.begin(), options_.families.end(), family) !=
                            options_.families.end();
    const std::optional<Examined> examined = wanted ? examine(*op) : std::nullopt;
    if (!examined) continue;
    const auto [found, fresh] = by_signature_.try_emplace(examined->signature, entries_.size());
    const double us = nominal_us(examined->work.flops, examined->work.bytes);
    if (fresh) entries_.push_back({std::move(op), family, examined->signature, {}, us, 0});
    Entry& entry = entries_[found->second];
    ++entry.networks[name];
    entry.weight_us += us;
  }
}

// The samples of one family, in order.
class Sampler::Family {
 public:
  Family(std::vector<const Entry*> entries, uint64_t seed, SliceFamily family)
      : family_(family), random_(seed * kSliceFamiliesAndMore + static_cast<uint64_t>(family)) {
    // Weighted sampling without replacement (Efraimidis and Spirakis, 2006). What networks spend
    // more time in comes earlier, as a rule, and what can be measured sooner; the root lets light
    // ones have their turn.
    std::vector<std::pair<double, const Entry*>> ranked;
    for (const Entry* entry : entries) {
      const double weight = std::sqrt((entry->weight_us + 1) / (entry->single_us + 200));
      ranked.emplace_back(std::log(uniform(random_, 1e-9, 1)) / weight, entry);
    }
    std::stable_sort(ranked.begin(), ranked.end(),
                     [](const auto& a, const auto& b) { return a.first > b.first; });
    for (const auto& [rank, entry] : ranked) {
      add_entry(*entry);
      weight_us_ += entry->weight_us;
    }
    add_between(ranked);
    merge();
  }

  double weight_us() const { return weight_us_; }
  std::vector<Sample>& samples() { return samples_; }

 private:
  static constexpr uint64_t kSliceFamiliesAndMore = 64;

  Sample sample_of(const Examined& op, std::shared_ptr<const LoneOperator> lone) const {
    Sample sample;
    sample.op = std::move(lone);
    sample.family = family_;
    sample.signature = op.signature;
    sample.flops = op.work.flops;
    sample.bytes = op.work.bytes;
    return sample;
  }

  void add_entry(const Entry& entry) {
    const std::optional<Examined> op = examine(*entry.op);
    Sample sample = sample_of(*op, entry.op);
    for (const auto& [name, count] : entry.networks) {
      sample.networks += (sample.networks.empty() ? "" : ",") + name;
    }
    whole_.push_back(sample);
    const std::vector<Cuts> cuts = cuts_of(*op);
    if (rounds_.size() < cuts.size()) rounds_.resize(cuts.size());
    for (size_t i = 0; i < cuts.size(); ++i) rounds_[i].push_back(cut(sample, cuts[i]));
  }

  static Sample cut(Sample sample, const Cuts& cuts) {
    sample.head = cuts.head;
    sample.tail = cuts.tail;
    return sample;
  }

  // Each comes whole, then in two parts.
  void add_between(const std::vector<std::pair<double, const Entry*>>& ranked) {
    const auto wanted = std::max(
        kLeastBetween, static_cast<size_t>(
                           std::llround(kBetweenPerOperator * static_cast<double>(ranked.size()))));
    std::set<std::string> seen;
    for (const auto& [rank, entry] : ranked) seen.insert(entry->signature);
    // Some have no freedom left, or cannot be varied at all.
    for (size_t i = 0; i < 3 * wanted && seen.size() < ranked.size() + wanted; ++i) {
      std::optional<LoneOperator> varied =
          perturbed(*ranked[i % ranked.size()].second->op, random_);
      const std::optional<Examined> op = varied ? examine(*varied) : std::nullopt;
      if (!op || !seen.insert(op->signature).second) continue;
      const Sample sample =
          sample_of(*op, std::make_shared<const LoneOperator>(*std::move(varied)));
      between_.push_back(sample);
      const std::vector<Cuts> cuts = cuts_of(*op);
      if (cuts.empty()) continue;
      const size_t first = random_() % cuts.size();
      between_.push_back(cut(sample, cuts[first]));
      if (cuts.size() == 1) continue;
      const size_t second = (first + 1 + random_() % (cuts.size() - 1)) % cuts.size();
      between_.push_back(cut(sample, cuts[second]));
    }
  }

  void merge() {
    std::vector<Sample> slices;
    for (std::vector<Sample>& round : rounds_) {
      std::move(round.begin(), round.end(), std::back_inserter(slices));
    }
    struct Stream {
      std::vector<Sample>* samples;
      int at_once;
      size_t next = 0;
    };
    Stream streams[] = {{&whole_, 3}, {&slices, 2}, {&between_, 1}};
    const size_t all = whole_.size() + slices.size() + between_.size();
    while (samples_.size() < all) {
      for (Stream& stream : streams) {
        for (int i = 0; i < stream.at_once && stream.next < stream.samples->size(); ++i) {
          Sample& sample = samples_.emplace_back(std::move((*stream.samples)[stream.next++]));
          sample.repeated = samples_.size() % kRepeatedEvery == 1;
          sample.contended = samples_.size() % kContendedEvery == 1 &&
                             nominal_us(sample.flops, sample.bytes) < kMostContendedUs;
        }
      }
    }
  }

  const SliceFamily family_;
  ProfileRandom random_;
  double weight_us_ = 0;
  std::vector<Sample> whole_;
  std::vector<std::vector<Sample>> rounds_;  // slices of all operators, the first of each first
  std::vector<Sample> between_;
  std::vector<Sample> samples_;
};

std::vector<Sample> Sampler::samples() const {
  std::map<SliceFamily, std::vector<const Entry*>> entries;
  for (const Entry& entry : entries_) entries[entry.family].push_back(&entry);
  struct Share {
    Family family;
    double weight = 0;
    double spent = 0;
    size_t next = 0;
  };
  std::vector<Share> shares;
  double all_us = 0;
  for (auto& [family, members] : entries) {
    shares.push_back({Family(std::move(members), options_.seed, family)});
    all_us += shares.back().family.weight_us();
  }
  size_t left = 0;
  for (Share& share : shares) {
    share.weight = kByNetworks * share.family.weight_us() / all_us +
                   (1 - kByNetworks) / static_cast<double>(shares.size());
    left += share.family.samples().size();
  }
  // The family that has had the least of its share comes next.
  std::vector<Sample> samples;
  samples.reserve(left + left / kSecondTimeEvery);
  size_t firsts = 0;
  std::deque<std::pair<size_t, Sample>> waiting;  // and after how many first ones they come
  for (; left > 0; --left) {
    Share* next = nullptr;
    for (Share& share : shares) {
      if (share.next == share.family.samples().size()) continue;
      if (!next || share.spent / share.weight < next->spent / next->weight) next = &share;
    }
    Sample& sample = next->family.samples()[next->next++];
    next->spent += kOverheadUs + (sample.contended ? kContendedRuns : kRuns) *
                                     nominal_us(sample.flops, sample.bytes);
    if (firsts++ % kSecondTimeEvery == 0) {
      Sample& second = waiting.emplace_back(firsts + kSecondTimeAfter, sample).second;
      second.second_time = true;
      second.contended = false;
    }
    samples.push_back(std::move(sample));
    for (; !waiting.empty() && waiting.front().first == firsts; waiting.pop_front()) {
      samples.push_back(std::move(waiting.front().second));
    }
  }
  for (auto& [due, second] : waiting) samples.push_back(std::move(second));
  return samples;
}

}  // namespace tandem
