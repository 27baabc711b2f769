#include "report/timeline.h"

namespace tandem {
const char* to_string(SpanKind kind) {
  switch (kind) {
    case SpanKind::kSlice:
      return "slice";
    case SpanKind::kWait:
      return "wait";
    case SpanKind::kSignal:
      return "signal";
    case SpanKind::kUpload:
      return "upload";
    case SpanKind::kDownload:
      return "download";
    case SpanKind::kFeed:
      return "feed";
  }
  return "unknown";
}

std::vector<Crossing> crossings(const Schedule& schedule) {
  std::vector<Crossing> result;
  for (size_t lane = 0; lane < schedule.lanes.size(); ++lane) {
    for (size_t i = 0; i < schedule.lanes[lane].size(); ++i) {
      for (const Wait& wait : schedule.lanes[lane][i].waits) {
        result.push_back({wait.lane, wait.count - 1, static_cast<int>(lane), static_cast<int>(i)});
      }
    }
  }
  return result;
}

}  // namespace tandem
