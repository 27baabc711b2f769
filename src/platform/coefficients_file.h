// The coefficients that were fitted for the platforms of platforms/*.json. They are part of the
// library; a path names others.
#pragma once

#include <string>

#include "lane/sim/coefficients.h"
#include "tandem/status.h"

namespace tandem {

// Of the built-in ones, among the platforms.
inline constexpr char kCalibrationFile[] = "calibration.json";

// The built-in coefficients (empty path), or those of a file; and as text.
StatusOr<sim::Coefficients> load_coefficients(const std::string& path = {});
std::string to_text(sim::Coefficients coefficients);

}  // namespace tandem
