// What a platform file says of a system on a chip, and what was fitted: the simulator's parameters.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace tandem::sim {

// A group of equal cores.
struct Cluster {
  std::string name;  // "prime", "big", "little"
  std::string core;  // "cortex-a76": what coefficients are fitted for
  int cores = 1;
  double mhz = 0;
  double flops_per_cycle = 0;  // f32, per core; a fused multiply-add counts two
  double f16_rate = 1;         // times flops_per_cycle: 2 where arithmetic in f16 is native
  int tile_rows = 1;           // of the register tile of matrix products
  int tile_columns = 1;
  double l1_kib = 0;              // data, per core
  double l2_kib = 0;              // per core
  double active_mw = 0;           // per busy core at mhz
  double idle_mw = 0;             // of the cluster
  std::vector<double> steps_mhz;  // ascending, the last one is mhz
};

// Which rules choose its kernels and cut its work: see gpu_kernels.h.
enum class GpuFamily : uint8_t { kAdreno, kMali, kPowerVr, kIntel };

struct Gpu {
  std::string name;  // "Adreno 640"
  GpuFamily family = GpuFamily::kAdreno;
  std::string generation;  // "adreno-6xx": what coefficients are fitted for
  int compute_units = 0;
  double mhz = 0;
  double f32_flops_per_cycle = 0;  // per compute unit
  double f16_flops_per_cycle = 0;
  int wave_f32 = 0;  // work-items that run in lockstep
  int wave_f16 = 0;
  int max_work_group = 0;
  double registers_kib = 0;  // per compute unit
  double l2_kib = 0;
  double bandwidth_gbps = 0;  // that kernels can reach
  double launch_us = 0;       // of a kernel in an empty queue, until it runs
  double active_mw = 0;
  double idle_mw = 0;
  std::vector<double> steps_mhz;
};

// What OpenCL shares between host and device.
enum class SharedMemory : uint8_t { kNone, kCoarse, kFine, kFineAtomics };

// Microseconds that a wait on the other side's word costs.
struct CrossingCost {
  double cpu_to_gpu = 0;
  double gpu_to_cpu = 0;
};

struct SyncCosts {
  SharedMemory shared_memory = SharedMemory::kNone;
  CrossingCost svm;  // zero where the driver has no atomics
  CrossingCost event;
  CrossingCost finish;
  double map_us = 0;            // a map or unmap of shared memory
  double enqueue_us = 0;        // of the host, per kernel
  double core_crossing_us = 0;  // between CPU clusters
};

// Milliseconds for each GPU program when a session is created.
struct StartCosts {
  double compile_ms = 0;
  double load_ms = 0;  // of one that was compiled before
};

struct Thermal {
  double ambient_c = 0;
  double limit_c = 0;             // clocks step down above it
  double resistance_c_per_w = 0;  // chip to ambient
  double capacity_j_per_c = 0;
};

// A number of cores of one cluster.
struct CoreGroup {
  int cluster = 0;
  int cores = 0;

  bool operator==(const CoreGroup&) const = default;
};

// Cores, fastest cluster first, or the GPU.
struct LaneSpec {
  std::string name;
  std::vector<CoreGroup> cores;  // empty: the GPU
};

// Fitted to published measurements; see platforms/calibration.json.
struct CoreCoefficients {
  double gemm_efficiency = 0;       // of flops_per_cycle, in matrix products and convolutions
  double depthwise_efficiency = 0;  // the same, in depthwise convolutions
  double generic_efficiency = 0;    // the same, in kernels without a tuned implementation
  double stream_gbps = 0;           // of memory that one core streams
};

struct GpuCoefficients {
  double alu_efficiency = 0;        // of peak arithmetic, in convolutions
  double winograd_efficiency = 0;   // the same, in Winograd's products
  double load_bytes_per_cycle = 0;  // that a compute unit loads from caches
  double weight_reuse = 0;          // work-items that share one load of weights
  double latency_cycles = 0;        // of a load that nothing hides
  double resident_waves = 0;        // per compute unit that hide each other's latency
  double bandwidth_efficiency = 0;  // of bandwidth_gbps, in kernels that stream
  double kernel_us = 0;             // of a kernel that does next to nothing
  double operator_us = 0;           // between kernels of a network
  double inference_us = 0;          // once per inference
};

// Of a library relative to the one that cores and GPUs were fitted with.
struct RuntimeCoefficients {
  double cpu_rate = 1;  // of matrix products
  double cpu_depthwise = 1;
  double cpu_generic = 1;          // of grouped convolutions
  bool cpu_f16 = false;            // arithmetic and storage
  double cpu_winograd = 1;         // how much faster 3x3 convolutions of stride 1 are for Winograd
  double cpu_operator_cycles = 0;  // per operator, on one core
  double cpu_fork_us = 0;          // per operator that is spread over threads
  double static_share = 0;         // of the work that is not rebalanced between threads
  double gpu_rate = 1;
  double gpu_operator_us = 0;  // added to each
  bool gpu_f16 = true;
};

struct Noise {
  double cpu_cv = 0;     // coefficient of variation of one run of a long slice
  double little_cv = 0;  // the same on the slowest cluster, if there are several
  double gpu_cv = 0;
  double jitter_us = 0;  // added standard deviation, of short ones
};

struct PlatformModel {
  std::string name;
  std::string description;
  std::vector<Cluster> clusters;  // fastest first
  double l3_kib = 0;              // shared by all cores; 0: none
  double slc_kib = 0;             // shared with the GPU; 0: none
  double dram_gbps = 0;           // that all cores can reach together
  bool has_gpu = false;
  Gpu gpu;
  SyncCosts sync;
  StartCosts start;
  Thermal thermal;
  Noise noise;
  std::vector<LaneSpec> lanes;

  std::vector<CoreCoefficients> core_coefficients;  // by cluster
  GpuCoefficients gpu_coefficients;
  RuntimeCoefficients runtime;
  std::string runtime_name;
  std::string digest;       // of everything that this struct was made from
  double interference = 0;  // each further busy core slows every core by that much
};

}  // namespace tandem::sim
