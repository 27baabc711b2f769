#include "report/recorder.h"

#include <algorithm>

namespace tandem {

const Timeline* Recorder::typical() const {
  std::vector<const Timeline*> sorted;
  for (const Timeline& timeline : timelines_) sorted.push_back(&timeline);
  std::sort(sorted.begin(), sorted.end(),
            [](const auto* a, const auto* b) { return a->makespan_us < b->makespan_us; });
  return sorted.empty() ? nullptr : sorted[(sorted.size() - 1) / 2];
}

}  // namespace tandem
