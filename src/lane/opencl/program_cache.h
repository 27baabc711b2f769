// Compiled programs, in memory and on disk.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "lane/opencl/api.h"
#include "lane/opencl/device.h"

namespace tandem::opencl {

// Keeps one program per (source, options). What is on disk never fails a start: a file that is
// damaged, foreign or out of reach costs a warning and a compilation.
class ProgramCache {
 public:
  // `directory`: "none" or empty: memory only.
  ProgramCache(cl_context context, const Device& device, std::string directory);

  // The program made of the embedded files, one after another. A failed build is a kDeviceError
  // with the first lines of the compiler's log.
  StatusOr<cl_program> program(const std::vector<std::string>& files, const std::string& options);
  // The same for a text of the caller's.
  StatusOr<cl_program> program_from_source(const std::string& name, const std::string& source,
                                           const std::string& options);

  const ProgramCacheStats& stats() const { return stats_; }
  const std::vector<std::string>& warnings() const { return warnings_; }

 private:
  StatusOr<Program> compile(const std::string& name, const std::string& source,
                            const std::string& options) const;
  // Null where the disk has none that fits.
  Program load(const std::string& path, const std::string& key);
  void store(const std::string& path, const std::string& key, cl_program program);
  void warn(std::string message);

  cl_context context_;
  const Device& device_;
  std::string directory_;
  bool waits_for_others_ = true;  // other processes that compile with the same cache
  std::map<std::string, Program> programs_;  // by key
  ProgramCacheStats stats_;
  std::vector<std::string> warnings_;
};

}  // namespace tandem::opencl
