#include "support/write_file.h"

#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "fmt/format.h"

namespace tandem {

Status write_file(const std::string& path, std::string_view content) {
  // A link to a file is followed, so that the file is replaced and not the link; what is neither
  // there nor a regular file (a device, a pipe) cannot be replaced, and is written to.
  std::error_code error;
  const std::filesystem::path resolved = std::filesystem::weakly_canonical(path, error);
  const std::string target = error ? path : resolved.string();
  const bool special =
      std::filesystem::exists(target, error) && !std::filesystem::is_regular_file(target, error);
  // Other processes and threads may be writing the same file.
  static std::atomic<int> count = 0;
  const std::string aside =
      special ? target : fmt::format("{}.{}.{}.tmp", target, getpid(), count.fetch_add(1));
  const auto failed = [&](const char* what) {
    const int code = errno;
    if (!special) std::remove(aside.c_str());
    return failed_precondition(fmt::format("cannot {} {}: {}", what, path, std::strerror(code)));
  };
  std::ofstream file(aside, std::ios::binary | std::ios::trunc);
  if (!file) return failed(special ? "open" : "create");
  file.write(content.data(), static_cast<std::streamsize>(content.size()));
  file.close();
  if (!file) return failed("write");
  if (!special && std::rename(aside.c_str(), target.c_str()) != 0) return failed("rename to");
  return {};
}

}  // namespace tandem
