#include "lane/sim/coefficients.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <vector>

namespace tandem::sim {
namespace {

template <typename T>
StatusOr<T> find(const std::map<std::string, T>& known,
                 const std::map<std::string, std::string>& like, const std::string& name,
                 const char* what) {
  const auto other = like.find(name);
  const auto found = known.find(other == like.end() ? name : other->second);
  if (found != known.end()) return found->second;
  std::vector<std::string> names;
  for (const auto& [each, value] : known) names.push_back(each);
  return not_found(
      fmt::format("no coefficients for {} '{}': there are {}", what, name, fmt::join(names, ", ")));
}

}  // namespace

void visit_numbers(Coefficients& coefficients,
                   const std::function<void(const std::string& path, double& value)>& visit) {
  for (auto& [name, c] : coefficients.cores) {
    const std::string path = "cores." + name + ".";
    visit(path + "gemm_efficiency", c.gemm_efficiency);
    visit(path + "depthwise_efficiency", c.depthwise_efficiency);
    visit(path + "generic_efficiency", c.generic_efficiency);
    visit(path + "stream_gbps", c.stream_gbps);
  }
  for (auto& [name, c] : coefficients.gpus) {
    const std::string path = "gpus." + name + ".";
    visit(path + "alu_efficiency", c.alu_efficiency);
    visit(path + "winograd_efficiency", c.winograd_efficiency);
    visit(path + "load_bytes_per_cycle", c.load_bytes_per_cycle);
    visit(path + "weight_reuse", c.weight_reuse);
    visit(path + "latency_cycles", c.latency_cycles);
    visit(path + "resident_waves", c.resident_waves);
    visit(path + "bandwidth_efficiency", c.bandwidth_efficiency);
    visit(path + "kernel_us", c.kernel_us);
    visit(path + "operator_us", c.operator_us);
    visit(path + "inference_us", c.inference_us);
  }
  for (auto& [name, c] : coefficients.runtimes) {
    const std::string path = "runtimes." + name + ".";
    visit(path + "cpu_rate", c.cpu_rate);
    visit(path + "cpu_depthwise", c.cpu_depthwise);
    visit(path + "cpu_generic", c.cpu_generic);
    visit(path + "cpu_winograd", c.cpu_winograd);
    visit(path + "cpu_operator_cycles", c.cpu_operator_cycles);
    visit(path + "cpu_fork_us", c.cpu_fork_us);
    visit(path + "static_share", c.static_share);
    visit(path + "gpu_rate", c.gpu_rate);
    visit(path + "gpu_operator_us", c.gpu_operator_us);
  }
  for (auto& [name, value] : coefficients.interference) visit("interference." + name, value);
}

Status resolve(const Coefficients& coefficients, const std::string& runtime, PlatformModel* model) {
  model->core_coefficients.clear();
  for (const Cluster& cluster : model->clusters) {
    TANDEM_ASSIGN_OR_RETURN(const CoreCoefficients core,
                            find(coefficients.cores, coefficients.like, cluster.core, "core"));
    model->core_coefficients.push_back(core);
  }
  if (model->has_gpu) {
    TANDEM_ASSIGN_OR_RETURN(model->gpu_coefficients, find(coefficients.gpus, coefficients.like,
                                                          model->gpu.generation, "GPU generation"));
  }
  TANDEM_ASSIGN_OR_RETURN(model->runtime, find(coefficients.runtimes, {}, runtime, "runtime"));
  model->runtime_name = runtime;
  TANDEM_ASSIGN_OR_RETURN(model->interference, find(coefficients.interference, coefficients.like,
                                                    model->name, "platform"));
  return {};
}

}  // namespace tandem::sim
