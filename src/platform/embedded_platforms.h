// platforms/*.json as part of the library. Defined in a file that CMake generates.
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace tandem {

// File name ("pixel4.json") -> content.
const std::map<std::string, std::string_view>& embedded_platforms();

}  // namespace tandem
