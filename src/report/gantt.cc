#include "report/gantt.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace tandem {
namespace {

constexpr int kLeastColumns = 20;
// A slice of fewer columns has no room for a letter.
constexpr int kLeastBox = 3;

class Line {
 public:
  Line(int columns, double makespan_us) : text_(columns, ' '), scale_(columns / makespan_us) {}

  // Columns whose middle the span covers.
  void fill(const Span& span, char with) {
    for (int c = begin_of(span); c < end_of(span); ++c) text_[c] = with;
  }
  void box(const Span& span, const std::string& name) {
    const int begin = begin_of(span);
    const int size = end_of(span) - begin;
    if (size < kLeastBox) return fill(span, '#');
    const std::string label = name.substr(0, size - 2);
    text_.replace(begin, size, fmt::format("[{:=<{}}]", label, size - 2));
  }
  const std::string& text() const { return text_; }

 private:
  int column(double us) const {
    return std::clamp(static_cast<int>(std::lround(us * scale_)), 0,
                      static_cast<int>(text_.size()));
  }
  int begin_of(const Span& span) const { return column(span.begin_us); }
  int end_of(const Span& span) const { return column(span.end_us); }

  std::string text_;
  double scale_;
};

}  // namespace

std::string gantt(const Graph& graph, const Schedule& schedule, const Timeline& timeline,
                  const std::vector<std::string>& lane_names, int width) {
  if (timeline.makespan_us <= 0) return "";
  size_t indent = 0;
  for (const std::string& name : lane_names) indent = std::max(indent, name.size());
  const int columns = std::max(kLeastColumns, width - static_cast<int>(indent) - 3);
  std::string text;
  for (size_t lane = 0; lane < timeline.lanes.size(); ++lane) {
    Line line(columns, timeline.makespan_us);
    for (const Span& span : timeline.lanes[lane]) {
      if (span.kind == SpanKind::kSlice) {
        line.box(span, graph.op(schedule.lanes[lane][span.slice].slice.op).name);
      } else {
        line.fill(span, '.');
      }
    }
    text += fmt::format("{:<{}} |{}|\n", lane_names[lane], indent, line.text());
  }
  const std::string end = fmt::format("{:.3f} ms", timeline.makespan_us / 1000);
  return text + fmt::format("{:{}}  0{:>{}}\n", "", indent, end, columns - 1);
}

}  // namespace tandem
