// Weights that lie in files beside the model: TensorProto's data_location EXTERNAL.
#pragma once

#include <onnx/onnx_pb.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "tandem/status.h"

namespace tandem {

// Reads no other files than regular ones inside the model's folder, whatever a model asks for.
class ExternalData {
 public:
  // `folder` is the model's. nullopt: the model came as bytes, so that there are no such files.
  explicit ExternalData(std::optional<std::string> folder);
  ~ExternalData();
  ExternalData(const ExternalData&) = delete;
  ExternalData& operator=(const ExternalData&) = delete;

  class File;
  // Where a tensor's bytes are.
  struct Range {
    const File* file = nullptr;
    int64_t offset = 0;
  };
  // Of a tensor that has `size` bytes. The whole range is in the file, and shares no bytes with
  // those of other tensors, unless it is the same range.
  StatusOr<Range> locate(const onnx::TensorProto& proto, int64_t size);
  // `count` bytes from `offset` bytes behind the start of the range, which they must not leave.
  static Status read(const Range& range, int64_t offset, std::byte* to, size_t count);

 private:
  StatusOr<File*> open(const std::string& location);

  std::optional<std::string> folder_;
  std::map<std::string, std::unique_ptr<File>> files_;  // by location
};

}  // namespace tandem
