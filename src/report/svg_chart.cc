#include "report/svg_chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <set>
#include <string_view>

namespace tandem {
namespace {

// In pixels.
constexpr double kWidth = 760;
constexpr double kHeight = 560;
constexpr double kLeft = 80;
constexpr double kRight = 170;  // the legend is there
constexpr double kTop = 44;
constexpr double kBottom = 60;
constexpr double kLegendStep = 20;
// About so many marks on linear axes.
constexpr double kMarks = 8;

constexpr std::array<const char*, 14> kColours = {
    "#1f77b4", "#d62728", "#2ca02c", "#ff7f0e", "#9467bd", "#8c564b", "#e377c2",
    "#7f7f7f", "#bcbd22", "#17becf", "#0b3d91", "#7b1e1e", "#145214", "#000000"};

std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c == '&') {
      result += "&amp;";
    } else if (c == '<') {
      result += "&lt;";
    } else if (c == '>') {
      result += "&gt;";
    } else {
      result += c;
    }
  }
  return result;
}

class Axis {
 public:
  Axis(bool logarithmic, double begin, double end)
      : logarithmic_(logarithmic), begin_(begin), end_(end) {}

  bool shows(double value) const { return std::isfinite(value) && (!logarithmic_ || value > 0); }
  void include(double value) {
    if (!shows(value)) return;
    low_ = std::min(low_, value);
    high_ = std::max(high_, value);
  }
  void include(const Axis& other) {
    low_ = std::min(low_, other.low_);
    high_ = std::max(high_, other.high_);
  }
  // Outwards to round numbers.
  void round() {
    if (low_ > high_) low_ = high_ = 1;
    if (logarithmic_) {
      low_ = std::pow(10, std::floor(std::log10(low_)));
      high_ = std::pow(10, std::ceil(std::log10(high_)));
      if (low_ == high_) high_ *= 10;
      return;
    }
    low_ = std::min(low_, 0.0);
    if (low_ == high_) high_ += 1;
    const double rough = (high_ - low_) / kMarks;
    const double decade = std::pow(10, std::floor(std::log10(rough)));
    for (const double factor : {1.0, 2.0, 5.0, 10.0}) {
      step_ = factor * decade;
      if (step_ >= rough) break;
    }
    high_ = std::ceil(high_ / step_) * step_;
  }
  double at(double value) const {
    const double share = logarithmic_ ? std::log(value / low_) / std::log(high_ / low_)
                                      : (value - low_) / (high_ - low_);
    return begin_ + share * (end_ - begin_);
  }
  std::vector<double> marks() const {
    std::vector<double> marks;
    if (logarithmic_) {
      for (double mark = low_; mark <= high_ * 1.001; mark *= 10) marks.push_back(mark);
    } else {
      const auto count = static_cast<int>(std::lround((high_ - low_) / step_));
      for (int i = 0; i <= count; ++i) marks.push_back(low_ + i * step_);
    }
    return marks;
  }
  double low() const { return low_; }
  double high() const { return high_; }

 private:
  bool logarithmic_;
  double begin_;  // pixels
  double end_;
  double low_ = std::numeric_limits<double>::infinity();
  double high_ = -std::numeric_limits<double>::infinity();
  double step_ = 1;
};

class Drawing {
 public:
  explicit Drawing(const Chart& chart)
      : chart_(chart),
        x_(chart.logarithmic, kLeft, kWidth - kRight),
        y_(chart.logarithmic, kHeight - kBottom, kTop) {
    for (const ChartSeries& series : chart.series) {
      for (const auto& [x, y] : series.points) {
        if (!is_shown(x, y)) continue;
        x_.include(x);
        y_.include(y);
      }
    }
    if (chart.diagonal) {
      x_.include(y_);
      y_.include(x_);
    }
    x_.round();
    y_.round();
  }

