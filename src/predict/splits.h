// Splits for held-out errors: rows of one group (a network, a shape) are never on both sides.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace tandem::predict {

// The fold, 0 to folds - 1, of every row: groups in an order drawn with `seed`, each to the fold
// that has the fewest rows. The same on every machine. With fewer groups than folds, some are
// empty.
std::vector<int> group_folds(std::span<const std::string> groups, int folds, uint64_t seed);

// Row indices whose fold is / is not `fold`.
std::vector<size_t> rows_of_fold(std::span<const int> folds, int fold);
std::vector<size_t> rows_outside_fold(std::span<const int> folds, int fold);

// `count` of `rows` (all of them if there are fewer), drawn with `seed`, ascending.
std::vector<size_t> draw_rows(std::span<const size_t> rows, size_t count, uint64_t seed);

}  // namespace tandem::predict
