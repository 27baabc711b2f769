#include "predict/tree_ensemble.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "support/multiversion.h"

namespace tandem::predict {
namespace {

// Rows that go through a tree together: two registers of 512 bits.
constexpr int kBlock = 32;
// Rows from which a block, of which every comparison is made, takes less time than as many walks.
constexpr size_t kFewestTogether = 26;

// Levels below `node`; -1 if the nodes are no tree of at most `limit` levels.
int depth_of(std::span<const TreeNode> nodes, int node, int limit) {
  if (node < 0 || node >= static_cast<int>(nodes.size()) || limit < 0) return -1;
  if (nodes[node].is_leaf()) return 0;
  const int left = depth_of(nodes, nodes[node].left, limit - 1);
  const int right = depth_of(nodes, nodes[node].right, limit - 1);
  return left < 0 || right < 0 ? -1 : 1 + std::max(left, right);
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
  const Tree tree{depth, comparisons_.size(), leaves_.size()};
  const size_t comparisons = (size_t{1} << depth) - 1;
  comparisons_.resize(tree.node + comparisons);
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
  comparisons_[tree.node + place] = {from.threshold, from.feature};
  fill(nodes, tree, from.left, depth - 1, 2 * place + 1);
  fill(nodes, tree, from.right, depth - 1, 2 * place + 2);
}

// One tree for a block of rows: every comparison, from the lowest level up, each keeping the better
// half of the values below it. That is more comparisons than walks need, and takes less time: walks
// gather their next node for each row, which no vector unit does fast.
// columns: kBlock values of every feature, feature after feature.
TANDEM_MULTIVERSION
void TreeEnsemble::add_leaves(int depth, const Comparison* comparisons, const float* leaves,
                              const float* columns, float* results) {
  if (depth == 0) {
    for (int i = 0; i < kBlock; ++i) results[i] += leaves[0];
    return;
  }
  alignas(64) float values[1 << (kMaximumDepth - 1)][kBlock];
  const int lowest = (1 << (depth - 1)) - 1;
  for (int n = 0; n <= lowest; ++n) {
    const float* column = columns + comparisons[lowest + n].feature * kBlock;
    const float bound = comparisons[lowest + n].threshold;
    const float left = leaves[2 * n];
    const float right = leaves[2 * n + 1];
    for (int i = 0; i < kBlock; ++i) values[n][i] = column[i] < bound ? left : right;
  }
  for (int level = depth - 2; level >= 0; --level) {
    const int first = (1 << level) - 1;
    for (int n = 0; n <= first; ++n) {
      const float* column = columns + comparisons[first + n].feature * kBlock;
      const float bound = comparisons[first + n].threshold;
      const float* left = values[2 * n];
      const float* right = values[2 * n + 1];
      float* kept = values[n];
      TANDEM_INDEPENDENT
      for (int i = 0; i < kBlock; ++i) kept[i] = column[i] < bound ? left[i] : right[i];
    }
  }
  for (int i = 0; i < kBlock; ++i) results[i] += values[0][i];
}

void TreeEnsemble::predict_block(const float* columns, float* results) const {
  for (const Tree& tree : trees_) {
    add_leaves(tree.depth, comparisons_.data() + tree.node, leaves_.data() + tree.leaf, columns,
               results);
  }
}

// The way from the root to a leaf, without branches that depend on values.
size_t TreeEnsemble::leaf_of(int depth, const Comparison* comparisons, const float* row) {
  size_t place = 0;
  for (int level = 0; level < depth; ++level) {
    const Comparison& at = comparisons[place];
    place = 2 * place + 2 - static_cast<size_t>(row[at.feature] < at.threshold);
  }
  return place - ((size_t{1} << depth) - 1);
}

// Several trees at once: each step of a walk has to wait for the one before, and not for those of
// other trees.
float TreeEnsemble::predict_row(const float* row) const {
  constexpr size_t kAtOnce = 8;
  float sum = base_score_;
  for (size_t first = 0; first < trees_.size();) {
    const std::span<const Tree> rest = std::span(trees_).subspan(first);
    const int depth = rest.front().depth;
    const bool alike = rest.size() >= kAtOnce &&
                       std::all_of(rest.begin(), rest.begin() + kAtOnce,
                                   [depth](const Tree& tree) { return tree.depth == depth; });
    if (!alike) {
      sum +=
          leaves_[rest.front().leaf + leaf_of(depth, comparisons_.data() + rest.front().node, row)];
      ++first;
      continue;
    }
    size_t places[kAtOnce] = {};
    for (int level = 0; level < depth; ++level) {
      for (size_t t = 0; t < kAtOnce; ++t) {
        const Comparison& at = comparisons_[rest[t].node + places[t]];
        places[t] = 2 * places[t] + 2 - static_cast<size_t>(row[at.feature] < at.threshold);
      }
    }
    const size_t comparisons = (size_t{1} << depth) - 1;
    for (size_t t = 0; t < kAtOnce; ++t) sum += leaves_[rest[t].leaf + places[t] - comparisons];
    first += kAtOnce;
  }
  return sum;
}

void TreeEnsemble::predict(std::span<const float> rows, std::span<float> results) const {
  const size_t single = results.size() % kBlock;
  const size_t together = results.size() - (single < kFewestTogether ? single : 0);
  for (size_t i = together; i < results.size(); ++i) {
    results[i] = predict_row(rows.data() + i * features_);
  }
  if (together == 0) return;
  std::vector<float> columns(features_ * kBlock);
  float sums[kBlock];
  for (size_t start = 0; start < together; start += kBlock) {
    const size_t count = std::min<size_t>(kBlock, together - start);
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
