// Trees as JSON, and as JSON and bytes.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include "predict/tree_ensemble.h"

namespace tandem::predict {
namespace {

using nlohmann::json;

static_assert(std::endian::native == std::endian::little, "files are little-endian");

template <typename T>
void append(const std::vector<T>& values, std::string* bytes) {
  bytes->append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
}

// Takes as many as fit from the front of `bytes`.
template <typename T>
void take(std::string_view* bytes, std::vector<T>* values) {
  const size_t size = values->size() * sizeof(T);
  if (size > 0) std::memcpy(values->data(), bytes->data(), size);
  bytes->remove_prefix(size);
}

bool all_finite(const std::vector<float>& values) {
  bool finite = true;
  for (const float value : values) finite &= std::isfinite(value);
  return finite;
}

}  // namespace

std::vector<int> TreeEnsemble::depths() const {
  std::vector<int> depths;
  for (const Tree& tree : trees_) depths.push_back(tree.depth);
  return depths;
}

json TreeEnsemble::shape() const {
  return {{"features", features_}, {"base_score", base_score_}, {"depths", depths()}};
}

std::string TreeEnsemble::numbers() const {
  std::string bytes;
  append(feature_, &bytes);
  append(threshold_, &bytes);
  append(leaves_, &bytes);
  return bytes;
}

json TreeEnsemble::to_json() const {
  json document = shape();
  document["comparisons"] = feature_;
  document["thresholds"] = threshold_;
  document["leaves"] = leaves_;
  return document;
}

std::string TreeEnsemble::to_text() const { return to_json().dump(); }

StatusOr<TreeEnsemble> TreeEnsemble::with_shape(const json& shape) {
  TreeEnsemble ensemble(shape.at("features").get<size_t>(), shape.at("base_score").get<float>());
  Tree next;
  for (const json& value : shape.at("depths")) {
    next.depth = value.get<int>();
    if (next.depth < 0 || next.depth > kMaximumDepth) return corrupt("a tree that is too deep");
    ensemble.trees_.push_back(next);
    next.node += (size_t{1} << next.depth) - 1;
    next.leaf += size_t{1} << next.depth;
  }
  ensemble.feature_.resize(next.node);
  ensemble.threshold_.resize(next.node);
  ensemble.leaves_.resize(next.leaf);
  return ensemble;
}

Status TreeEnsemble::check_numbers() const {
  bool known = true;
  for (const int32_t feature : feature_) {
    known &= feature >= 0 && static_cast<size_t>(feature) < features_;
  }
  if (!known) return corrupt("trees that ask for features that do not exist");
  if (!all_finite(threshold_) || !all_finite(leaves_) || !std::isfinite(base_score_)) {
    return corrupt("trees with a leaf or threshold that is no finite number");
  }
  return {};
}

StatusOr<TreeEnsemble> TreeEnsemble::parse(const std::string& text) {
  const json document = json::parse(text, nullptr, false);
  if (document.is_discarded()) return corrupt("trees that are no JSON");
  return parse(document);
}

StatusOr<TreeEnsemble> TreeEnsemble::parse(const json& document) {
  try {
    TANDEM_ASSIGN_OR_RETURN(TreeEnsemble ensemble, with_shape(document));
    const size_t nodes = ensemble.feature_.size();
    const size_t leaves = ensemble.leaves_.size();
    document.at("comparisons").get_to(ensemble.feature_);
    document.at("thresholds").get_to(ensemble.threshold_);
    document.at("leaves").get_to(ensemble.leaves_);
    if (ensemble.feature_.size() != nodes || ensemble.threshold_.size() != nodes ||
        ensemble.leaves_.size() != leaves) {
      return corrupt("trees whose parts do not fit together");
    }
    TANDEM_RETURN_IF_ERROR(ensemble.check_numbers());
    return ensemble;
  } catch (const json::exception& e) {
    return corrupt(e.what());
  }
}

StatusOr<TreeEnsemble> TreeEnsemble::parse(const json& shape, std::string_view numbers) {
  try {
    TANDEM_ASSIGN_OR_RETURN(TreeEnsemble ensemble, with_shape(shape));
    const size_t nodes = ensemble.feature_.size();
    const size_t leaves = ensemble.leaves_.size();
    const size_t bytes = nodes * (sizeof(int32_t) + sizeof(float)) + leaves * sizeof(float);
    if (numbers.size() != bytes) {
      return corrupt(
          fmt::format("{} bytes of trees where there should be {}", numbers.size(), bytes));
    }
    take(&numbers, &ensemble.feature_);
    take(&numbers, &ensemble.threshold_);
    take(&numbers, &ensemble.leaves_);
    TANDEM_RETURN_IF_ERROR(ensemble.check_numbers());
    return ensemble;
  } catch (const json::exception& e) {
    return corrupt(e.what());
  }
}

}  // namespace tandem::predict
