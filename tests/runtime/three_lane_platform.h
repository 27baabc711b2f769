// This machine's OpenCL lane beside two CPU lanes, however few its cores.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lane/cpu/cpu_lane.h"
#include "lane/opencl/opencl_lane.h"
#include "tests/runtime/real_platform.h"

namespace tandem::testing {

// Lanes as they are made for a Platform, except that the CPU lanes share a core where there is but
// one for them: that costs time, and nothing else.
class ThreeLanePlatform : public Platform {
 public:
  // real_platform() must have a queue lane.
  ThreeLanePlatform() {
    const Platform& all = *real_platform();
    const std::vector<int>& cores = all.lanes()[0]->info().cores;
    const auto middle = cores.begin() + static_cast<std::ptrdiff_t>((cores.size() + 1) / 2);
    const std::vector<int> first(cores.begin(), middle);
    add(make_cpu_lane({"cpu.first", first}));
    add(make_cpu_lane(
        {"cpu.second", middle == cores.end() ? first : std::vector(middle, cores.end())}));
    OpenClLaneOptions options;
    // A device that is the host's processor stays on the cores that it has in this process.
    options.cores = all.lanes()[queue_lane_of(all)]->info().cores;
    options.program_cache_dir =
        (std::filesystem::path(::testing::TempDir()) / "tandem_runtime_programs").string();
    add(make_opencl_lane(options));
  }
  const std::vector<std::unique_ptr<Lane>>& lanes() const override { return lanes_; }
  const std::vector<std::string>& warnings() const override { return warnings_; }
  std::string fingerprint() const override { return "two CPU lanes and OpenCL"; }

 private:
  template <typename MadeLane>
  void add(StatusOr<std::unique_ptr<MadeLane>> made) {
    if (!made.ok()) {
      ADD_FAILURE() << made.status().message();
      std::abort();
    }
    lanes_.push_back(std::move(made).value());
  }

  std::vector<std::unique_ptr<Lane>> lanes_;
  std::vector<std::string> warnings_;
};

inline std::shared_ptr<Platform> three_lane_platform() {
  static const std::shared_ptr<Platform> shared = std::make_shared<ThreeLanePlatform>();
  return shared;
}

}  // namespace tandem::testing
