#include "cli/temporary_folder.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <utility>

namespace tandem::cli {

StatusOr<TemporaryFolder> TemporaryFolder::create() {
  std::error_code error;
  std::string path = std::filesystem::temp_directory_path(error) / "tandem-XXXXXX";
  if (error || mkdtemp(path.data()) == nullptr) {
    return failed_precondition("cannot make a folder for temporary files (" + path + "): " +
                               std::strerror(errno) + "; set TMPDIR to where there is room");
  }
  return TemporaryFolder(std::move(path));
}

TemporaryFolder::TemporaryFolder(TemporaryFolder&& other) noexcept
    : path_(std::exchange(other.path_, {})) {}

TemporaryFolder::~TemporaryFolder() {
  std::error_code error;
  if (!path_.empty()) std::filesystem::remove_all(path_, error);
}

}  // namespace tandem::cli
