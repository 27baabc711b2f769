// This machine's platform, for tests: drivers start once per process.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <memory>

#include "lane/lane.h"
#include "tandem/platform.h"
#include "tandem/session.h"

namespace tandem::testing {

inline std::shared_ptr<Platform> make_real_platform(bool own_memory) {
  PlatformOptions options;
  options.opencl_own_memory = own_memory;
  options.program_cache_dir =
      (std::filesystem::path(::testing::TempDir()) / "tandem_runtime_programs").string();
  auto made = Platform::create(options);
  if (!made.ok()) {
    ADD_FAILURE() << made.status().message();
    std::abort();
  }
  return std::move(made).value();
}

inline std::shared_ptr<Platform> real_platform() {
  static const std::shared_ptr<Platform> shared = make_real_platform(false);
  return shared;
}

// The same, but data are copied to the OpenCL device and back.
inline std::shared_ptr<Platform> copying_platform() {
  static const std::shared_ptr<Platform> shared = make_real_platform(true);
  return shared;
}

// kNone if there is none.
inline int queue_lane_of(const Platform& platform) {
  const auto& lanes = platform.lanes();
  const auto found = std::find_if(lanes.begin(), lanes.end(),
                                  [](const auto& lane) { return lane->info().asynchronous; });
  return found == lanes.end() ? kNone : static_cast<int>(found - lanes.begin());
}
inline bool has_queue_lane() { return queue_lane_of(*real_platform()) != kNone; }

inline SessionOptions real_lane_options(const std::string& strategy) {
  SessionOptions options;
  options.strategy = strategy;
  options.calibration_dir = "none";
  options.calibration_seconds = 0.5;
  options.deadline = std::chrono::seconds(60);
  return options;
}

}  // namespace tandem::testing
