#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <nlohmann/json.hpp>

#include "predict/phone_data.h"
#include "support/json_error.h"
#include "support/read_file.h"

namespace tandem::predict {
namespace {

using nlohmann::json;

constexpr std::array<const char*, kFamilies> kFamilyNames = {
    "convolution", "grouped_convolution", "depthwise", "linear", "pool", "mean", "concat"};
constexpr std::array<const char*, kKernelKinds> kKernelNames = {
    "direct",          "winograd", "grouped", "depthwise", "depthwise_pointwise",
    "fully_connected", "mean",     "pool",    "concat",    "other"};
constexpr std::array<const char*, 5> kMakerNames = {"adreno", "mali", "powervr", "apple", "other"};
constexpr std::array<const char*, 7> kArgumentNames = {
    "input_size",  "input_channels", "output_size", "output_channels",
    "kernel_size", "stride",         "groups"};

// GPU cores and execution units: platforms/*.json and Apple's tables of its chips.
constexpr std::string_view kBuiltin = R"({
  "name": "phones",
  "group_column": "model",
  "operator_column": "operation",
  "arguments_column": "feature",
  "arguments": {
    "input_size": "Input_shape", "input_channels": "Input_channel",
    "output_size": "Output_shape", "output_channels": "Filter",
    "kernel_size": "Kernel", "stride": "Stride", "groups": "Group"
  },
  "operators": {
    "CONV_2D": "convolution", "CONV_2D_GROUP": "grouped_convolution",
    "DEPTHWISE_CONV_2D": "depthwise", "FULLY_CONNECTED": "linear", "MAX_POOL_2D": "pool",
    "AVERAGE_POOL_2D": "pool", "MEAN": "mean", "CONCATENATION": "concat"
  },
  "kernels": {
    "convolution_2d": "direct", "convolution_winograd_4x4_6x6": "winograd",
    "convolution_2d_grouped": "grouped", "depthwise_convolution": "depthwise",
    "depthwise_conv_plus_1x1_conv": "depthwise_pointwise", "fully_connected": "fully_connected",
    "mean": "mean", "pooling_2d": "pool", "concat": "concat"
  },
  "fused_separator": "_linked_:_",
  "end_to_end_group_column": "model",
  "us_per_unit": 1,
  "bytes_per_element": 2,
  "devices": [
    {"name": "pixel4", "gpu": "adreno", "compute_units": 2, "time_column": "pixel4|gpu|float",
     "kernel_column": "pixel4|gpu|kernel", "end_to_end_column": "pixel4|gpu|float|mean"},
    {"name": "s10", "gpu": "mali", "compute_units": 12, "time_column": "s10|gpu|float",
     "kernel_column": "s10|gpu|kernel", "end_to_end_column": "s10|gpu|float|mean"},
    {"name": "a03s", "gpu": "powervr", "compute_units": 1, "time_column": "a03s|gpu|float",
     "kernel_column": "a03s|gpu|kernel", "end_to_end_column": "a03s|gpu|float|mean"},
    {"name": "iphone7", "gpu": "apple", "compute_units": 6, "time_column": "iphone7|gpu|float",
     "kernel_column": "iphone7|gpu|kernel", "end_to_end_column": "iphone7|gpu|float|mean"},
    {"name": "iphonexs", "gpu": "apple", "compute_units": 4, "time_column": "iphonexs|gpu|float",
     "kernel_column": "iphonexs|gpu|kernel", "end_to_end_column": "iphonexs|gpu|float|mean"}
  ]
})";

template <size_t N>
int index_in(const std::array<const char*, N>& names, const std::string& name, const char* what) {
  for (size_t i = 0; i < N; ++i) {
    if (name == names[i]) return static_cast<int>(i);
  }
  throw std::invalid_argument(
      fmt::format("'{}' is no {}: there are {}", name, what, fmt::join(names, ", ")));
}

double positive(const json& value, const char* key, double otherwise) {
  const double number = value.value(key, otherwise);
  if (!(number > 0)) throw std::invalid_argument(fmt::format("{} must be positive", key));
  return number;
}

PhoneDevice device_from(const json& value) {
  PhoneDevice device;
  value.at("name").get_to(device.name);
  value.at("time_column").get_to(device.time_column);
  device.kernel_column = value.value("kernel_column", "");
  device.end_to_end_column = value.value("end_to_end_column", "");
  device.maker = static_cast<GpuMaker>(index_in(kMakerNames, value.value("gpu", "other"), "gpu"));
  device.compute_units = static_cast<int>(positive(value, "compute_units", 1));
  return device;
}

PhoneSchema schema_from(const json& document) {
  PhoneSchema schema;
  document.at("name").get_to(schema.name);
  document.at("group_column").get_to(schema.group_column);
  document.at("operator_column").get_to(schema.operator_column);
  schema.arguments_column = document.value("arguments_column", "");
  document.at("arguments").get_to(schema.arguments);
  for (const auto& [ours, theirs] : schema.arguments) index_in(kArgumentNames, ours, "argument");
  for (const auto& [theirs, ours] : document.at("operators").items()) {
    schema.operators[theirs] =
        static_cast<Family>(index_in(kFamilyNames, ours.get<std::string>(), "operator family"));
  }
  if (document.contains("kernels")) {
    for (const auto& [theirs, ours] : document.at("kernels").items()) {
      schema.kernels[theirs] =
          static_cast<KernelKind>(index_in(kKernelNames, ours.get<std::string>(), "kernel"));
    }
  }
  schema.fused_separator = document.value("fused_separator", "");
  schema.end_to_end_group_column = document.value("end_to_end_group_column", schema.group_column);
  schema.us_per_unit = positive(document, "us_per_unit", 1);
  schema.bytes_per_element = positive(document, "bytes_per_element", 4);
  for (const json& device : document.at("devices")) schema.devices.push_back(device_from(device));
  if (schema.devices.empty()) throw std::invalid_argument("it names no devices");
  return schema;
}

}  // namespace

std::string to_string(Family family) { return kFamilyNames[static_cast<int>(family)]; }
std::string to_string(KernelKind kind) { return kKernelNames[static_cast<int>(kind)]; }
std::string_view builtin_phone_schema() { return kBuiltin; }

StatusOr<PhoneSchema> PhoneSchema::parse(const std::string& text) {
  try {
    return schema_from(json::parse(text));
  } catch (const std::exception& e) {
    return invalid_argument(fmt::format("the schema cannot be used: {}", json_problem(e.what())));
  }
}

StatusOr<PhoneSchema> PhoneSchema::load(const std::string& name_or_path) {
  if (name_or_path == "phones") return parse(std::string(kBuiltin));
  const StatusOr<std::string> content = read_file(name_or_path);
  if (!content.ok()) {
    return Status(content.status().code(),
                  fmt::format("there is no schema '{}' ({}): give 'phones', or a JSON file such as "
                              "'tandem train --print-schema' prints",
                              name_or_path, content.status().message()));
  }
  StatusOr<PhoneSchema> schema = parse(*content);
  return schema.ok() ? std::move(schema) : schema.status().with_context(name_or_path);
}

}  // namespace tandem::predict
