// Numbers for the names that describe slices: what models are told of them.
#pragma once

#include <cstdint>
#include <string_view>

namespace tandem::predict {

// An implementation's name without the size of its tiles, and that size ("cl_conv1x1_14x32" has
// tiles of 14 rows and 32 columns).
struct ImplementationName {
  std::string_view base;
  int64_t tile_rows = 0;  // 0: the name has none
  int64_t tile_columns = 0;
};
ImplementationName split_implementation(std::string_view name);

// The same number for a name in every version: known ones are listed in the source, in an order
// that only grows. 0: not known.
int implementation_number(std::string_view base);
int variant_number(std::string_view library_variant);

// Likewise: of operators as graphs call them, and of functions and variants, by what they cost.
int kind_number(std::string_view kind);
int function_number(std::string_view name);
// Of one result: 0 as an addition, 1 with a division, 4 transcendental.
double function_cost(std::string_view name);

}  // namespace tandem::predict
