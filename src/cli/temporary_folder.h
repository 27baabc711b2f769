// A folder that goes away with its owner.
#pragma once

#include <string>

#include "tandem/status.h"

namespace tandem::cli {

class TemporaryFolder {
 public:
  // In $TMPDIR, or /tmp.
  static StatusOr<TemporaryFolder> create();
  ~TemporaryFolder();
  TemporaryFolder(TemporaryFolder&& other) noexcept;
  TemporaryFolder& operator=(TemporaryFolder&&) = delete;

  const std::string& path() const { return path_; }

 private:
  explicit TemporaryFolder(std::string path) : path_(std::move(path)) {}

  std::string path_;
};

}  // namespace tandem::cli
