#include "support/cache_folder.h"

#include <cstdlib>

namespace tandem {
namespace {

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string() : value;
}

std::string folder(const char* given, const char* in_home, std::string_view name) {
  std::string base = variable(given);
  if (base.empty()) {
    base = variable("HOME");
    if (base.empty()) return "none";
    base += in_home;
  }
  return base.append("/tandem/").append(name);
}

}  // namespace

std::string default_cache_folder(std::string_view name) {
  return folder("XDG_CACHE_HOME", "/.cache", name);
}

std::string default_data_folder(std::string_view name) {
  return folder("XDG_DATA_HOME", "/.local/share", name);
}

}  // namespace tandem
