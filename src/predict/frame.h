// Tables of features: what predictors learn from and are asked with.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tandem/status.h"

namespace tandem::predict {

// What a feature is known from.
enum class FeatureKind {
  kArgument,  // the operator alone: its shapes, and what follows from them
  kKernel,    // what the kernel will do: which it is, padding, fused operators
  kTiling,    // blocks and work-groups of kernels that are tiled products
};

struct Feature {
  std::string name;
  std::string unit;  // "1" for counts and ratios
  std::string why;   // what of the time it explains
  FeatureKind kind = FeatureKind::kArgument;
};

// Rows of finite f32 values, one column a feature; stored row after row.
class Frame {
 public:
  explicit Frame(std::vector<Feature> features)
      : features_(std::make_shared<const std::vector<Feature>>(std::move(features))) {}

  size_t columns() const { return features_->size(); }
  size_t rows() const { return columns() == 0 ? 0 : values_.size() / columns(); }
  const std::vector<Feature>& features() const { return *features_; }
  std::vector<std::string> names() const;
  bool has_names(std::span<const std::string> names) const;
  // The column of that name, or -1.
  int column(const std::string& name) const;

  std::span<const float> row(size_t i) const { return {&values_[i * columns()], columns()}; }
  float at(size_t row, size_t column) const { return values_[row * columns() + column]; }
  const std::vector<float>& values() const { return values_; }

  // Refuses rows of another width, and values that are no numbers or do not fit into f32, naming
  // the feature.
  Status add(std::span<const double> row);

  // The same rows with the columns that `keep` wants.
  Frame with_features(const std::function<bool(const Feature&)>& keep) const;
  // The rows of these indices, in their order.
  Frame with_rows(std::span<const size_t> rows) const;

 private:
  explicit Frame(std::shared_ptr<const std::vector<Feature>> features)
      : features_(std::move(features)) {}

  std::shared_ptr<const std::vector<Feature>> features_;  // frames made of frames share them
  std::vector<float> values_;
};

}  // namespace tandem::predict
