#include "cli/inputs.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <set>
#include <utility>

#include "cli/random_tensor.h"
#include "fmt/format.h"
#include "fmt/ranges.h"
#include "support/memory_left.h"
#include "support/npy.h"

namespace tandem::cli {
namespace {

// Where each of the model's inputs comes from, by name: a file, or "random".
StatusOr<std::map<std::string, std::string>> input_sources(const Model& model,
                                                           const std::vector<std::string>& given) {
  std::map<std::string, std::string> sources;
  for (const TensorSpec& spec : model.inputs()) sources[spec.name] = "random";
  std::set<std::string> seen;
  for (const std::string& text : given) {
    std::string name;
    std::string source = text;
    // The name is what stands before the '=', if an input is called that.
    const size_t equals = text.find('=');
    if (equals != std::string::npos) {
      name = text.substr(0, equals);
      source = text.substr(equals + 1);
    } else if (text == "random") {
      continue;
    } else if (model.inputs().size() == 1) {
      name = model.inputs().front().name;
    } else {
      return invalid_argument(
          fmt::format("--input {}: the model has {} inputs; say which with NAME={}", text,
                      sources.size(), text));
    }
    if (!sources.contains(name)) {
      std::vector<std::string> names;
      for (const TensorSpec& spec : model.inputs()) names.push_back(spec.name);
      return not_found(fmt::format("--input {}: no input is called '{}'; the model has: {}", text,
                                   name, fmt::join(names, ", ")));
    }
    if (source.empty()) {
      return invalid_argument(fmt::format("--input '{}' names no file", text));
    }
    if (!seen.insert(name).second) {
      return invalid_argument(fmt::format("--input is given twice for '{}'", name));
    }
    sources[name] = source;
  }
  return sources;
}

void warn_of_non_finite(const std::string& source, const HostTensor& tensor) {
  if (tensor.type != DataType::kFloat32) return;
  const auto* values = tensor.data<float>();
  const auto bad = std::count_if(values, values + tensor.size(),
                                 [](float value) { return !std::isfinite(value); });
  if (bad > 0) {
    fmt::print(stderr, "warning: {} holds {} values that are NaN or infinite\n", source, bad);
  }
}

// A tensor's name as a file name: other characters than these become '_'.
std::string file_name(const std::string& tensor) {
  std::string name = tensor;
  for (char& c : name) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '-' || c == '_' || c == '.';
    if (!plain) c = '_';
  }
  // "." and ".." are folders, and a leading dot hides a file.
  if (name.empty() || name.front() == '.') name.insert(0, "_");
  return name;
}

}  // namespace

StatusOr<std::vector<HostTensor>> make_inputs(const Model& model,
                                              const std::vector<std::string>& given,
                                              uint64_t seed) {
  TANDEM_ASSIGN_OR_RETURN(const auto sources, input_sources(model, given));
  uint64_t bytes = 0;
  for (const TensorSpec& spec : model.inputs()) {
    bytes += static_cast<uint64_t>(element_count(spec.dims)) * element_size(spec.type);
  }
  TANDEM_RETURN_IF_ERROR(check_memory(bytes, "the model's inputs take"));
  std::vector<HostTensor> inputs;
  for (const TensorSpec& spec : model.inputs()) {
    const std::string& source = sources.at(spec.name);
    if (source == "random") {
      inputs.push_back(random_tensor(spec.type, spec.dims, spec.name, 1, seed));
      continue;
    }
    TANDEM_ASSIGN_OR_RETURN(HostTensor tensor, read_npy(source));
    if (tensor.dims != spec.dims || tensor.type != spec.type) {
      return invalid_argument(fmt::format("{} is {} {}, but the model's input '{}' is {} {}",
                                          source, to_string(tensor.type), to_string(tensor.dims),
                                          spec.name, to_string(spec.type), to_string(spec.dims)));
    }
    warn_of_non_finite(source, tensor);
    inputs.push_back(std::move(tensor));
  }
  return inputs;
}

Status write_outputs(const Model& model, const std::vector<HostTensor>& outputs,
                     const std::string& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return failed_precondition(fmt::format("cannot make {}: {}", folder, error.message()));
  std::set<std::string> used;
  for (size_t i = 0; i < outputs.size(); ++i) {
    std::string name = file_name(model.outputs()[i].name);
    if (!used.insert(name).second) name = fmt::format("{}.{}", name, i);
    TANDEM_RETURN_IF_ERROR(write_npy(fmt::format("{}/{}.npy", folder, name), outputs[i]));
  }
  return {};
}

}  // namespace tandem::cli
