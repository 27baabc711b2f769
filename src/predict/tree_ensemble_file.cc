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

template <typename T>
std::vector<T> take(size_t count, std::string_view* bytes) {
  std::vector<T> values(count);
  if (count > 0) std::memcpy(values.data(), bytes->data(), count * sizeof(T));
  bytes->remove_prefix(count * sizeof(T));
  return values;
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

std::vector<int32_t> TreeEnsemble::features_compared() const {
  std::vector<int32_t> features;
  for (const Comparison& comparison : comparisons_) features.push_back(comparison.feature);
  return features;
}

std::vector<float> TreeEnsemble::thresholds() const {
  std::vector<float> thresholds;
  for (const Comparison& comparison : comparisons_) thresholds.push_back(comparison.threshold);
  return thresholds;
}

std::string TreeEnsemble::numbers() const {
  std::string bytes;
  append(features_compared(), &bytes);
  append(thresholds(), &bytes);
  append(leaves_, &bytes);
  return bytes;
}

json TreeEnsemble::to_json() const {
  json document = shape();
  document["comparisons"] = features_compared();
  document["thresholds"] = thresholds();
  document["leaves"] = leaves_;
  return document;
}

std::string TreeEnsemble::to_text() const { return to_json().dump(); }

StatusOr<TreeEnsemble> TreeEnsemble::with_shape(const json& shape, size_t* comparisons,
                                                size_t* leaves) {
  TreeEnsemble ensemble(shape.at("features").get<size_t>(), shape.at("base_score").get<float>());
  Tree next;
  for (const json& value : shape.at("depths")) {
    next.depth = value.get<int>();
    if (next.depth < 0 || next.depth > kMaximumDepth) return corrupt("a tree that is too deep");
    ensemble.trees_.push_back(next);
    next.node += (size_t{1} << next.depth) - 1;
    next.leaf += size_t{1} << next.depth;
  }
  *comparisons = next.node;
  *leaves = next.leaf;
  return ensemble;
}

Status TreeEnsemble::set_numbers(const std::vector<int32_t>& features,
                                 const std::vector<float>& thresholds, std::vector<float> leaves) {
  bool known = true;
  bool finite = std::isfinite(base_score_);
  comparisons_.resize(features.size());
  for (size_t i = 0; i < features.size(); ++i) {
    known &= features[i] >= 0 && static_cast<size_t>(features[i]) < features_;
    finite &= std::isfinite(thresholds[i]);
    comparisons_[i] = {thresholds[i], features[i]};
  }
  for (const float leaf : leaves) finite &= std::isfinite(leaf);
  leaves_ = std::move(leaves);
  if (!known) return corrupt("trees that ask for features that do not exist");
  if (!finite) return corrupt("trees with a leaf or threshold that is no finite number");
  return {};
}

StatusOr<TreeEnsemble> TreeEnsemble::parse(const std::string& text) {
  const json document = json::parse(text, nullptr, false);
  if (document.is_discarded()) return corrupt("trees that are no JSON");
  return parse(document);
}

StatusOr<TreeEnsemble> TreeEnsemble::parse(const json& document) {
  try {
    size_t comparisons = 0;
    size_t leaf_count = 0;
    TANDEM_ASSIGN_OR_RETURN(TreeEnsemble ensemble, with_shape(document, &comparisons, &leaf_count));
    const auto features = document.at("comparisons").get<std::vector<int32_t>>();
    const auto thresholds = document.at("thresholds").get<std::vector<float>>();
    auto leaves = document.at("leaves").get<std::vector<float>>();
    if (features.size() != comparisons || thresholds.size() != comparisons ||
        leaves.size() != leaf_count) {
      return corrupt("trees whose parts do not fit together");
    }
    TANDEM_RETURN_IF_ERROR(ensemble.set_numbers(features, thresholds, std::move(leaves)));
    return ensemble;
  } catch (const json::exception& e) {
    return corrupt(e.what());
  }
}

StatusOr<TreeEnsemble> TreeEnsemble::parse(const json& shape, std::string_view numbers) {
  try {
    size_t comparisons = 0;
    size_t leaf_count = 0;
    TANDEM_ASSIGN_OR_RETURN(TreeEnsemble ensemble, with_shape(shape, &comparisons, &leaf_count));
    const size_t bytes =
        comparisons * (sizeof(int32_t) + sizeof(float)) + leaf_count * sizeof(float);
    if (numbers.size() != bytes) {
      return corrupt(
          fmt::format("{} bytes of trees where there should be {}", numbers.size(), bytes));
    }
    const auto features = take<int32_t>(comparisons, &numbers);
    const auto thresholds = take<float>(comparisons, &numbers);
    TANDEM_RETURN_IF_ERROR(
        ensemble.set_numbers(features, thresholds, take<float>(leaf_count, &numbers)));
    return ensemble;
  } catch (const json::exception& e) {
    return corrupt(e.what());
  }
}

}  // namespace tandem::predict
