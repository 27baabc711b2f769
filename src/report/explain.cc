#include "report/explain.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "report/predicted_timeline.h"

namespace tandem {
namespace {

double begin_us(const ExplainedOperator& op) {
  double first = op.slices.front().begin_us;
  for (const ExplainedSlice& slice : op.slices) first = std::min(first, slice.begin_us);
  return first;
}

double longest_us(const ExplainedOperator& op) {
  double longest = 0;
  for (const ExplainedSlice& s : op.slices) longest = std::max(longest, s.end_us - s.begin_us);
  return longest;
}

std::string choice_text(const Problem& problem, const ExplainedOperator& op) {
  std::vector<std::string> parts;
  for (const ExplainedSlice& s : op.slices) {
    const std::string& lane = problem.lanes[s.lane].name;
    parts.push_back(s.slice.whole() ? lane
                                    : fmt::format("{} {}:{}", lane, s.slice.begin, s.slice.end));
  }
  std::string text = fmt::format("{}", fmt::join(parts, ", "));
  const Slice& first = op.slices.front().slice;
  return first.whole() ? text : fmt::format("{} of axis {}", text, first.axis);
}

}  // namespace

std::vector<ExplainedOperator> explain(const Problem& problem, const Schedule& schedule,
                                       const Timeline& prediction) {
  const std::vector<std::vector<bool>> critical = critical_slices(schedule, prediction);
  std::vector<ExplainedOperator> operators(problem.graph->operators().size());
  for (size_t lane = 0; lane < prediction.lanes.size(); ++lane) {
    for (const Span& span : prediction.lanes[lane]) {
      if (span.kind != SpanKind::kSlice) continue;
      const Slice& slice = schedule.lanes[lane][span.slice].slice;
      ExplainedOperator& op = operators[slice.op];
      op.op = slice.op;
      op.slices.push_back({static_cast<int>(lane), slice, span.begin_us, span.end_us});
      op.critical = op.critical || critical[lane][span.slice];
    }
  }
  std::erase_if(operators, [](const ExplainedOperator& op) { return op.slices.empty(); });
  for (ExplainedOperator& op : operators) {
    for (size_t lane = 0; lane < problem.lanes.size(); ++lane) {
      op.alone_us.push_back(problem.cost->slice_us(static_cast<int>(lane), Slice{.op = op.op}));
    }
  }
  std::stable_sort(operators.begin(), operators.end(),
                   [](const auto& a, const auto& b) { return begin_us(a) < begin_us(b); });
  return operators;
}

std::string explanation_text(const Problem& problem,
                             const std::vector<ExplainedOperator>& operators) {
  size_t names = 8;
  size_t choices = 6;
  for (const ExplainedOperator& op : operators) {
    names = std::max(names, problem.graph->op(op.op).name.size());
    choices = std::max(choices, choice_text(problem, op).size());
  }
  std::string text = fmt::format("  {:<{}}  {:<{}}  {:>10} {:>10}", "operator", names, "choice",
                                 choices, "start us", "takes us");
  for (const LaneTraits& lane : problem.lanes) {
    text += fmt::format(" {:>14}", fmt::format("on {} us", lane.name));
  }
  text += "\n";
  for (const ExplainedOperator& op : operators) {
    text += fmt::format("{} {:<{}}  {:<{}}  {:>10.1f} {:>10.1f}", op.critical ? '*' : ' ',
                        problem.graph->op(op.op).name, names, choice_text(problem, op), choices,
                        begin_us(op), longest_us(op));
    for (const double us : op.alone_us) text += fmt::format(" {:>14.1f}", us);
    text += "\n";
  }
  return text + "  *: on a critical path; 'on ... us': the whole operator on that lane alone\n";
}

}  // namespace tandem
