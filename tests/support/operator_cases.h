// Parts of the operator table.
#pragma once

#include <vector>

#include "tests/support/operator_table.h"

namespace tandem::testing {

void add_unary_cases(std::vector<OperatorCase>& t);
void add_binary_cases(std::vector<OperatorCase>& t);
void add_movement_cases(std::vector<OperatorCase>& t);
void add_resize_cases(std::vector<OperatorCase>& t);

}  // namespace tandem::testing
