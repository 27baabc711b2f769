// NumPy's .npy files: how tensors come in and go out on the command line.
#pragma once

#include <string>

#include "tandem/status.h"
#include "tandem/tensor.h"

namespace tandem {

// Reads a little-endian f32 or int64 array in C order, of format version 1, 2 or 3. Anything else
// is refused with what the file holds and how to convert it.
StatusOr<HostTensor> read_npy(const std::string& path);

// Writes format version 1.0. The file appears under its name only when it is complete.
Status write_npy(const std::string& path, const HostTensor& tensor);

}  // namespace tandem
