#include "predict/frame.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace tandem::predict {

std::vector<std::string> Frame::names() const {
  std::vector<std::string> names;
  for (const Feature& feature : *features_) names.push_back(feature.name);
  return names;
}

bool Frame::has_names(std::span<const std::string> names) const {
  return std::equal(
      features_->begin(), features_->end(), names.begin(), names.end(),
      [](const Feature& feature, const std::string& name) { return feature.name == name; });
}

int Frame::column(const std::string& name) const {
  for (size_t i = 0; i < columns(); ++i) {
    if ((*features_)[i].name == name) return static_cast<int>(i);
  }
  return -1;
}

Status Frame::add(std::span<const double> row) {
  if (row.size() != columns()) {
    return invalid_argument(
        fmt::format("a row of {} values for {} features", row.size(), columns()));
  }
  for (size_t i = 0; i < row.size(); ++i) {
    if (!(std::abs(row[i]) <= std::numeric_limits<float>::max())) {
      return invalid_argument(fmt::format("feature {} is {}: it must be a finite f32 number",
                                          (*features_)[i].name, row[i]));
    }
  }
  const size_t before = values_.size();
  values_.resize(before + row.size());
  std::transform(row.begin(), row.end(), values_.begin() + static_cast<ptrdiff_t>(before),
                 [](double value) { return static_cast<float>(value); });
  return {};
}

Frame Frame::with_features(const std::function<bool(const Feature&)>& keep) const {
  std::vector<size_t> kept;
  std::vector<Feature> features;
  for (size_t i = 0; i < columns(); ++i) {
    if (!keep((*features_)[i])) continue;
    kept.push_back(i);
    features.push_back((*features_)[i]);
  }
  Frame frame(std::move(features));
  frame.values_.reserve(rows() * kept.size());
  for (size_t r = 0; r < rows(); ++r) {
    for (const size_t c : kept) frame.values_.push_back(at(r, c));
  }
  return frame;
}

Frame Frame::with_rows(std::span<const size_t> rows) const {
  Frame frame(features_);
  frame.values_.reserve(rows.size() * columns());
  for (const size_t r : rows) {
    const std::span<const float> values = row(r);
    frame.values_.insert(frame.values_.end(), values.begin(), values.end());
  }
  return frame;
}

}  // namespace tandem::predict
