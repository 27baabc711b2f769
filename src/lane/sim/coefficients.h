// The simulator's fitted parameters: of core types, GPU generations and runtimes, over all
// platforms.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "lane/sim/platform_model.h"
#include "tandem/status.h"

namespace tandem::sim {

struct Coefficients {
  std::map<std::string, CoreCoefficients> cores;  // by Cluster::core
  std::map<std::string, GpuCoefficients> gpus;    // by Gpu::generation
  std::map<std::string, RuntimeCoefficients> runtimes;
  std::map<std::string, double> interference;  // by platform
  // Types for which there are no measurements, and the one whose coefficients they have.
  std::map<std::string, std::string> like;
};

// Calls `visit` with each number and its path: "cores.cortex-a76.gemm_efficiency".
void visit_numbers(Coefficients& coefficients,
                   const std::function<void(const std::string& path, double& value)>& visit);

// Gives the platform its coefficients. kNotFound, naming it, if there is no such core type, GPU
// generation or runtime.
Status resolve(const Coefficients& coefficients, const std::string& runtime, PlatformModel* model);

}  // namespace tandem::sim
