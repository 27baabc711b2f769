// The OpenCL C sources of kernels/, compiled into the library.
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace tandem {

// File name ("conv.cl") -> its text.
const std::map<std::string, std::string_view>& embedded_kernels();

}  // namespace tandem
