#include "support/write_file.h"

#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <fstream>

#include "fmt/format.h"

namespace tandem {

Status write_file(const std::string& path, std::string_view content) {
  const std::string aside = fmt::format("{}.{}.tmp", path, getpid());
  const auto failed = [&path, &aside](const char* what) {
    const int error = errno;
    std::remove(aside.c_str());
    return failed_precondition(fmt::format("cannot {} {}: {}", what, path, std::strerror(error)));
  };
  std::ofstream file(aside, std::ios::binary | std::ios::trunc);
  if (!file) return failed("create");
  file.write(content.data(), static_cast<std::streamsize>(content.size()));
  file.close();
  if (!file) return failed("write");
  if (std::rename(aside.c_str(), path.c_str()) != 0) return failed("rename to");
  return {};
}

}  // namespace tandem
