#include "platform/engine.h"

#include <fmt/format.h>

#include "tandem/version.h"

namespace tandem {

// Generated when Tandem is built.
const char* engine_digest();

std::string engine_fingerprint() {
  return fmt::format("tandem {}; lanes {}", kVersion, engine_digest());
}

}  // namespace tandem
