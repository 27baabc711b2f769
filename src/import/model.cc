#include "tandem/model.h"

#include <onnx/onnx_pb.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <optional>
#include <utility>

#include "graph/passes/layout.h"
#include "graph/passes/passes.h"
#include "import/onnx/importer.h"
#include "support/guarded.h"
#include "support/memory_left.h"
#include "support/stopwatch.h"
#include "zoo/zoo.h"

namespace tandem {
namespace {

constexpr std::string_view kZooPrefix = "zoo:";

// What protobuf can read.
constexpr int64_t kMaxBytes = std::numeric_limits<int>::max();

Status too_large(const std::string& label) {
  return unsupported(label +
                     ": is larger than the 2 GB that protobuf can read; store its weights beside it "
                     "(onnx.save_model(model, path, save_as_external_data=True))");
}

Status unreadable(const std::string& label) {
  return corrupt(label + ": is no ONNX model, or damaged");
}

StatusOr<onnx::ModelProto> read_file(const std::string& path) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) return not_found(path + " is a folder");
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  const std::streamoff size = file ? static_cast<std::streamoff>(file.tellg()) : -1;
  if (size < 0) return not_found("cannot open " + path + ": " + std::strerror(errno));
  if (size > kMaxBytes) return too_large(path);
  TANDEM_RETURN_IF_ERROR(check_memory(static_cast<uint64_t>(size), path + ": its weights take"));
  file.seekg(0);
  onnx::ModelProto proto;
  if (!proto.ParseFromIstream(&file)) return unreadable(path);
  return proto;
}

// `parsing` began before the file was read.
StatusOr<Model> build(onnx::ModelProto proto, const std::string& label,
                      std::optional<std::string> folder, const LoadOptions& options,
                      const Stopwatch& parsing) {
  LoadTimes times;
  times.parse_ms = parsing.milliseconds();
  const Stopwatch importing;
  TANDEM_ASSIGN_OR_RETURN(Graph graph,
                          import_onnx(std::move(proto), label, std::move(folder), options));
  times.import_ms = importing.milliseconds();
  const Stopwatch passes;
  if (options.optimize) {
    TANDEM_ASSIGN_OR_RETURN(graph, optimize(graph));
  }
  TANDEM_ASSIGN_OR_RETURN(graph, assign_layouts(graph));
  TANDEM_RETURN_IF_ERROR(graph.validate().with_context(label));
  times.pass_ms = passes.milliseconds();
  return Model(std::make_shared<const Graph>(std::move(graph)), times);
}

std::vector<TensorSpec> specs_of(const Graph& graph, const std::vector<TensorId>& tensors) {
  std::vector<TensorSpec> specs;
  for (TensorId id : tensors) {
    const Tensor& tensor = graph.tensor(id);
    specs.push_back({tensor.name, tensor.dims, tensor.type});
  }
  return specs;
}

template <typename Load>
StatusOr<Model> without_exceptions(const std::string& label, const Load& load) {
  bool returned = false;
  StatusOr<Model> model = guarded([&] {
    StatusOr<Model> result = load();
    returned = true;
    return result;
  });
  // Errors that are returned name the model themselves.
  return returned || model.ok() ? std::move(model) : model.status().with_context(label);
}

}  // namespace

StatusOr<Model> Model::load(const std::string& path, const LoadOptions& options) {
  return without_exceptions(path, [&]() -> StatusOr<Model> {
    const Stopwatch parsing;
    if (path.starts_with(kZooPrefix)) {
      TANDEM_ASSIGN_OR_RETURN(onnx::ModelProto proto,
                              zoo::build(std::string_view(path).substr(kZooPrefix.size())));
      return build(std::move(proto), path, std::nullopt, options, parsing);
    }
    TANDEM_ASSIGN_OR_RETURN(onnx::ModelProto proto, read_file(path));
    const std::string folder = std::filesystem::path(path).parent_path().string();
    return build(std::move(proto), path, folder, options, parsing);
  });
}

StatusOr<Model> Model::parse(std::string_view bytes, const std::string& label,
                             const LoadOptions& options) {
  if (bytes.size() > static_cast<size_t>(kMaxBytes)) {
    return too_large(label);
  }
  return without_exceptions(label, [&]() -> StatusOr<Model> {
    const Stopwatch parsing;
    onnx::ModelProto proto;
    if (!proto.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
      return unreadable(label);
    }
    return build(std::move(proto), label, std::nullopt, options, parsing);
  });
}

Model::Model(std::shared_ptr<const Graph> graph, const LoadTimes& times)
    : graph_(std::move(graph)),
      inputs_(specs_of(*graph_, graph_->inputs())),
      outputs_(specs_of(*graph_, graph_->outputs())),
      load_times_(times) {}

const std::string& Model::name() const { return graph_->name; }

}  // namespace tandem
