// What options accept, for CLI::Option::check(). A NaN or an infinity is no number.
#pragma once

#include <CLI/CLI.hpp>

namespace tandem::cli {

// Integers from `least` on.
CLI::Validator at_least(long least);
// Numbers above 0.
CLI::Validator positive();
// Numbers from `least` on.
CLI::Validator number_from(double least);
// Numbers from `least` to 1.
CLI::Validator share_of_one(double least);

}  // namespace tandem::cli
