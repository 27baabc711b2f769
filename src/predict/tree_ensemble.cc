#include "predict/tree_ensemble.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "support/multiversion.h"

namespace tandem::predict {
namespace {

// Rows that walk a tree together: two registers of 512 bits.
constexpr int kBlock = 32;

// Levels below `node`; -1 if the nodes are no tree of at most `limit` levels.
int depth_of(std::span<const TreeNode> nodes, int node, int limit) {
  if (node < 0 || node >= static_cast<int>(nodes.size()) || limit < 0) return -1;
  if (nodes[node].is_leaf()) return 0;
  const int left = depth_of(nodes, nodes[node].left, limit - 1);
  const int right = depth_of(nodes, nodes[node].right, limit - 1);
  return left < 0 || right < 0 ? -1 : 1 + std::max(left, right);
}

// One tree for a block of rows: every comparison, from the lowest level up, each keeping the better
// half of the values below it. That is more comparisons than a walk needs, and takes less time: a
// walk gathers its next node for each row, which no vector unit does fast.
// columns: kBlock values of every feature, feature after feature.
TANDEM_MULTIVERSION
void add_leaves(int depth, const int32_t* feature, const float* threshold, const float* leaves,
                const float* columns, float* results) {
  if (depth == 0) {
    for (int i = 0; i < kBlock; ++i) results[i] += leaves[0];
    return;
  }
  alignas(64) float values[1 << (TreeEnsemble::kMaximumDepth - 1)][kBlock];
  const int lowest = (1 << (depth - 1)) - 1;
  for (int n = 0; n <= lowest; ++n) {
    const float* column = columns + feature[lowest + n] * kBlock;
    const float bound = threshold[lowest + n];
    const float left = leaves[2 * n];
    const float right = leaves[2 * n + 1];
    for (int i = 0; i < kBlock; ++i) values[n][i] = column[i] < bound ? left : right;
  }
  for (int level = depth - 2; level >= 0; --level) {
    const int first = (1 << level) - 1;
    for (int n = 0; n <= first; ++n) {
      const float* column = columns + feature[first + n] * kBlock;
      const float bound = threshold[first + n];
      const float* left = values[2 * n];
      const float* right = values[2 * n + 1];
      float* kept = values[n];
      TANDEM_INDEPENDENT
      for (int i = 0; i < kBlock; ++i) kept[i] = column[i] < bound ? left[i] : right[i];
    }
  }
  for (int i = 0; i < kBlock; ++i) results[i] += values[0][i];
}

}  // namespace

Status TreeEnsemble::add_tree(std::span<const TreeNode> nodes) {
  const int depth = depth_of(nodes, 0, kMaximumDepth);
  if (depth < 0) {
    return corrupt(fmt::format("tree {} is no tree of at most {} levels", trees(), kMaximumDepth));
  }
  for (const TreeNode& node : nodes) {
    if (!std::isfinite(node.is_leaf() ? node.leaf : node.threshold)) {
      return corrupt("a leaf or threshold that is no finite number");
    }
    if (node.is_leaf()) continue;
    if (node.feature < 0 || static_cast<size_t>(node.feature) >= features_) {
      return corrupt(fmt::format("feature {} of {}", node.feature, features_));
    }
  }
  const Tree tree{depth, feature_.size(), leaves_.size()};
  const size_t comparisons = (size_t{1} << depth) - 1;
  feature_.resize(tree.node + comparisons, 0);
  threshold_.resize(tree.node + comparisons, 0);
  leaves_.resize(tree.leaf + comparisons + 1, 0);
  trees_.push_back(tree);
  fill(nodes, tree, 0, depth, 0);
  return {};
}

// Puts the subtree of `node` at `place`, with `depth` levels to fill below it.
void TreeEnsemble::fill(std::span<const TreeNode> nodes, const Tree& tree, int node, int depth,
                        size_t place) {
  const TreeNode& from = nodes[node];
  if (from.is_leaf()) {
    // All that is below: whichever way the filling comparisons go.
    const size_t below = size_t{1} << depth;
    const size_t first = (place + 1) * below - (size_t{1} << tree.depth);
    std::fill_n(leaves_.begin() + static_cast<std::ptrdiff_t>(tree.leaf + first), below, from.leaf);
    return;
  }
  feature_[tree.node + place] = from.feature;
  threshold_[tree.node + place] = from.threshold;
  fill(nodes, tree, from.left, depth - 1, 2 * place + 1);
  fill(nodes, tree, from.right, depth - 1, 2 * place + 2);
}

void TreeEnsemble::predict_block(const float* columns, float* results) const {
  for (const Tree& tree : trees_) {
    add_leaves(tree.depth, feature_.data() + tree.node, threshold_.data() + tree.node,
               leaves_.data() + tree.leaf, columns, results);
  }
}

void TreeEnsemble::predict(std::span<const float> rows, std::span<float> results) const {
  std::vector<float> columns(features_ * kBlock);
  float sums[kBlock];
  for (size_t start = 0; start < results.size(); start += kBlock) {
    const size_t count = std::min<size_t>(kBlock, results.size() - start);
    for (size_t i = 0; i < count; ++i) {
      const float* row = rows.data() + (start + i) * features_;
      for (size_t f = 0; f < features_; ++f) columns[f * kBlock + i] = row[f];
    }
    std::fill(sums, sums + kBlock, base_score_);
    predict_block(columns.data(), sums);
    std::copy(sums, sums + count, results.begin() + static_cast<std::ptrdiff_t>(start));
  }
}

}  // namespace tandem::predict
