#include "support/read_file.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace tandem {

StatusOr<std::string> read_file(const std::string& path) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) {
    return invalid_argument(path + " is a folder, and no file");
  }
  const auto failed = [&path] {
    const int code = errno;
    const std::string message = fmt::format("cannot read {}: {}", path, std::strerror(code));
    return code == ENOENT ? not_found(message) : failed_precondition(message);
  };
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  if (!file) return failed();
  std::ostringstream content;
  content << file.rdbuf();  // fails if there is nothing in the file, too
  if (file.bad()) return failed();
  return std::move(content).str();
}

}  // namespace tandem
