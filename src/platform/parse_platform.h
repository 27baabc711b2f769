// A platform's model from the JSON of its file.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "lane/sim/platform_model.h"

namespace tandem {

// Without coefficients. `lanes`: instead of the document's, if there are any; see
// PlatformFileOptions. Throws std::invalid_argument that names the field.
sim::PlatformModel parse_platform(const nlohmann::json& document,
                                  const std::vector<std::string>& lanes);

}  // namespace tandem
