// Models on the lanes of this machine: on one of them, and cut across two.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "graph/tensor.h"
#include "tandem/platform.h"
#include "tandem/session.h"
#include "tests/conformance/node_tests.h"

namespace tandem::testing {

// Drivers start once per process.
StatusOr<std::shared_ptr<Platform>> platform();

// The first CPU lane and the OpenCL lane.
struct Pair {
  int cpu = kNone;
  int gpu = kNone;
};
Pair lanes_of(const Platform& platform);

SessionOptions base_options();

// "" if the outputs are right, else what is wrong.
using Compare = std::function<std::string(const std::vector<HostTensor>& outputs)>;

// Runs the model twice. "" if all is well, else what is wrong.
std::string run_on_lanes(const LoadedTest& loaded, const SessionOptions& options,
                         const Compare& compare);
// The same with every operator cut, once per choice of axes. `cut`: whether any could be.
std::string run_split(const LoadedTest& loaded, SyncMechanism sync, const Compare& compare,
                      bool* cut);
// What the double-precision reference makes of it.
std::vector<HostTensor> reference_outputs(const LoadedTest& loaded);

}  // namespace tandem::testing
