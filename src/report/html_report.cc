#include "report/html_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

namespace tandem {
namespace {

constexpr int kWidth = 1200;  // of a drawing, in pixels
constexpr int kRow = 26;
constexpr int kIndent = 130;

constexpr char kStyle[] = R"(
body { font: 14px/1.4 sans-serif; margin: 2em auto; max-width: 1240px; color: #222; }
table { border-collapse: collapse; }
th, td { padding: 2px 10px; text-align: right; border-bottom: 1px solid #ddd; }
th:first-child, td:first-child { text-align: left; }
svg text { font: 12px sans-serif; }
.slice { fill: #4c78a8; stroke: #fff; stroke-width: .5; }
.predicted .slice { fill: #9ecae9; }
.wait { fill: #e45756; opacity: .5; }
.upload, .download { fill: #f2a93b; }
.signal { fill: #54a24b; }
.feed { fill: #bab0ac; }
pre { background: #f6f6f6; padding: 1em; overflow-x: auto; white-space: pre-wrap; }
)";

std::string escaped(const std::string& text) {
  std::string result;
  for (const char c : text) {
    switch (c) {
      case '&':
        result += "&amp;";
        break;
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      case '"':
        result += "&quot;";
        break;
      default:
        result += c;
    }
  }
  return result;
}

double end_of(const TraceTimeline& lanes) {
  double end = 0;
  for (const auto& lane : lanes) {
    for (const TraceSpan& span : lane) end = std::max(end, span.end_us);
  }
  return end;
}

double sum_us(const std::vector<TraceSpan>& lane, SpanKind kind) {
  double us = 0;
  for (const TraceSpan& span : lane) us += span.kind == to_string(kind) ? span.us() : 0;
  return us;
}

std::string bar(const std::vector<TraceSpan>& lane, const std::string& name, int y, double end_us) {
  std::string text = fmt::format("<text x=\"0\" y=\"{}\">{}</text>\n", y + kRow - 9, escaped(name));
  const double scale = (kWidth - kIndent) / end_us;
  for (const TraceSpan& span : lane) {
    text += fmt::format(
        "<rect class=\"{}\" x=\"{:.2f}\" y=\"{}\" width=\"{:.2f}\" height=\"{}\"><title>{} {}: "
        "{:.1f} us from {:.1f} us on</title></rect>\n",
        escaped(span.kind), kIndent + std::max(0.0, span.begin_us) * scale, y, span.us() * scale,
        kRow - 4, escaped(span.kind), escaped(span.name), span.us(), span.begin_us);
  }
  return text;
}

std::string timelines(const Trace& trace) {
  const double end_us = std::max({end_of(trace.measured), end_of(trace.predicted), 1.0});
  std::string rows;
  int y = 0;
  for (size_t lane = 0; lane < trace.lanes.size(); ++lane, y += kRow / 2) {
    rows += "<g class=\"measured\">" +
            bar(trace.measured[lane], trace.lanes[lane] + " measured", y, end_us) + "</g>\n";
    y += kRow;
    if (trace.predicted.empty()) continue;
    rows += "<g class=\"predicted\">" +
            bar(trace.predicted[lane], trace.lanes[lane] + " predicted", y, end_us) + "</g>\n";
    y += kRow;
  }
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"100%\">\n{2}"
      "<text x=\"{3}\" y=\"{4}\">0</text><text x=\"{0}\" y=\"{4}\" text-anchor=\"end\">{5:.3f} "
      "ms</text>\n</svg>\n",
      kWidth, y + kRow, rows, kIndent, y + 14, end_us / 1000);
}

std::string lane_table(const Trace& trace) {
  std::string text =
      "<table><tr><th>lane</th><th>slices</th><th>busy</th><th>computing us</th><th>waiting "
      "us</th><th>copying us</th></tr>\n";
  const double end_us = std::max(end_of(trace.measured), 1.0);
  for (size_t l = 0; l < trace.lanes.size(); ++l) {
    const std::vector<TraceSpan>& lane = trace.measured[l];
    const double busy = sum_us(lane, SpanKind::kSlice);
    const auto slices = std::count_if(lane.begin(), lane.end(), [](const TraceSpan& span) {
      return span.kind == to_string(SpanKind::kSlice);
    });
    text += fmt::format(
        "<tr><td>{}</td><td>{}</td><td>{:.1f}%</td><td>{:.1f}</td><td>{:.1f}</td><td>{:.1f}</td>"
        "</tr>\n",
        escaped(trace.lanes[l]), slices, 100 * busy / end_us, busy, sum_us(lane, SpanKind::kWait),
        sum_us(lane, SpanKind::kUpload) + sum_us(lane, SpanKind::kDownload));
  }
  return text + "</table>\n";
}

// Of an operator on one lane.
struct Row {
  double start_us = 0;
  double measured_us = 0;
  double predicted_us = 0;
  double waited_us = 0;
  std::vector<std::string> slices;
};

std::string operator_table(const Trace& trace) {
  std::map<std::pair<std::string, size_t>, Row> rows;
  for (size_t lane = 0; lane < trace.lanes.size(); ++lane) {
    for (const TraceSpan& span : trace.measured[lane]) {
      Row& row = rows[{span.op, lane}];
      if (span.kind == to_string(SpanKind::kWait)) row.waited_us += span.us();
      if (span.kind != to_string(SpanKind::kSlice)) continue;
      if (row.slices.empty()) row.start_us = span.begin_us;
      row.measured_us += span.us();
      row.slices.push_back(span.name);
    }
    if (trace.predicted.empty()) continue;
    for (const TraceSpan& span : trace.predicted[lane]) {
      if (span.kind == to_string(SpanKind::kSlice)) rows[{span.op, lane}].predicted_us += span.us();
    }
  }
  std::vector<std::pair<std::pair<std::string, size_t>, Row>> sorted;
  for (auto& row : rows) {
    if (!row.second.slices.empty()) sorted.push_back(row);
  }
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) {
    return a.second.start_us < b.second.start_us;
  });
  std::string text =
      "<table><tr><th>slices</th><th>lane</th><th>start us</th><th>waited us</th><th>measured "
      "us</th><th>predicted us</th><th>measured / predicted</th></tr>\n";
  for (const auto& [key, row] : sorted) {
    const bool known = row.predicted_us > 0;
    text += fmt::format(
        "<tr><td>{}</td><td>{}</td><td>{:.1f}</td><td>{:.1f}</td><td>{:.1f}</td><td>{}</td><td>{}"
        "</td></tr>\n",
        escaped(fmt::format("{}", fmt::join(row.slices, ", "))), escaped(trace.lanes[key.second]),
        row.start_us, row.waited_us, row.measured_us,
        known ? fmt::format("{:.1f}", row.predicted_us) : "",
        known ? fmt::format("{:.2f}", row.measured_us / row.predicted_us) : "");
  }
  return text + "</table>\n";
}

// JSON, indented if it is some.
std::string pretty(const std::string& json) {
  const nlohmann::json parsed = nlohmann::json::parse(json, nullptr, false);
  return escaped(parsed.is_discarded() ? json : parsed.dump(2));
}

}  // namespace

std::string html_report(const Trace& trace) {
  std::string prediction;
  if (!trace.predicted.empty()) {
    prediction = fmt::format(", predicted {:.3f} ms", end_of(trace.predicted) / 1000);
  }
  const std::string title = escaped(fmt::format("{} with {}", trace.model, trace.strategy));
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{0}</title>\n"
      "<style>{1}</style></head><body>\n<h1>{0}</h1>\n<p>Recorded run: measured {2:.3f} ms{3}; "
      "lanes synchronise by {4}.</p>\n<h2>Lanes</h2>\n{5}{6}<p>Blue: computing; red: waiting; "
      "orange: copying; green: signalling; grey: enqueueing for another lane. Hover for "
      "names.</p>\n"
      "<h2>Operators</h2>\n{7}<h2>Timed runs (ms)</h2>\n<pre>{8}</pre>\n"
      "<h2>Conditions</h2>\n<pre>{9}</pre>\n</body></html>\n",
      title, kStyle, end_of(trace.measured) / 1000, prediction, escaped(trace.sync),
      timelines(trace), lane_table(trace), operator_table(trace), pretty(trace.times),
      pretty(trace.conditions));
}

}  // namespace tandem
