// The zoo: well-known networks, and tiny ones for tests, built in memory as ONNX models.
//
// The graphs are what PyTorch's exporter writes for the published networks: same operators, same
// shapes, same parameter counts. The weights are random but deterministic: the same name and seed
// give the same bytes on every platform. They are scaled so that activations stay of order one
// through the whole depth, so that numerical errors are as visible as in a trained network.
#pragma once

#include <onnx/onnx_pb.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tandem/status.h"

namespace tandem::zoo {

// What is known about a network without generating its weights. Every network has one input.
struct Entry {
  std::string name;
  std::string description;
  std::string input_name;
  std::string input_type;  // "float32", or "int64" for token ids
  std::vector<int64_t> input_dims;
  int64_t parameters = 0;  // learnable ones: batch norm's running statistics are not counted
  double gflops = 0;       // two per multiply-accumulate of convolutions, Gemm and MatMul
};

// All networks: the published ones, then the tiny ones. Takes a few milliseconds.
std::vector<Entry> list();

// Builds the network `name`. An unknown name is kNotFound, with the known names in the message.
StatusOr<onnx::ModelProto> build(std::string_view name, uint64_t seed = 1);

}  // namespace tandem::zoo
