// Built-in networks as files.
#pragma once

#include <cstdint>
#include <string>

#include "tandem/status.h"

namespace tandem::cli {

// Writes the network `name` of the zoo as an ONNX file.
Status write_network(const std::string& name, uint64_t seed, const std::string& path);

}  // namespace tandem::cli
