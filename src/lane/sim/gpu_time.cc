// The GPU lane. A kernel is a number of waves; each takes steps of loads and arithmetic. A compute
// unit overlaps what its resident waves do; a kernel takes as long as the unit with most waves, or
// as its traffic with memory.
#include <algorithm>
#include <cmath>

#include "lane/sim/gpu_kernels.h"
#include "lane/sim/slice_time.h"

namespace tandem::sim {
namespace {

// What one work-item does in a step, and how many steps there are.
struct Steps {
  double count = 1;
  double serial = 1;  // of them, those whose loads wait for each other
  double flops = 0;
  double activation_bytes = 0;  // loaded through caches, by each item for itself
  double weight_bytes = 0;      // loaded by all items of a neighbourhood alike
};

double ceil_div(double a, double b) { return std::ceil(a / b); }
double slices(int64_t channels) { return ceil_div(static_cast<double>(channels), 4); }

Steps steps_of(const KernelPlan& plan, const Workload& w, double element) {
  const double pixels = static_cast<double>(plan.block[0] * plan.block[1] * plan.block[2]);
  const auto block_slices = static_cast<double>(plan.block[3]);
  const auto window = static_cast<double>(w.kernel_h * w.kernel_w);
  const double in_slices = ceil_div(slices(w.in_channels), static_cast<double>(w.groups));
  const double four = 4 * element;
  Steps s;
  switch (plan.kernel) {
    case Kernel::kConvConstants:
      s.count = in_slices * window;
      s.flops = 32 * slices(w.out_channels);
      s.activation_bytes = four;
      break;
    case Kernel::kWinograd:
      s.count = in_slices;
      s.flops = 32 * pixels * block_slices;
      s.activation_bytes = four * pixels;
      s.weight_bytes = 4 * four * block_slices;
      break;
    case Kernel::kConvGeneric:
    case Kernel::kConvGrouped:
      s.count = in_slices * window;
      s.flops = 32 * pixels * block_slices;
      s.activation_bytes = four * pixels;
      s.weight_bytes = 4 * four * block_slices;
      break;
    case Kernel::kDepthwise:
      s.count = window;
      s.flops = 8;
      s.activation_bytes = four;
      s.weight_bytes = four;
      break;
    case Kernel::kFullyConnected:
      s.count = std::max(1.0, in_slices / 4);
      s.flops = 32;
      s.activation_bytes = 4 * four;  // weights, that no two items share
      s.weight_bytes = four;
      break;
    case Kernel::kPool:
      s.count = window;
      s.flops = 4;
      s.activation_bytes = four;
      break;
    case Kernel::kMean:
      s.count = ceil_div(static_cast<double>(w.in_h * w.in_w),
                         static_cast<double>(plan.group[0] * plan.group[1]));
      s.flops = 4;
      s.activation_bytes = four;
      break;
    case Kernel::kConcat:
      // An item copies all slices of a pixel; where operands do not end with a slice, by channel.
      s.count = slices(w.out_channels) * (w.operands > 1 && w.in_channels % 4 != 0 ? 4 : 1);
      s.activation_bytes = 2 * four;
      break;
    case Kernel::kElementwise:
      s.count = 1;
      s.flops = 8;
      s.activation_bytes = four * static_cast<double>(1 + w.operands);
      break;
  }
  // Sums wait for their loads. Copies do not, but only so many loads are in flight; windows and
  // means are unrolled.
  const bool sums = plan.kernel == Kernel::kConvConstants || plan.kernel == Kernel::kConvGeneric ||
                    plan.kernel == Kernel::kConvGrouped || plan.kernel == Kernel::kWinograd ||
                    plan.kernel == Kernel::kFullyConnected;
  constexpr double kLoadsInFlight = 4;
  if (sums) s.serial = s.count;
  if (plan.kernel == Kernel::kConcat) s.serial = std::max(1.0, s.count / kLoadsInFlight);
  return s;
}

double alu_efficiency(const KernelPlan& plan, const GpuCoefficients& k) {
  return plan.kernel == Kernel::kWinograd ? k.winograd_efficiency : k.alu_efficiency;
}

// Bytes between the GPU and memory, each tensor once; Winograd writes and reads its transforms.
double memory_bytes(const KernelPlan& plan, const Workload& w, double element) {
  double elements = w.input_elements + w.weight_elements + w.output_elements;
  if (plan.kernel == Kernel::kWinograd) {
    const auto tiles = static_cast<double>(plan.grid[0] * plan.block[0]);
    elements += 2 * 36 * tiles * static_cast<double>(w.in_channels + w.out_channels);
    elements += w.weight_elements * (36.0 / 9 - 1);
  }
  return elements * element;
}

double norm(double a, double b, double p) {
  return std::pow(std::pow(a, p) + std::pow(b, p), 1 / p);
}

}  // namespace

SliceTime gpu_slice_time(const PlatformModel& model, const Workload& work, const Load& load) {
  const Gpu& gpu = model.gpu;
  const GpuCoefficients& k = model.gpu_coefficients;
  const bool f16 = model.runtime.gpu_f16;
  const double element = f16 ? 2 : 4;
  const KernelPlan plan = plan_kernel(gpu, work, f16);
  const Steps steps = steps_of(plan, work, element);

  const double wave = f16 ? gpu.wave_f16 : gpu.wave_f32;
  const double peak = f16 ? gpu.f16_flops_per_cycle : gpu.f32_flops_per_cycle;
  const double alu = steps.flops * wave / (peak * alu_efficiency(plan, k) * model.runtime.gpu_rate);
  const double loads = wave * (steps.activation_bytes + steps.weight_bytes / k.weight_reuse) /
                       (k.load_bytes_per_cycle * model.runtime.gpu_rate);
  // The unit that gets most groups decides.
  const double per_unit =
      ceil_div(static_cast<double>(plan.groups), static_cast<double>(gpu.compute_units)) *
      (static_cast<double>(plan.waves) / static_cast<double>(plan.groups));
  const double throughput = per_unit * steps.count * norm(alu, loads, 2);
  const double latency =
      std::max(1.0, per_unit / k.resident_waves) * steps.serial * k.latency_cycles;
  const double cycles_per_us = gpu.mhz * load.gpu_clock;

  SliceTime result;
  result.dram_bytes = memory_bytes(plan, work, element);
  const double left_gbps =
      std::max(0.3 * gpu.bandwidth_gbps, gpu.bandwidth_gbps - load.memory_gbps);
  result.compute_us = norm(throughput, latency, 4) / cycles_per_us;
  result.memory_us = result.dram_bytes / (left_gbps * k.bandwidth_efficiency * 1e3);
  result.overhead_us =
      k.kernel_us * static_cast<double>(plan.dispatches) + model.runtime.gpu_operator_us;
  result.us = result.overhead_us + norm(result.compute_us, result.memory_us, 4);

  ImplementationInfo& info = result.implementation;
  info.name = std::string("sim_gpu_") + to_string(plan.kernel);
  double computed = steps.count * steps.flops;
  for (int d = 0; d < 3; ++d) {
    info.local_size[d] = plan.group[d];
    info.global_size[d] = (plan.grid[d] + plan.group[d] - 1) / plan.group[d] * plan.group[d];
    computed *= static_cast<double>(info.global_size[d]);
  }
  info.work_groups = plan.groups;
  info.dispatches = plan.dispatches;
  info.computed_flops = computed;
  return result;
}

}  // namespace tandem::sim
