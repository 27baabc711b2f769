// The files bench/shapes/set_NAME.csv, which travel inside the binary.
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace tandem::cli {

// By the names of the files.
const std::map<std::string, std::string_view>& shape_sets();

}  // namespace tandem::cli
