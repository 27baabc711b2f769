// The commands under `tandem bench` that have files of their own.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "cli/engine_process.h"
#include "cli/flags.h"
#include "tandem/session.h"
#include "tandem/status.h"

namespace tandem::cli {

struct BenchOpFlags {
  PlatformFlags platform;
  std::vector<std::string> files;
  bool implementations = false;
  int samples = 9;
  double least_gflop = 0;
  bool json = false;
};

Status bench_op(const BenchOpFlags& flags);

struct BenchSetFlags {
  PlatformFlags platform;
  std::string set;     // of bench/shapes/set_NAME.csv
  std::string filter;  // names of operators contain it
  std::vector<SyncMechanism> sync{SyncMechanism::kAuto};
  CostFlags costs;
  int samples = 15;
  bool json = false;
};

Status bench_set(const BenchSetFlags& flags);
// Names of sets.
std::vector<std::string> set_names();

struct BenchModelFlags {
  PlatformFlags platform;
  CostFlags costs;
  SearchFlags search;
  LoadFlags load;
  std::vector<std::string> models;
  bool all = false;
  std::vector<std::string> strategies;  // empty: those that the platform has lanes for
  int warmup = 2;
  int runs = 10;
  int64_t deadline_ms = 10'000;
  std::array<EngineFlags, kEngines.size()> engines;
  // Those of the above that `tandem run` has, too, as they were given.
  std::vector<std::string> shared_arguments;
  bool json = false;
};

Status bench_model(const BenchModelFlags& flags);

struct BenchScheduleFlags {
  int graphs = 200;    // generated ones: half random costs, half random networks
  bool stages = true;  // of the zoo's networks
  uint64_t seed = 1;
  bool adversaries = true;           // that were found before: bench/problems of the source tree
  std::vector<std::string> folders;  // with more problems
  bool offline = true;
  std::string python;     // with the package ortools; empty: the one of the source tree
  double time_limit = 3;  // of CP-SAT, in seconds a problem
  int workers = 2;
  double exact_ms = 500;
  std::string export_folder;  // write the problems there, and do nothing else
  bool adversary = false;     // look for the worst problems instead
  double minutes = 1;
  bool json = false;
};

Status bench_schedule(const BenchScheduleFlags& flags);

struct BenchPapersFlags {
  std::vector<std::string> platforms{"pixel4", "pixel5", "moto_edge_2022", "oneplus11"};
  std::vector<std::string> networks{"vgg16",        "resnet18",      "inception_v3",
                                    "mobilenet_v2", "squeezenet1_1", "vit_b_32"};
  int samples = 400;           // layers of each family to learn from
  int layers = 0;              // of each family to divide; 0: all of bench/shapes/set_*.csv
  int network_samples = 1500;  // of operators, for the predictors that networks are planned by
  double offline_seconds = 3;  // of CP-SAT for each network and platform; 0: none
  std::string python;          // with the package ortools; empty: the one of the source tree
  uint64_t seed = 1;
  bool json = false;
};

Status bench_papers(const BenchPapersFlags& flags);

}  // namespace tandem::cli
