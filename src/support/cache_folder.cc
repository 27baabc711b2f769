#include "support/cache_folder.h"

#include <cstdlib>

namespace tandem {
namespace {

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string() : value;
}

}  // namespace

std::string default_cache_folder(std::string_view name) {
  std::string base = variable("XDG_CACHE_HOME");
  if (base.empty()) {
    base = variable("HOME");
    if (base.empty()) return "none";
    base += "/.cache";
  }
  return base.append("/tandem/").append(name);
}

}  // namespace tandem
