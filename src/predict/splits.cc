#include "predict/splits.h"

#include <algorithm>
#include <map>
#include <random>

namespace tandem::predict {
namespace {

// Fisher and Yates; std::shuffle differs between standard libraries.
template <typename T>
void shuffle(std::vector<T>* values, uint64_t seed) {
  std::mt19937_64 random(seed);
  for (size_t i = values->size(); i > 1; --i) std::swap((*values)[i - 1], (*values)[random() % i]);
}

}  // namespace

std::vector<int> group_folds(std::span<const std::string> groups, int folds, uint64_t seed) {
  std::map<std::string, size_t> rows;
  for (const std::string& group : groups) ++rows[group];
  std::vector<std::string> order;
  for (const auto& [group, count] : rows) order.push_back(group);
  shuffle(&order, seed);

  std::vector<size_t> filled(folds);
  std::map<std::string, int> fold_of;
  for (const std::string& group : order) {
    const auto least = std::min_element(filled.begin(), filled.end());
    fold_of[group] = static_cast<int>(least - filled.begin());
    *least += rows[group];
  }
  std::vector<int> result;
  result.reserve(groups.size());
  for (const std::string& group : groups) result.push_back(fold_of[group]);
  return result;
}

std::vector<size_t> rows_of_fold(std::span<const int> folds, int fold) {
  std::vector<size_t> rows;
  for (size_t i = 0; i < folds.size(); ++i) {
    if (folds[i] == fold) rows.push_back(i);
  }
  return rows;
}

std::vector<size_t> rows_outside_fold(std::span<const int> folds, int fold) {
  std::vector<size_t> rows;
  for (size_t i = 0; i < folds.size(); ++i) {
    if (folds[i] != fold) rows.push_back(i);
  }
  return rows;
}

std::vector<size_t> draw_rows(std::span<const size_t> rows, size_t count, uint64_t seed) {
  std::vector<size_t> drawn(rows.begin(), rows.end());
  shuffle(&drawn, seed);
  drawn.resize(std::min(count, drawn.size()));
  std::sort(drawn.begin(), drawn.end());
  return drawn;
}

}  // namespace tandem::predict
