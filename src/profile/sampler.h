// Which slices are worth measuring, in which order.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "graph/partition.h"
#include "predict/slice_case.h"
#include "profile/lone_operator.h"

namespace tandem {

// A part of an operator's output, along the dimension `axis` of it; kNone: all of it.
struct Cut {
  int axis = kNone;
  int64_t begin = 0;
  int64_t end = 0;

  bool operator==(const Cut&) const = default;
};
std::string to_string(const Cut& cut);  // "whole", "1 0:32"

// One operator cut once: every lane measures a part of it.
struct Sample {
  std::shared_ptr<const LoneOperator> op;
  predict::SliceFamily family = predict::SliceFamily::kCopy;
  std::string signature;  // of the operator
  std::string networks;   // that have it, sorted, joined by commas; empty: it lies between theirs
  Cut head;               // what CPU lanes measure
  Cut tail;               // what the others measure
  double flops = 0;       // of the whole operator
  double bytes = 0;       // of all that it reads and writes
  // Also when it has just run: what repeats one operator sees it so.
  bool repeated = false;
  // Also while the other lanes are busy.
  bool contended = false;
  // One that came before is measured once more, much later and beside other operators: by how much
  // the two differ is what no predictor can know.
  bool second_time = false;
};

struct SamplerOptions {
  uint64_t seed = 1;
  std::vector<predict::SliceFamily> families;  // empty: all
};

// Collects the operators of networks, and makes an ordered list of samples of them.
class Sampler {
 public:
  explicit Sampler(SamplerOptions options) : options_(std::move(options)) {}

  // Operators that are never launched are left out.
  void add_network(const std::string& name, const Graph& graph);
  int operators() const { return static_cast<int>(entries_.size()); }

  // The same for the same networks, options and seed, and such that every beginning of it is about
  // the best use of the time that it takes:
  // - families share the time by their part of the networks' time, of which a good deal is shared
  //   equally, so that none starves;
  // - within a family, operators that networks spend more time in come first, as a rule; three
  //   whole operators are followed by two slices of others and one operator between theirs;
  // - slices are taken along each axis that the operator may be cut along, at a half, the quarters,
  //   the eighths..., up to kFractions or all that there are;
  // - every eighth sample comes a second time, some 200 samples later.
  std::vector<Sample> samples() const;

 private:
  struct Entry {
    std::shared_ptr<const LoneOperator> op;
    predict::SliceFamily family;
    std::string signature;
    std::map<std::string, int> networks;  // how often each has it
    double single_us = 0;                 // nominal time
    double weight_us = 0;                 // the same in all networks
  };
  class Family;

  const SamplerOptions options_;
  std::vector<Entry> entries_;
  std::map<std::string, size_t> by_signature_;
};

}  // namespace tandem
