// Flags that several commands share.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cli/validators.h"
#include "lane/sim/world.h"
#include "platform/platform_file.h"
#include "tandem/model.h"
#include "tandem/platform.h"
#include "tandem/session.h"
#include "tandem/status.h"

namespace tandem::cli {

// Which lanes there are.
class PlatformFlags {
 public:
  void add_to(CLI::App& app);
  StatusOr<PlatformOptions> options() const;
  // SessionOptions::calibration_dir.
  std::string calibration_dir() const;
  // Of --platform; null without it.
  StatusOr<std::shared_ptr<Platform>> simulated() const;
  // What --use_gpu said, if it was given.
  std::optional<bool> use_gpu() const { return use_gpu_; }

 private:
  void add_lanes(CLI::App& app);
  void add_simulation(CLI::App& app);

  std::string opencl_cores_;
  std::vector<std::string> cpu_cores_;
  std::string opencl_device_;
  bool opencl_own_memory_ = false;
  bool no_winograd_ = false;
  std::string cache_dir_;
  std::optional<bool> use_gpu_;
  int num_threads_ = 0;
  std::string simulated_;
  PlatformFileOptions simulation_;
  uint64_t simulation_seed_ = 1;
  int throttle_after_ = 0;  // 0: never
  sim::Clocks throttled_;
};

// Where sessions have the costs of slices from.
class CostFlags {
 public:
  void add_to(CLI::App& app);
  void apply_to(SessionOptions* options) const;

 private:
  CostSource source_ = CostSource::kAuto;
  std::string predictors_;
};

// How schedules are searched for.
class SearchFlags {
 public:
  void add_to(CLI::App& app);
  // True if anything given would change how work is divided.
  bool divides() const { return evaluations_ > 0 || budget_ms_ > 0 || !pins_.empty(); }
  void apply_to(SessionOptions* options) const;

 private:
  int64_t evaluations_ = 0;
  double budget_ms_ = 0;
  uint64_t seed_ = 1;
  std::vector<std::string> pins_;
};

// Creates the platform and prints its warnings to stderr.
StatusOr<std::shared_ptr<Platform>> create_platform(const PlatformFlags& flags);

// How models are read.
class LoadFlags {
 public:
  void add_to(CLI::App& app);
  StatusOr<Model> load(const std::string& path) const;

 private:
  std::vector<std::string> shapes_;
  bool no_optimize_ = false;
};

// For CLI::Option::transform(): a mechanism of synchronisation by name, as the number that CLI11
// makes enums of. Throws what CLI11 reports.
std::string parse_mechanism(const std::string& name);

// "name=1,3,224,224" -> the name and the extents.
StatusOr<std::pair<std::string, Dims>> parse_shape(const std::string& text);

}  // namespace tandem::cli
