// Which engine this is: what measured times and trained predictors belong to, beside the platform.
#pragma once

#include <string>

namespace tandem {

// Changes whenever the time of a slice may, on one platform: Tandem's version and a digest of the
// lanes' sources. Versions of libraries and drivers are part of Platform::fingerprint().
std::string engine_fingerprint();

}  // namespace tandem
