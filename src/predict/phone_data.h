// Measurements of operators on phones' GPUs: from anyone's CSV, by a schema that maps its columns.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "predict/csv.h"
#include "tandem/status.h"

namespace tandem::predict {

// The operator families that predictors are trained for, each apart.
enum class Family { kConvolution, kGroupedConvolution, kDepthwise, kLinear, kPool, kMean, kConcat };
inline constexpr int kFamilies = 7;
std::string to_string(Family family);

// How a kernel goes about it. Schemas map the names in kernel columns to these.
enum class KernelKind {
  kDirect,              // a convolution as it is written down
  kWinograd,            // F(4x4, 3x3): tiles of 6x6, transformed
  kGrouped,             // a grouped convolution
  kDepthwise,           // a depthwise convolution
  kDepthwisePointwise,  // a depthwise convolution and the 1x1 convolution after it, in one
  kFullyConnected,      // a product of a matrix and a vector
  kMean,                // a reduction of the image
  kPool,                // a window's maximum or mean
  kConcat,              // a copy
  kOther,               // a name that the schema does not map
};
inline constexpr int kKernelKinds = 10;
std::string to_string(KernelKind kind);

// Whose block sizes a GPU's kernels take.
enum class GpuMaker { kAdreno, kMali, kPowerVr, kApple, kOther };

struct PhoneDevice {
  std::string name;
  std::string time_column = {};
  std::string kernel_column = {};      // empty: not known
  std::string end_to_end_column = {};  // empty: not known
  GpuMaker maker = GpuMaker::kOther;
  int compute_units = 1;
};

// What means what in a CSV. docs/phones.md describes its JSON.
struct PhoneSchema {
  std::string name;
  std::string group_column;                      // networks: never on both sides of a split
  std::string operator_column;                   // operators' names
  std::string arguments_column;                  // holds {'name': 'value', ...}; empty: columns do
  std::map<std::string, std::string> arguments;  // ours to theirs
  std::map<std::string, Family> operators;       // theirs to ours
  std::map<std::string, KernelKind> kernels;     // theirs, without numbers, to ours
  std::string fused_separator;                   // between a kernel's name and what it fuses
  std::string end_to_end_group_column;
  double us_per_unit = 1;
  double bytes_per_element = 2;
  std::vector<PhoneDevice> devices;

  // The schema built in under `name_or_path`, or the file of that name.
  static StatusOr<PhoneSchema> load(const std::string& name_or_path);
  static StatusOr<PhoneSchema> parse(const std::string& text);
};

// The JSON of the built-in schema "phones", to start another from.
std::string_view builtin_phone_schema();

// One operator of one network; spatial sizes are those of square images.
struct PhoneOperator {
  std::string network;
  std::string name;   // as the CSV says it
  std::string shape;  // name and arguments: equal operators have equal ones
  Family family = Family::kConvolution;
  int code = 0;  // of the name, in the schema's order
  double input_size = 1;
  double input_channels = 1;
  double output_size = 1;
  double output_channels = 1;
  double kernel_size = 1;  // of concatenations: inputs
  double stride = 1;
  double groups = 1;
  bool follows_depthwise = false;  // the row before is a depthwise convolution that fits
  bool feeds_pointwise = false;    // the row after is a 1x1 convolution that fits
};

// Other operators that a kernel also computes.
struct Fused {
  int adds = 0;   // and other operators that read a second tensor
  int gates = 0;  // activations
};

struct PhoneMeasurement {
  double us = 0;
  KernelKind kernel = KernelKind::kOther;
  Fused fused;
  std::string kernel_name;  // without numbers
};

struct PhoneData {
  std::vector<PhoneOperator> operators;
  std::vector<std::vector<PhoneMeasurement>> measured;  // by device and operator
};

// Refuses missing columns, operators that the schema does not map, and numbers that are none,
// naming line and column.
StatusOr<PhoneData> read_phone_data(const CsvTable& table, const PhoneSchema& schema);

// Microseconds of whole networks, by device (in the schema's order) and network.
using EndToEnd = std::vector<std::map<std::string, double>>;
StatusOr<EndToEnd> read_end_to_end(const CsvTable& table, const PhoneSchema& schema);

}  // namespace tandem::predict
