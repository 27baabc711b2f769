#include "cli/network_file.h"

#include "cli/progress.h"
#include "support/write_file.h"
#include "zoo/zoo.h"

namespace tandem::cli {

Status write_network(const std::string& name, uint64_t seed, const std::string& path) {
  const Progress progress("building " + name);
  TANDEM_ASSIGN_OR_RETURN(const onnx::ModelProto model, zoo::build(name, seed));
  std::string bytes;
  if (!model.SerializeToString(&bytes)) {
    return resource_exhausted(name + " does not fit into one ONNX file");
  }
  return write_file(path, bytes);
}

}  // namespace tandem::cli
