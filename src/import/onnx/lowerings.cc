#include "import/onnx/lowerings.h"

#include <array>
#include <unordered_map>

namespace tandem {
namespace {

auto families() {
  return std::array{attention_lowerings(), constant_lowerings(),      convolution_lowerings(),
                    einsum_lowerings(),    elementwise_lowerings(),   matmul_lowerings(),
                    movement_lowerings(),  normalization_lowerings(), pool_lowerings(),
                    reduction_lowerings(), resize_lowerings(),        shape_lowerings()};
}

using Table = std::unordered_map<std::string_view, const Lowering*>;

Table make_table() {
  Table table;
  for (const std::span<const Lowering> family : families()) {
    for (const Lowering& lowering : family) table.emplace(lowering.op_type, &lowering);
  }
  return table;
}

}  // namespace

std::vector<Lowering> all_lowerings() {
  std::vector<Lowering> all;
  for (const std::span<const Lowering> family : families()) {
    all.insert(all.end(), family.begin(), family.end());
  }
  return all;
}

const Lowering* find_lowering(std::string_view op_type) {
  static const Table table = make_table();
  const auto found = table.find(op_type);
  return found == table.end() ? nullptr : found->second;
}

}  // namespace tandem
