// What the library says beside its results: warnings, and what takes long.
#pragma once

#include <spdlog/logger.h>

namespace tandem {

// Writes to stderr (stdout belongs to the program that uses the library). spdlog knows it as
// "tandem", so that the program can redirect it or turn it off; one registered under that name
// before the first use is taken instead.
spdlog::logger& log();

}  // namespace tandem
