// Charts as SVG: points and lines over two axes.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace tandem {

struct ChartSeries {
  std::string name = {};
  std::vector<std::pair<double, double>> points = {};
  bool line = false;  // joined, without marks
};

struct Chart {
  std::string title = {};
  std::string x_label = {};
  std::string y_label = {};
  bool logarithmic = false;  // both axes; only points of two positive coordinates are drawn then
  bool diagonal = false;     // the line of equal coordinates; both axes have one range
  std::vector<ChartSeries> series = {};
};

// A whole file. Series are told apart by colour and named in a legend.
std::string to_svg(const Chart& chart);

}  // namespace tandem
