// Platform files (platforms/*.json, documented in docs/platforms.md). They are part of the library;
// a path names another one.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lane/sim/platform_model.h"
#include "tandem/status.h"

namespace tandem {

struct PlatformFileOptions {
  std::string runtime = "tflite";  // whose kernels are simulated
  // "gpu.compute_units=6", "cpu.clusters.prime.mhz=2000": members of arrays by their name.
  std::vector<std::string> set{};
  // "cpu=prime:1+big:3", "gpu=gpu": instead of the file's lanes, if there are any.
  std::vector<std::string> lanes{};
  std::string calibration{};  // a file of coefficients; empty: the built-in ones
};

// The names of the built-in platforms.
std::vector<std::string> platform_names();

// `platform` is a built-in name or the path of a JSON file. Errors name the file and the field.
StatusOr<sim::PlatformModel> load_platform(const std::string& platform,
                                           const PlatformFileOptions& options = {});

// "prime:1+big:3" in terms of the platform's clusters; "gpu" is the empty list.
StatusOr<std::vector<sim::CoreGroup>> parse_cores(const sim::PlatformModel& model,
                                                  const std::string& text);

}  // namespace tandem
