// Files that appear only when they are complete.
#pragma once

#include <string>
#include <string_view>

#include "tandem/status.h"

namespace tandem {

// Writes beside `path` and renames, so that readers never see half a file and a failure leaves
// nothing behind. A link to a file is followed; devices and pipes are written to directly. The error says
// which file and why.
Status write_file(const std::string& path, std::string_view content);

}  // namespace tandem
