// A model's inputs as given on the command line, and its outputs as files.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tandem/model.h"
#include "tandem/status.h"

namespace tandem::cli {

// `given`: "NAME=FILE.npy" or "NAME=random"; without NAME where the model has one input. Inputs
// that are not mentioned are random.
StatusOr<std::vector<HostTensor>> make_inputs(const Model& model,
                                              const std::vector<std::string>& given, uint64_t seed);

// One FOLDER/NAME.npy per output; characters that file names should not have become '_'.
Status write_outputs(const Model& model, const std::vector<HostTensor>& outputs,
                     const std::string& folder);

}  // namespace tandem::cli
