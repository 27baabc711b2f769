#include "cli/output_files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

namespace tandem::cli {
namespace {

namespace fs = std::filesystem;

// Makes a file there and removes it: of what may forbid that (permissions, file systems that are
// read-only, or none), nothing else knows all.
Status check_can_create_in(const fs::path& folder, const std::string& for_what) {
  std::error_code error;
  const fs::path shown = folder.empty() ? fs::path(".") : folder;
  const auto failed = [&](const std::string& why) {
    return failed_precondition(
        fmt::format("{} cannot be written: folder {}: {}", for_what, shown.string(), why));
  };
  if (!fs::exists(shown, error)) return failed("there is none; make it, or give another");
  if (!fs::is_directory(shown, error)) return failed("it is no folder");
  const fs::path probe = shown / fmt::format(".tandem.{}.tmp", getpid());
  const int file = open(probe.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (file < 0) return failed(std::strerror(errno));
  close(file);
  unlink(probe.c_str());
  return {};
}

Status check_can_write(const std::string& what, const std::string& path) {
  const std::string name = fmt::format("{}: {}", what, path);
  std::error_code error;
  if (fs::is_directory(path, error)) {
    return invalid_argument(name + " is a folder; give a file");
  }
  // Devices and pipes are written to where they are; files are replaced (write_file).
  if (fs::exists(path, error) && !fs::is_regular_file(path, error)) {
    if (access(path.c_str(), W_OK) == 0) return {};
    return failed_precondition(fmt::format("{} cannot be written: {}", name, std::strerror(errno)));
  }
  const fs::path target = fs::weakly_canonical(path, error);
  return check_can_create_in((error ? fs::path(path) : target).parent_path(), name);
}

}  // namespace

Status check_can_write(const std::vector<std::pair<std::string, std::string>>& files) {
  for (const auto& [what, path] : files) {
    if (!path.empty()) TANDEM_RETURN_IF_ERROR(check_can_write(what, path));
  }
  return {};
}

Status check_can_fill(const std::string& what, const std::string& folder) {
  if (folder.empty()) return {};
  const std::string name = fmt::format("{}: {}", what, folder);
  std::error_code error;
  fs::path there = fs::absolute(folder, error);
  if (fs::exists(there, error) && !fs::is_directory(there, error)) {
    return invalid_argument(name + " is no folder; give another");
  }
  while (!fs::exists(there, error) && there.has_relative_path()) there = there.parent_path();
  return check_can_create_in(there, name);
}

}  // namespace tandem::cli
