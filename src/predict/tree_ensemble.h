// Gradient-boosted trees, laid out for the prediction of many rows at once.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tandem/status.h"

namespace tandem::predict {

// One node of a tree as trainers make them.
struct TreeNode {
  int left = -1;  // a row goes left if its value of `feature` is less than `threshold`
  int right = -1;
  int feature = 0;
  float threshold = 0;
  float leaf = 0;  // what the tree adds, at nodes without children

  bool is_leaf() const { return left < 0; }
};

// The sum of a base score and of one leaf a tree, added in f32 in the order of the trees, as
// XGBoost does it: results are equal to the bit. Every tree is stored as a perfect binary tree of
// its depth (at most kMaximumDepth), its missing levels filled with comparisons that decide
// nothing, so that blocks of rows pass through it in vector registers, without branches; few rows
// walk through it one by one.
class TreeEnsemble {
 public:
  static constexpr int kMaximumDepth = 8;

  TreeEnsemble() = default;
  TreeEnsemble(size_t features, float base_score) : features_(features), base_score_(base_score) {}

  // Node 0 is the root. Refuses trees that are too deep, have cycles, children or features that
  // do not exist, or thresholds that are no finite numbers.
  Status add_tree(std::span<const TreeNode> nodes);

  // rows: as many times features() finite values as `results` has elements.
  void predict(std::span<const float> rows, std::span<float> results) const;

  size_t features() const { return features_; }
  size_t trees() const { return trees_.size(); }
  float base_score() const { return base_score_; }

  // As JSON, and back. parse() refuses, as corrupt, what the others cannot have made.
  nlohmann::json to_json() const;
  std::string to_text() const;
  static StatusOr<TreeEnsemble> parse(const nlohmann::json& document);
  static StatusOr<TreeEnsemble> parse(const std::string& text);

  // The same in two: what says how many numbers there are, as JSON, and these: all comparisons'
  // features (i32) and thresholds (f32) and all leaves (f32), little-endian.
  nlohmann::json shape() const;
  std::string numbers() const;
  static StatusOr<TreeEnsemble> parse(const nlohmann::json& shape, std::string_view numbers);

 private:
  // Goes left if the row's value of `feature` is less.
  struct Comparison {
    float threshold = 0;
    int32_t feature = 0;
  };
  struct Tree {
    int depth = 0;
    size_t node = 0;  // where its 2^depth - 1 comparisons start
    size_t leaf = 0;  // where its 2^depth leaves start
  };

  void fill(std::span<const TreeNode> nodes, const Tree& tree, int node, int depth, size_t place);
  std::vector<int> depths() const;
  std::vector<int32_t> features_compared() const;
  std::vector<float> thresholds() const;
  // Makes the trees, of so many numbers. Throws what the JSON library throws.
  static StatusOr<TreeEnsemble> with_shape(const nlohmann::json& shape, size_t* comparisons,
                                           size_t* leaves);
  // As many as that.
  Status set_numbers(const std::vector<int32_t>& features, const std::vector<float>& thresholds,
                     std::vector<float> leaves);
  static size_t leaf_of(int depth, const Comparison* comparisons, const float* row);
  float predict_row(const float* row) const;
  static void add_leaves(int depth, const Comparison* comparisons, const float* leaves,
                         const float* columns, float* results);
  void predict_block(const float* columns, float* results) const;

  size_t features_ = 0;
  float base_score_ = 0;
  std::vector<Tree> trees_;
  std::vector<Comparison> comparisons_;  // of each tree, level after level
  std::vector<float> leaves_;
};

}  // namespace tandem::predict
