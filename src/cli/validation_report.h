// `tandem simulate --validate` and `--fit`.
#pragma once

#include <string>

#include "tandem/status.h"

namespace tandem::cli {

// Prints the simulator's errors against the published measurements of a folder.
Status print_validation(const std::string& published, const std::string& calibration, bool json);

// Fits the coefficients to those that are not held out, and writes them to a file.
Status fit_coefficients(const std::string& published, const std::string& calibration,
                        const std::string& output, int rounds);

}  // namespace tandem::cli