  std::string text() {
    add("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {} {}\" "
        "font-family=\"sans-serif\" font-size=\"12\">\n",
        kWidth, kHeight);
    add("<rect width=\"{}\" height=\"{}\" fill=\"white\"/>\n", kWidth, kHeight);
    draw_axes();
    for (size_t i = 0; i < chart_.series.size(); ++i) draw(chart_.series[i], i);
    return text_ + "</svg>\n";
  }

 private:
  template <typename... Args>
  void add(fmt::format_string<Args...> format, Args&&... args) {
    text_ += fmt::format(format, std::forward<Args>(args)...);
  }
  bool is_shown(double x, double y) const { return x_.shows(x) && y_.shows(y); }
  void line(double x1, double y1, double x2, double y2, const char* style) {
    add("<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" {}/>\n", x1, y1, x2, y2,
        style);
  }
  void label(double x, double y, const char* anchor, const std::string& what) {
    add("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>\n", x, y, anchor,
        escaped(what));
  }

  void draw_axes() {
    constexpr const char* kGrid = "stroke=\"#dddddd\"";
    constexpr const char* kFrame = "stroke=\"black\"";
    const double bottom = kHeight - kBottom;
    const double right = kWidth - kRight;
    for (const double mark : x_.marks()) {
      line(x_.at(mark), kTop, x_.at(mark), bottom, kGrid);
      label(x_.at(mark), bottom + 16, "middle", fmt::format("{:g}", mark));
    }
    for (const double mark : y_.marks()) {
      line(kLeft, y_.at(mark), right, y_.at(mark), kGrid);
      label(kLeft - 6, y_.at(mark) + 4, "end", fmt::format("{:g}", mark));
    }
    line(kLeft, bottom, right, bottom, kFrame);
    line(kLeft, kTop, kLeft, bottom, kFrame);
    if (chart_.diagonal) {
      line(x_.at(x_.low()), y_.at(x_.low()), x_.at(x_.high()), y_.at(x_.high()), kFrame);
    }
    label((kLeft + right) / 2, kTop - 18, "middle", chart_.title);
    label((kLeft + right) / 2, kHeight - 16, "middle", chart_.x_label);
    add("<text x=\"20\" y=\"{0:.1f}\" text-anchor=\"middle\" transform=\"rotate(-90 20 "
        "{0:.1f})\">{1}</text>\n",
        (kTop + bottom) / 2, escaped(chart_.y_label));
  }

  void draw_line(const ChartSeries& series, const char* colour) {
    std::string path;
    for (const auto& [x, y] : series.points) {
      if (is_shown(x, y)) path += fmt::format("{:.1f},{:.1f} ", x_.at(x), y_.at(y));
    }
    add("<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"1.5\"/>\n", path,
        colour);
  }

  // Of those in one pixel, the first.
  void draw_marks(const ChartSeries& series, const char* colour) {
    std::string path;
    std::set<std::pair<long, long>> pixels;
    for (const auto& [x, y] : series.points) {
      if (!is_shown(x, y)) continue;
      if (!pixels.emplace(std::lround(x_.at(x)), std::lround(y_.at(y))).second) continue;
      path += fmt::format("M{:.1f} {:.1f}h0", x_.at(x), y_.at(y));
    }
    add("<path d=\"{}\" stroke=\"{}\" stroke-width=\"4\" stroke-linecap=\"round\" "
        "stroke-opacity=\"0.5\"/>\n",
        path, colour);
  }

  void draw(const ChartSeries& series, size_t index) {
    const char* colour = kColours[index % kColours.size()];
    if (series.line) {
      draw_line(series, colour);
    } else {
      draw_marks(series, colour);
    }
    const double y = kTop + kLegendStep * (static_cast<double>(index) + 0.5);
    const double x = kWidth - kRight + 16;
    add("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"10\" height=\"10\" fill=\"{}\"/>\n", x, y - 9,
        colour);
    label(x + 16, y, "start", series.name);
  }

  const Chart& chart_;
  Axis x_;
  Axis y_;
  std::string text_;
};

}  // namespace

std::string to_svg(const Chart& chart) { return Drawing(chart).text(); }

}  // namespace tandem
