#include "cli/distinct_files.h"

#include <fmt/format.h>

#include <filesystem>
#include <system_error>

namespace tandem::cli {
namespace {

namespace fs = std::filesystem;

bool is_same(const std::string& a, const std::string& b) {
  std::error_code error;
  const fs::file_status status = fs::status(a, error);
  if (fs::exists(status) && !fs::is_regular_file(status)) return false;
  if (fs::equivalent(a, b, error) && !error) return true;
  const fs::path one = fs::weakly_canonical(a, error);
  return !error && one == fs::weakly_canonical(b, error) && !error;
}

}  // namespace

Status check_distinct(const std::vector<std::pair<std::string, std::string>>& files) {
  for (size_t i = 0; i < files.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      const auto& [what, path] = files[i];
      const auto& [other, other_path] = files[j];
      if (path.empty() || other_path.empty() || !is_same(path, other_path)) continue;
      return invalid_argument(fmt::format(
          "{} and {} are the same file, {}: give another, since it would be overwritten", other,
          what, path));
    }
  }
  return {};
}

}  // namespace tandem::cli
