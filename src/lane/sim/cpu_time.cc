// CPU lanes. A slice is a number of register tiles, which threads share; each core computes at its
// own rate, and reads its operands from whichever cache holds them.
#include <algorithm>
#include <cmath>

#include "lane/sim/slice_time.h"

namespace tandem::sim {
namespace {

// Bandwidth of caches relative to what a core streams from memory.
constexpr double kL2Speed = 6;
constexpr double kL3Speed = 2.5;
// Of products over a short depth: the tile's accumulators are loaded and stored once for so many
// steps.
constexpr double kTileOverheadSteps = 8;
// Arithmetic of operators that are not products, relative to the rate of those.
constexpr double kSimpleRate = 0.25;
// Equivalent operations per element of exponentials and divisions.
constexpr double kNormalizeOperations = 24;

struct Task {
  double flops = 0;       // with the padding of tiles
  double efficiency = 0;  // of the peak
  double tiles = 1;       // that threads share
  bool parallel = true;
  double weight_bytes = 0;  // read once for each row of tiles
  double weight_passes = 1;
  double activation_bytes = 0;
};

struct Context {
  const PlatformModel& model;
  const std::vector<CoreGroup>& cores;
  const Load& load;
  double bytes_per_element;
};

// The register tile of the fastest cluster stands for all: libraries pack weights once.
Task product_task(const Context& c, const Workload& w, const CoreCoefficients& k) {
  const Cluster& cluster = c.model.clusters[c.cores[0].cluster];
  const RuntimeCoefficients& runtime = c.model.runtime;
  Task task;
  const double rows = w.rows() / (w.family == Family::kMatMul ? static_cast<double>(w.batch) : 1);
  const double columns = static_cast<double>(w.out_channels / w.groups);
  const double row_tiles = std::ceil(rows / cluster.tile_rows);
  const double column_tiles = std::ceil(columns / cluster.tile_columns);
  const double repeats = static_cast<double>(w.groups) *
                         (w.family == Family::kMatMul ? static_cast<double>(w.batch) : 1);
  // A single row has a tile of its own in every library.
  const double padded_rows = rows == 1 ? 1 : row_tiles * cluster.tile_rows;
  task.flops = 2 * repeats * padded_rows * column_tiles * cluster.tile_columns * w.depth();
  task.tiles = repeats * row_tiles * column_tiles;
  task.efficiency =
      k.gemm_efficiency * runtime.cpu_rate * w.depth() / (w.depth() + kTileOverheadSteps);
  const bool three = w.family == Family::kConv && w.kernel_h == 3 && w.kernel_w == 3;
  if (three && w.stride == 1 && w.groups == 1 && w.in_channels >= 16 && w.out_channels >= 16) {
    task.efficiency *= runtime.cpu_winograd;
  }
  task.weight_bytes = w.weight_elements * c.bytes_per_element;
  task.weight_passes = row_tiles;
  task.activation_bytes = (w.input_elements + w.output_elements) * c.bytes_per_element;
  if (w.family == Family::kMatMul) {
    task.weight_bytes = w.depth() * columns * repeats * c.bytes_per_element;
  }
  if (w.groups > 1) {
    // Libraries without grouped kernels compute them on one thread.
    task.efficiency = k.generic_efficiency * runtime.cpu_generic;
    task.flops = w.flops;
    task.parallel = false;
    task.weight_passes = 1;
  }
  return task;
}

Task simple_task(const Context& c, const Workload& w, const CoreCoefficients& k) {
  Task task;
  task.activation_bytes = (w.input_elements + w.output_elements) * c.bytes_per_element;
  task.weight_bytes = w.weight_elements * c.bytes_per_element;
  task.efficiency = k.gemm_efficiency * kSimpleRate;
  task.flops = w.flops;
  task.tiles = std::max(1.0, w.rows());
  if (w.family == Family::kDepthwise) {
    task.efficiency = k.depthwise_efficiency * c.model.runtime.cpu_depthwise;
    const double vector = 4;
    const auto channels = static_cast<double>(w.out_channels);
    task.flops = w.flops * std::ceil(channels / vector) * vector / channels;
  } else if (w.family == Family::kNormalize) {
    task.flops = kNormalizeOperations * w.output_elements;
  } else if (w.family == Family::kElementwise) {
    task.flops = std::max(w.flops, w.output_elements);
  }
  return task;
}

// GB/s at which one core reads a working set of that size.
double read_gbps(const Context& c, int cluster, double bytes) {
  const PlatformModel& m = c.model;
  const double stream = m.core_coefficients[cluster].stream_gbps;
  if (bytes <= m.clusters[cluster].l2_kib * 1024 * 0.75) return stream * kL2Speed;
  if (bytes <= (m.l3_kib + m.slc_kib) * 1024 * 0.75) return stream * kL3Speed;
  return stream;
}

bool fits_caches(const PlatformModel& m, const Cluster& cluster, double bytes) {
  return bytes <= std::max(cluster.l2_kib, m.l3_kib + m.slc_kib) * 1024 * 0.75;
}

// Seconds that one core takes for a share of the task, arithmetic and memory apart.
struct CoreTime {
  double compute = 0;
  double memory = 0;
  // They overlap, but not where both are long.
  double total() const { return std::pow(std::pow(compute, 4) + std::pow(memory, 4), 0.25); }
};

double f16_factor(const Context& c, const Cluster& cluster) {
  return c.model.runtime.cpu_f16 ? cluster.f16_rate : 1;
}

CoreTime whole_on_core(const Context& c, const Task& task, int cluster, int busy) {
  const Cluster& core = c.model.clusters[cluster];
  const double slowed = 1 + c.model.interference * (busy - 1);
  const double rate = core.flops_per_cycle * f16_factor(c, core) * core.mhz * 1e6 *
                      c.load.cpu_clock * task.efficiency / slowed;
  CoreTime time;
  time.compute = task.flops / rate;
  const double activations = c.load.hot
                                 ? read_gbps(c, cluster, task.activation_bytes + task.weight_bytes)
                                 : read_gbps(c, cluster, 2 * task.activation_bytes);
  // The first pass over weights comes from memory, later ones from where they fit.
  const double again = task.weight_bytes * std::max(0.0, task.weight_passes - 1);
  const double from_memory = c.load.hot && fits_caches(c.model, core, task.weight_bytes)
                                 ? read_gbps(c, cluster, task.weight_bytes)
                                 : c.model.core_coefficients[cluster].stream_gbps;
  time.memory = task.activation_bytes / (activations * 1e9) +
                task.weight_bytes / (from_memory * 1e9) +
                again / (read_gbps(c, cluster, task.weight_bytes) * 1e9);
  time.memory *= slowed;
  return time;
}

double dram_bytes(const Context& c, const Task& task) {
  const Cluster& cluster = c.model.clusters[c.cores[0].cluster];
  double bytes = task.weight_bytes;
  if (!fits_caches(c.model, cluster, task.weight_bytes)) bytes *= task.weight_passes;
  if (!fits_caches(c.model, cluster, 2 * task.activation_bytes)) bytes += task.activation_bytes;
  if (c.load.hot && fits_caches(c.model, cluster, task.weight_bytes + task.activation_bytes)) {
    bytes = 0;
  }
  return bytes;
}

// Seconds with the task's tiles spread over the cores: part of them in equal shares, so that the
// slowest core decides; the rest as cores come free, up to one tile.
double spread(const std::vector<double>& whole, double tiles, double static_share) {
  const auto threads = static_cast<double>(whole.size());
  double rate = 0;
  double slowest = 0;
  for (double seconds : whole) {
    rate += 1 / seconds;
    slowest = std::max(slowest, seconds);
  }
  const double equal = std::ceil(tiles / threads) / tiles * slowest;
  const double balanced = 1 / rate + 0.5 * slowest / tiles * (threads - 1) / threads;
  return static_share * equal + (1 - static_share) * std::min(equal, balanced);
}

std::string implementation_name(const Workload& w, const Task& task, const RuntimeCoefficients& r) {
  if (w.family == Family::kConv && w.groups > 1) return "sim_cpu_grouped";
  const bool winograd = task.parallel && w.family == Family::kConv && w.kernel_h == 3 &&
                        w.kernel_w == 3 && w.stride == 1 && r.cpu_winograd > 1;
  if (winograd) return "sim_cpu_winograd";
  if (w.family == Family::kConv) {
    return w.kernel_h * w.kernel_w == 1 ? "sim_cpu_gemm" : "sim_cpu_igemm";
  }
  return std::string("sim_cpu_") + to_string(w.family);
}

}  // namespace

SliceTime cpu_slice_time(const PlatformModel& model, const std::vector<CoreGroup>& cores,
                         const Workload& work, const Load& load) {
  const bool product = work.family == Family::kConv || work.family == Family::kLinear ||
                       work.family == Family::kMatMul;
  const RuntimeCoefficients& runtime = model.runtime;
  const Context context{model, cores, load, runtime.cpu_f16 ? 2.0 : 4.0};
  const auto make_task = product ? product_task : simple_task;
  const Task lead = make_task(context, work, model.core_coefficients[cores[0].cluster]);

  const int available = core_count(cores);
  const int threads =
      lead.parallel ? std::max(1, std::min(available, static_cast<int>(std::min(1e6, lead.tiles))))
                    : 1;
  std::vector<double> whole;
  double compute_rate = 0;
  double memory_rate = 0;
  for (const CoreGroup& group : cores) {
    const Task task = make_task(context, work, model.core_coefficients[group.cluster]);
    for (int i = 0; i < group.cores && static_cast<int>(whole.size()) < threads; ++i) {
      const CoreTime time = whole_on_core(context, task, group.cluster, threads);
      whole.push_back(time.total());
      compute_rate += 1 / std::max(1e-12, time.compute);
      memory_rate += 1 / std::max(1e-12, time.memory);
    }
  }
  SliceTime result;
  result.dram_bytes = dram_bytes(context, lead);
  result.compute_us = 1e6 / compute_rate;
  const double left_gbps = std::max(0.3 * model.dram_gbps, model.dram_gbps - load.memory_gbps);
  const double bus_us = result.dram_bytes / (left_gbps * 1e3);
  result.memory_us = std::max(1e6 / memory_rate, bus_us);
  const Cluster& first = model.clusters[cores[0].cluster];
  result.overhead_us = runtime.cpu_operator_cycles / (first.mhz * load.cpu_clock) +
                       (threads > 1 ? runtime.cpu_fork_us : 0);
  const double busy_us = 1e6 * spread(whole, lead.tiles, runtime.static_share);
  result.us = result.overhead_us + std::max(busy_us, bus_us);

  ImplementationInfo& info = result.implementation;
  info.name = implementation_name(work, lead, runtime);
  info.local_size[0] = first.tile_columns;
  info.local_size[1] = first.tile_rows;
  info.work_groups = static_cast<int64_t>(lead.tiles);
  info.threads = threads;
  info.computed_flops = lead.flops;
  return result;
}

}  // namespace tandem::sim
