#include "lane/sim/gpu_kernels.h"

#include <algorithm>
#include <array>

namespace tandem::sim {
namespace {

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
int64_t slices(int64_t channels) { return ceil_div(channels, 4); }

bool recent_adreno(const Gpu& gpu) {
  return gpu.family == GpuFamily::kAdreno;  // all modelled ones are of the 600s and later
}

bool constants_fit(const Gpu& gpu, const Workload& work) {
  if (gpu.family != GpuFamily::kAdreno || work.groups != 1) return false;
  constexpr int64_t kMostBytes = 3584;
  constexpr int64_t kMostSlices = 8;
  constexpr int64_t kBytes = 2;
  const int64_t weights = work.kernel_h * work.kernel_w * slices(work.in_channels) * 4 *
                          slices(work.out_channels) * 4 * kBytes;
  return slices(work.out_channels) <= kMostSlices && weights <= kMostBytes;
}

// Of Adreno: by how many waves each compute unit would get with a block of one.
void set_adreno_block(const Gpu& gpu, const Workload& work, bool f16, KernelPlan* plan) {
  const double tasks =
      static_cast<double>(work.out_w * work.out_h * work.batch * slices(work.out_channels));
  const double waves = tasks / gpu.compute_units / (f16 ? gpu.wave_f16 : gpu.wave_f32);
  if (waves > 6) plan->block[0] = 2;
  if (waves > 12) plan->block[3] = 2;
  if (waves > 24) plan->block[1] = 2;
}

// Of Mali (Bifrost gen 3, Valhall): by how many work-items each core would get.
void set_mali_block(const Gpu& gpu, const Workload& work, bool f16, KernelPlan* plan) {
  const double tasks =
      static_cast<double>(work.out_w * work.out_h * work.batch * slices(work.out_channels)) /
      gpu.compute_units;
  int size = 1;
  if (tasks > 256) size = 2;
  if (tasks > (f16 ? 1536 : 3072)) size = 4;
  if (f16 && tasks > 4096) size = 8;
  const bool small_kernel = work.kernel_h * work.kernel_w == 1;
  if (!small_kernel && gpu.generation == "mali-bifrost") size = std::min(size, 4);
  if (size >= 2) plan->block[0] = 2;
  if (size >= 4) plan->block[3] = 2;
  if (size >= 8) plan->block[1] = 2;
}

void set_other_block(const Gpu& gpu, const Workload& work, KernelPlan* plan) {
  const int64_t out = slices(work.out_channels);
  if (gpu.family == GpuFamily::kIntel) {
    plan->block[3] = out % 4 == 0 || out > 8 ? 4 : std::min<int64_t>(2, out);
    return;
  }
  plan->block[3] = out % 4 == 0 || out > 8 ? 4 : std::min<int64_t>(2, out);  // PowerVR
}

int64_t largest_divisor(int64_t number, int64_t most) {
  for (int64_t d = std::min(number, most); d > 1; --d) {
    if (number % d == 0) return d;
  }
  return 1;
}

// "Fast" tuning: as deep as divides the grid, then wide, then high.
void pick_group(const Gpu& gpu, KernelPlan* plan) {
  const int64_t deepest = recent_adreno(gpu) ? 64 : 16;
  const int64_t z = largest_divisor(plan->grid[2], deepest);
  const int64_t most = std::max<int64_t>(1, std::min<int64_t>(256, gpu.max_work_group) / z);
  const int64_t x = std::min(plan->grid[0], most);
  int64_t y = std::min(most / x, plan->grid[1]);
  if (y == plan->grid[1] && y % 2 == 0) y /= 2;
  plan->group[0] = x;
  plan->group[1] = std::max<int64_t>(1, y);
  plan->group[2] = z;
}

void count_groups(const Gpu& gpu, bool f16, KernelPlan* plan) {
  plan->groups = 1;
  int64_t items = 1;
  for (int d = 0; d < 3; ++d) {
    plan->groups *= ceil_div(plan->grid[d], plan->group[d]);
    items *= plan->group[d];
  }
  plan->waves = plan->groups * ceil_div(items, f16 ? gpu.wave_f16 : gpu.wave_f32);
}

void set_grid(const Workload& work, KernelPlan* plan) {
  plan->grid[0] = ceil_div(work.out_w * work.batch, plan->block[0]);
  plan->grid[1] = ceil_div(work.out_h, plan->block[1]);
  plan->grid[2] = ceil_div(slices(work.out_channels), plan->block[3]);
}

Kernel kernel_of(const Gpu& gpu, const Workload& work) {
  switch (work.family) {
    case Family::kConv:
      if (work.groups > 1) return Kernel::kConvGrouped;
      if (work.out_h * work.out_w * work.batch == 1 && work.in_h * work.in_w == 1) {
        return Kernel::kFullyConnected;
      }
      if (constants_fit(gpu, work)) return Kernel::kConvConstants;
      return winograd_recommended(gpu, work) ? Kernel::kWinograd : Kernel::kConvGeneric;
    case Family::kDepthwise:
      return Kernel::kDepthwise;
    case Family::kLinear:
      return work.rows() == 1 ? Kernel::kFullyConnected : Kernel::kConvGeneric;
    case Family::kMatMul:
      return Kernel::kConvGeneric;
    case Family::kPool:
      return Kernel::kPool;
    case Family::kReduce:
      return Kernel::kMean;
    case Family::kMove:
      return Kernel::kConcat;
    default:
      return Kernel::kElementwise;
  }
}

// Rows of a matrix product lie along the width.
Workload as_image(const Workload& work) {
  Workload image = work;
  if (work.family == Family::kLinear || work.family == Family::kMatMul) {
    image.out_w = work.out_h * work.out_w;
    image.out_h = 1;
  }
  return image;
}

}  // namespace

const char* to_string(Kernel kernel) {
  constexpr std::array<const char*, 10> kNames = {
      "conv_constants",  "conv_generic", "conv_grouped", "winograd_4x4_6x6", "depthwise",
      "fully_connected", "pool",         "mean",         "concat",           "elementwise"};
  return kNames[static_cast<size_t>(kernel)];
}

bool winograd_recommended(const Gpu& gpu, const Workload& work) {
  if (work.family != Family::kConv || work.groups != 1) return false;
  if (work.kernel_h != 3 || work.kernel_w != 3 || work.stride != 1) return false;
  const bool adreno = gpu.family == GpuFamily::kAdreno;
  const int64_t depth = adreno ? 32 : 16;
  const int64_t tiles = ceil_div(work.out_w, 4) * ceil_div(work.out_h, 4);
  return slices(work.in_channels) >= depth && slices(work.out_channels) >= depth &&
         tiles >= (adreno ? 128 : 32);
}

KernelPlan plan_kernel(const Gpu& gpu, const Workload& given, bool f16) {
  const Workload work = as_image(given);
  KernelPlan plan;
  plan.kernel = kernel_of(gpu, given);
  switch (plan.kernel) {
    case Kernel::kConvConstants:
      plan.grid[0] = work.out_w * work.batch;
      plan.grid[1] = work.out_h;
      break;
    case Kernel::kConvGeneric:
    case Kernel::kConvGrouped:
      if (gpu.family == GpuFamily::kAdreno) {
        set_adreno_block(gpu, work, f16, &plan);
      } else if (gpu.family == GpuFamily::kMali) {
        set_mali_block(gpu, work, f16, &plan);
      } else {
        set_other_block(gpu, work, &plan);
      }
      set_grid(work, &plan);
      break;
    case Kernel::kWinograd: {
      // The products: a row of pixels for each tile, 36 of them in depth.
      const int64_t tiles = ceil_div(work.out_w, 4) * ceil_div(work.out_h, 4) * work.batch;
      plan.block[0] = 4;
      plan.block[3] = 2;
      plan.grid[0] = ceil_div(tiles, plan.block[0]);
      plan.grid[1] = 36;
      plan.grid[2] = ceil_div(slices(work.out_channels), plan.block[3]);
      plan.dispatches = 3;
      break;
    }
    case Kernel::kFullyConnected: {
      plan.grid[0] = slices(work.out_channels);
      plan.grid[1] = 4;
      plan.group[0] = gpu.family == GpuFamily::kAdreno ? 32
                      : gpu.family == GpuFamily::kMali ? 16
                                                       : 8;
      plan.group[1] = 4;
      count_groups(gpu, f16, &plan);
      return plan;
    }
    case Kernel::kConcat:
      set_grid(work, &plan);
      plan.grid[2] = 1;  // an item copies all slices of a pixel
      break;
    default:
      set_grid(work, &plan);
      break;
  }
  pick_group(gpu, &plan);
  count_groups(gpu, f16, &plan);
  return plan;
}

}  // namespace tandem::sim
