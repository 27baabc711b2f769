// Whether what a command is to write can be written, asked before it does anything slow.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tandem/status.h"

namespace tandem::cli {

// What each file is, and its path; empty paths do not count. kInvalidArgument for a folder, and
// kFailedPrecondition, naming the file and the reason, where none can be made or replaced. Nothing
// is left behind, and what is there stays as it is.
Status check_can_write(const std::vector<std::pair<std::string, std::string>>& files);
// The same of a folder, which need not be there yet, nor those above it.
Status check_can_fill(const std::string& what, const std::string& folder);

}  // namespace tandem::cli
