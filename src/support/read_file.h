// Whole files.
#pragma once

#include <string>

#include "tandem/status.h"

namespace tandem {

// The bytes of a file, a pipe or a device. kNotFound if it is not there, kInvalidArgument for a
// folder, kFailedPrecondition otherwise; the message says which file and why.
StatusOr<std::string> read_file(const std::string& path);

}  // namespace tandem
