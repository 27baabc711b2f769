// The commands under `tandem bench` that have files of their own.
#pragma once

#include <string>
#include <vector>

#include "cli/flags.h"
#include "tandem/status.h"

namespace tandem::cli {

struct BenchOpFlags {
  PlatformFlags platform;
  std::vector<std::string> files;
  bool implementations = false;
  int samples = 9;
  double least_gflop = 0;
  bool json = false;
};

Status bench_op(const BenchOpFlags& flags);

}  // namespace tandem::cli
