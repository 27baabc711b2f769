#include <algorithm>
#include <array>
#include <set>

#include "schedule/random_problem.h"
#include "support/random_numbers.h"

namespace tandem {
namespace {

constexpr std::array kFamilies{GraphFamily::kSeriesParallel, GraphFamily::kInception,
                               GraphFamily::kResidual, GraphFamily::kHrnet, GraphFamily::kLayered};

// Grows operators until there are as many as wanted; whatever is asked for beyond is left out.
class Topology {
 public:
  Topology(int operators, uint64_t seed) : operators_(operators), random_(seed) {}

  std::vector<std::vector<int>> grow(GraphFamily family) && {
    std::vector<int> ends = chain({}, static_cast<int>(random_.integer(1, 2)));
    while (!full()) {
      switch (family) {
        case GraphFamily::kSeriesParallel:
          ends = series_parallel(ends, static_cast<int>(random_.integer(3, 12)));
          break;
        case GraphFamily::kInception:
          ends = inception_module(ends);
          break;
        case GraphFamily::kResidual:
          ends = residual_block(ends);
          break;
        case GraphFamily::kHrnet:
          ends = exchange_module(ends);
          break;
        case GraphFamily::kLayered:
          ends = layer(ends);
          break;
      }
    }
    return std::move(inputs_);
  }

 private:
  bool full() const { return static_cast<int>(inputs_.size()) >= operators_; }

  // A new operator that reads these; `inputs` themselves if there are enough already.
  std::vector<int> add(const std::vector<int>& inputs) {
    if (full()) return inputs;
    const std::set<int> sorted(inputs.begin(), inputs.end());
    inputs_.emplace_back(sorted.begin(), sorted.end());
    return {static_cast<int>(inputs_.size()) - 1};
  }

  std::vector<int> chain(std::vector<int> ends, int length) {
    for (int i = 0; i < length; ++i) ends = add(ends);
    return ends;
  }

  std::vector<int> series_parallel(const std::vector<int>& ends, int size) {
    if (size <= 2) return chain(ends, size);
    if (random_.coin()) {
      const auto first = static_cast<int>(random_.integer(1, size - 1));
      return series_parallel(series_parallel(ends, first), size - first);
    }
    const auto branches = static_cast<int>(random_.integer(2, std::min(4, size)));
    std::vector<int> joined;
    for (int branch = 0; branch < branches; ++branch) {
      const std::vector<int> end = series_parallel(ends, std::max(1, size / branches));
      joined.insert(joined.end(), end.begin(), end.end());
    }
    return add(joined);
  }

  std::vector<int> inception_module(const std::vector<int>& ends) {
    std::vector<int> joined;
    for (int64_t branches = random_.integer(2, 4); branches > 0; --branches) {
      const std::vector<int> end = chain(ends, static_cast<int>(random_.integer(1, 4)));
      joined.insert(joined.end(), end.begin(), end.end());
    }
    return joined;
  }

  std::vector<int> residual_block(const std::vector<int>& ends) {
    std::vector<int> joined = chain(ends, static_cast<int>(random_.integer(2, 3)));
    const std::vector<int> shortcut = random_.integer(0, 3) == 0 ? add(ends) : ends;
    joined.insert(joined.end(), shortcut.begin(), shortcut.end());
    return add(joined);
  }

  std::vector<int> exchange_module(const std::vector<int>& ends) {
    std::vector<int> branches = ends;
    if (branches.size() < 4 && (branches.size() < 2 || random_.coin())) {
      branches.push_back(add({ends.back()}).back());
    }
    for (int& branch : branches) {
      branch = chain({branch}, static_cast<int>(random_.integer(2, 4))).back();
    }
    std::vector<int> exchanged;
    for (size_t to = 0; to < branches.size(); ++to) {
      std::vector<int> read;
      for (size_t from = 0; from < branches.size(); ++from) {
        // What comes from another resolution is brought to this one.
        read.push_back(from == to ? branches[from] : add({branches[from]}).back());
      }
      exchanged.push_back(add(read).back());
    }
    return exchanged;
  }

  std::vector<int> layer(const std::vector<int>& ends) {
    std::vector<int> next;
    for (int64_t width = random_.integer(1, 5); width > 0; --width) {
      std::vector<int> read;
      for (int64_t count = random_.integer(1, 3); count > 0; --count) {
        const bool far = random_.integer(0, 5) == 0;
        const size_t choices = far ? inputs_.size() : ends.size();
        const auto at = static_cast<size_t>(random_.integer(0, static_cast<int64_t>(choices) - 1));
        read.push_back(far ? static_cast<int>(at) : ends[at]);
      }
      next.push_back(add(read).back());
    }
    return next;
  }

  const int operators_;
  RandomNumbers random_;
  std::vector<std::vector<int>> inputs_;
};

}  // namespace

std::string_view to_string(GraphFamily family) {
  switch (family) {
    case GraphFamily::kSeriesParallel:
      return "series-parallel";
    case GraphFamily::kInception:
      return "inception";
    case GraphFamily::kResidual:
      return "residual";
    case GraphFamily::kHrnet:
      return "hrnet";
    case GraphFamily::kLayered:
      return "layered";
  }
  return "";
}

std::span<const GraphFamily> graph_families() { return kFamilies; }

std::vector<std::vector<int>> random_topology(GraphFamily family, int operators, uint64_t seed) {
  if (operators <= 0) return {};
  return Topology(operators, seed).grow(family);
}

}  // namespace tandem
