#include "import/onnx/inputs.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "import/onnx/proto_tensor.h"

namespace tandem {
namespace {

// Width and height in examples of what to type.
constexpr int64_t kExampleExtent = 224;

using Symbols = std::map<std::string, int64_t>;
using Dimension = onnx::TensorShapeProto::Dimension;

// nullopt: symbolic or unknown. Exporters also write -1 and 0 for unknown ones.
std::optional<int64_t> fixed_extent(const Dimension& dimension) {
  if (!dimension.has_dim_value() || dimension.dim_value() <= 0) return std::nullopt;
  return dimension.dim_value();
}

std::string join(const std::vector<std::string>& parts, const char* separator) {
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "" : separator) + part;
  return text;
}

// "[N, 3, ?, ?]".
std::string describe(const onnx::TensorShapeProto& shape) {
  std::vector<std::string> parts;
  for (const Dimension& dimension : shape.dim()) {
    if (const auto extent = fixed_extent(dimension)) {
      parts.push_back(std::to_string(*extent));
    } else {
      parts.push_back(dimension.has_dim_param() && !dimension.dim_param().empty()
                          ? dimension.dim_param()
                          : "?");
    }
  }
  return "[" + join(parts, ", ") + "]";
}

// Takes over extents that the caller gave, and learns symbols from them.
Status apply_given(const onnx::ValueInfoProto& input, const Dims& given, Symbols& symbols) {
  if (!input.type().tensor_type().has_shape()) return {};
  const onnx::TensorShapeProto& shape = input.type().tensor_type().shape();
  const auto mismatch = [&] {
    return invalid_argument("input '" + input.name() + "' is " + describe(shape) + ", not " +
                            to_string(given));
  };
  if (static_cast<size_t>(shape.dim_size()) != given.size()) return mismatch();
  for (int d = 0; d < shape.dim_size(); ++d) {
    const auto extent = fixed_extent(shape.dim(d));
    if (extent && *extent != given[d]) return mismatch();
    const std::string& symbol = shape.dim(d).dim_param();
    if (extent || symbol.empty() || symbol == "?") continue;
    const auto [known, added] = symbols.emplace(symbol, given[d]);
    if (!added && known->second != given[d]) {
      return invalid_argument("the dimension '" + symbol + "' of input '" + input.name() +
                              "' is both " + std::to_string(known->second) + " and " +
                              std::to_string(given[d]));
    }
  }
  return {};
}

// The extents, with `open` set if one is not known; these are then examples.
Dims extents_of(const onnx::TensorShapeProto& shape, const Symbols& symbols, bool& open) {
  Dims dims;
  for (int d = 0; d < shape.dim_size(); ++d) {
    const Dimension& dimension = shape.dim(d);
    const auto known = symbols.find(dimension.dim_param());
    if (const auto extent = fixed_extent(dimension)) {
      dims.push_back(*extent);
    } else if (dimension.has_dim_param() && known != symbols.end()) {
      dims.push_back(known->second);
    } else if (d == 0) {
      dims.push_back(1);
    } else {
      open = true;
      dims.push_back(kExampleExtent);
    }
  }
  return dims;
}

std::string flag_for(const std::string& input, const Dims& dims) {
  std::vector<std::string> extents;
  extents.reserve(dims.size());
  for (int64_t extent : dims) extents.push_back(std::to_string(extent));
  return "--shape " + input + "=" + join(extents, ",");
}

Status check_given(const std::vector<const onnx::ValueInfoProto*>& inputs,
                   const std::map<std::string, Dims>& shapes) {
  for (const auto& [name, dims] : shapes) {
    const auto is_named = [&name = name](const auto* input) { return input->name() == name; };
    if (std::none_of(inputs.begin(), inputs.end(), is_named)) {
      std::vector<std::string> names;
      for (const auto* input : inputs) names.push_back("'" + input->name() + "'");
      return not_found("there is no input '" + name + "'; the model has " + join(names, ", "));
    }
    const std::string what = "the shape given for input '" + name + "'";
    if (std::any_of(dims.begin(), dims.end(), [](int64_t extent) { return extent < 0; })) {
      return invalid_argument(what + " has a negative extent: " + to_string(dims));
    }
    TANDEM_RETURN_IF_ERROR(check_dims(dims).with_context(what));
    if (element_count(dims) == 0) return unsupported(what + " has no elements: " + to_string(dims));
  }
  return {};
}

Status check_input(const onnx::ValueInfoProto& input) {
  if (!input.has_type()) return corrupt("input '" + input.name() + "' has no type");
  if (!input.type().has_tensor_type()) {
    return unsupported("input '" + input.name() + "' is not a tensor");
  }
  for (const Dimension& dimension : input.type().tensor_type().shape().dim()) {
    if (dimension.has_dim_value() && dimension.dim_value() < -1) {
      return corrupt("input '" + input.name() +
                     "' has a negative extent: " + std::to_string(dimension.dim_value()));
    }
  }
  return {};
}

}  // namespace

StatusOr<std::vector<InputSpec>> resolve_inputs(
    const std::vector<const onnx::ValueInfoProto*>& inputs,
    const std::map<std::string, Dims>& shapes) {
  TANDEM_RETURN_IF_ERROR(check_given(inputs, shapes));
  Symbols symbols;
  for (const auto* input : inputs) {
    TANDEM_RETURN_IF_ERROR(check_input(*input));
    const auto given = shapes.find(input->name());
    if (given != shapes.end()) {
      TANDEM_RETURN_IF_ERROR(apply_given(*input, given->second, symbols));
    }
  }
  std::vector<InputSpec> specs;
  std::vector<std::string> open_inputs;
  std::vector<std::string> flags;
  for (const auto* input : inputs) {
    const onnx::TypeProto::Tensor& type = input->type().tensor_type();
    InputSpec spec{input->name(), type.elem_type(), {}};
    const auto given = shapes.find(input->name());
    if (given != shapes.end()) {
      spec.dims = given->second;
    } else {
      bool open = !type.has_shape();
      spec.dims = extents_of(type.shape(), symbols, open);
      if (open) {
        open_inputs.push_back("'" + input->name() + "' " +
                              (type.has_shape() ? describe(type.shape()) : "of unknown rank"));
        flags.push_back(flag_for(input->name(), spec.dims));
      }
    }
    TANDEM_RETURN_IF_ERROR(check_dims(spec.dims).with_context("input '" + input->name() + "'"));
    specs.push_back(std::move(spec));
  }
  if (!open_inputs.empty()) {
    return invalid_argument("the extents of " + join(open_inputs, ", ") +
                            " are not fixed; say what they are, for example " + join(flags, " "));
  }
  return specs;
}

}  // namespace tandem
