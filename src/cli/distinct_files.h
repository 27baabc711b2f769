// Files that a command reads and writes must not be one and the same.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tandem/status.h"

namespace tandem::cli {

// What each file is, and its path; empty paths and devices do not count. kInvalidArgument, naming
// both, if two are the same file, which writing one would destroy.
Status check_distinct(const std::vector<std::pair<std::string, std::string>>& files);

}  // namespace tandem::cli
