#include "predict/phone_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <optional>

namespace tandem::predict {
namespace {

// More is a mistake, and would not fit into the arithmetic.
constexpr double kLargestArgument = 1e6;

// {'a': '1', 'b': 2} as Python prints it, or the same in JSON; values keep no quotes.
StatusOr<std::map<std::string, std::string>> parse_dictionary(const std::string& text) {
  std::map<std::string, std::string> pairs;
  const size_t open = text.find('{');
  const size_t close = text.rfind('}');
  if (open == std::string::npos || close == std::string::npos || close < open) {
    return invalid_argument(fmt::format("'{}' is no dictionary such as {{'name': 'value'}}", text));
  }
  const auto stripped = [](std::string_view part) {
    const auto outer = [](char c) { return c == ' ' || c == '\'' || c == '"'; };
    while (!part.empty() && outer(part.front())) part.remove_prefix(1);
    while (!part.empty() && outer(part.back())) part.remove_suffix(1);
    return std::string(part);
  };
  std::string_view rest = std::string_view(text).substr(open + 1, close - open - 1);
  while (!rest.empty()) {
    const size_t comma = std::min(rest.find(','), rest.size());
    const std::string_view pair = rest.substr(0, comma);
    const size_t colon = pair.find(':');
    if (colon == std::string_view::npos) {
      return invalid_argument(fmt::format("'{}' in '{}' is no pair", pair, text));
    }
    pairs[stripped(pair.substr(0, colon))] = stripped(pair.substr(colon + 1));
    rest.remove_prefix(std::min(comma + 1, rest.size()));
  }
  return pairs;
}

// Where one argument of a row comes from.
class Arguments {
 public:
  static StatusOr<Arguments> create(const CsvTable& table, const PhoneSchema& schema) {
    Arguments arguments(table, schema);
    if (schema.arguments_column.empty()) {
      for (const auto& [ours, theirs] : schema.arguments) {
        TANDEM_ASSIGN_OR_RETURN(arguments.columns_[ours], table.column(theirs));
      }
    } else {
      TANDEM_ASSIGN_OR_RETURN(arguments.dictionary_, table.column(schema.arguments_column));
    }
    return arguments;
  }

  // Before the arguments of a row are asked for.
  Status open(size_t row) {
    row_ = row;
    if (schema_.arguments_column.empty()) return {};
    StatusOr<std::map<std::string, std::string>> pairs =
        parse_dictionary(table_.at(row, dictionary_));
    if (!pairs.ok()) {
      return pairs.status().with_context(fmt::format("line {}", table_.line(row)));
    }
    pairs_ = std::move(*pairs);
    return {};
  }

  // Nothing where the row has none ("-" or empty).
  StatusOr<std::optional<double>> get(const std::string& name) const {
    const std::string* text = nullptr;
    if (schema_.arguments_column.empty()) {
      const auto found = columns_.find(name);
      if (found != columns_.end()) text = &table_.at(row_, found->second);
    } else if (const auto theirs = schema_.arguments.find(name);
               theirs != schema_.arguments.end()) {
      const auto found = pairs_.find(theirs->second);
      if (found != pairs_.end()) text = &found->second;
    }
    if (text == nullptr || text->empty() || *text == "-") return std::optional<double>();
    const StatusOr<double> value = parse_number(*text);
    if (!value.ok() || *value < 0 || *value > kLargestArgument) {
      return invalid_argument(fmt::format("line {}: {} is '{}': it must be a number from 0 to 1e6",
                                          table_.line(row_), name, *text));
    }
    return std::optional(*value);
  }

 private:
  Arguments(const CsvTable& table, const PhoneSchema& schema) : table_(table), schema_(schema) {}

  const CsvTable& table_;
  const PhoneSchema& schema_;
  std::map<std::string, size_t> columns_;
  size_t dictionary_ = 0;
  size_t row_ = 0;
  std::map<std::string, std::string> pairs_;
};

// What the families mean by the arguments that they share.
void apply_conventions(PhoneOperator* op) {
  switch (op->family) {
    case Family::kDepthwise:
    case Family::kPool:
      op->output_channels = op->input_channels;
      break;
    case Family::kMean:
      op->output_channels = op->input_channels;
      op->output_size = 1;
      break;
    default:
      break;
  }
}

StatusOr<PhoneOperator> read_operator(const CsvTable& table, const PhoneSchema& schema, size_t row,
                                      size_t group, size_t name, Arguments* arguments) {
  PhoneOperator op;
  op.network = table.at(row, group);
  op.name = table.at(row, name);
  const auto family = schema.operators.find(op.name);
  if (family == schema.operators.end()) {
    return invalid_argument(
        fmt::format("line {}: the schema maps no operator '{}'", table.line(row), op.name));
  }
  op.family = family->second;
  op.code = static_cast<int>(std::distance(schema.operators.begin(), family));
  TANDEM_RETURN_IF_ERROR(arguments->open(row));
  op.shape = op.name;
  const std::pair<const char*, double*> wanted[] = {{"input_size", &op.input_size},
                                                    {"input_channels", &op.input_channels},
                                                    {"output_size", &op.output_size},
                                                    {"output_channels", &op.output_channels},
                                                    {"kernel_size", &op.kernel_size},
                                                    {"stride", &op.stride},
                                                    {"groups", &op.groups}};
  for (const auto& [argument, value] : wanted) {
    TANDEM_ASSIGN_OR_RETURN(const std::optional<double> given, arguments->get(argument));
    if (given) *value = *given;
    op.shape += fmt::format("/{}", *value);
  }
  apply_conventions(&op);
  for (const auto& [argument, value] : {wanted[0], wanted[1], wanted[2], wanted[3], wanted[6]}) {
    if (*value < 1) {
      return invalid_argument(fmt::format("line {}: {} is {}: it must be 1 or more",
                                          table.line(row), argument, *value));
    }
  }
  return op;
}

// "convolution_2d_17" is "convolution_2d": the last number counts the network's operators.
std::string without_number(std::string name) {
  while (true) {
    const size_t underscore = name.rfind('_');
    if (underscore == std::string::npos || underscore + 1 == name.size()) return name;
    const bool digits = std::all_of(name.begin() + static_cast<std::ptrdiff_t>(underscore) + 1,
                                    name.end(), [](unsigned char c) { return std::isdigit(c); });
    if (!digits) return name;
    name.resize(underscore);
  }
}

void read_kernel(const std::string& text, const PhoneSchema& schema, PhoneMeasurement* measured) {
  std::vector<std::string> parts;
  std::string_view rest = text;
  const std::string& separator = schema.fused_separator;
  while (true) {
    const size_t end = separator.empty() ? std::string_view::npos : rest.find(separator);
    parts.push_back(without_number(std::string(rest.substr(0, end))));
    if (end == std::string_view::npos) break;
    rest.remove_prefix(end + separator.size());
  }
  const auto kind = schema.kernels.find(parts.front());
  if (kind != schema.kernels.end()) measured->kernel = kind->second;
  measured->kernel_name = parts.front();
  for (size_t i = 1; i < parts.size(); ++i) {
    const bool reads_another = parts[i] == "add" || parts[i] == "mul" || parts[i] == "sub";
    ++(reads_another ? measured->fused.adds : measured->fused.gates);
    measured->kernel_name += "+" + parts[i];
  }
}

void connect(std::vector<PhoneOperator>* operators) {
  for (size_t i = 1; i < operators->size(); ++i) {
    PhoneOperator& before = (*operators)[i - 1];
    PhoneOperator& op = (*operators)[i];
    const bool fits = before.network == op.network && before.family == Family::kDepthwise &&
                      op.family == Family::kConvolution && op.kernel_size == 1 &&
                      before.output_channels == op.input_channels &&
                      before.output_size == op.input_size;
    op.follows_depthwise = fits;
    before.feeds_pointwise = fits;
  }
}

StatusOr<std::vector<PhoneMeasurement>> read_device(const CsvTable& table,
                                                    const PhoneSchema& schema,
                                                    const PhoneDevice& device) {
  TANDEM_ASSIGN_OR_RETURN(const size_t time, table.column(device.time_column));
  size_t kernel = 0;
  if (!device.kernel_column.empty()) {
    TANDEM_ASSIGN_OR_RETURN(kernel, table.column(device.kernel_column));
  }
  std::vector<PhoneMeasurement> measurements(table.rows());
  for (size_t row = 0; row < table.rows(); ++row) {
    TANDEM_ASSIGN_OR_RETURN(const double value, table.number(row, time));
    if (!(value > 0)) {
      return invalid_argument(fmt::format("line {}, column '{}': a time of {}: it must be positive",
                                          table.line(row), device.time_column, value));
    }
    measurements[row].us = value * schema.us_per_unit;
    if (!device.kernel_column.empty()) {
      read_kernel(table.at(row, kernel), schema, &measurements[row]);
    }
  }
  return measurements;
}

}  // namespace

StatusOr<PhoneData> read_phone_data(const CsvTable& table, const PhoneSchema& schema) {
  TANDEM_ASSIGN_OR_RETURN(const size_t group, table.column(schema.group_column));
  TANDEM_ASSIGN_OR_RETURN(const size_t name, table.column(schema.operator_column));
  TANDEM_ASSIGN_OR_RETURN(Arguments arguments, Arguments::create(table, schema));
  PhoneData data;
  for (size_t row = 0; row < table.rows(); ++row) {
    TANDEM_ASSIGN_OR_RETURN(PhoneOperator op,
                            read_operator(table, schema, row, group, name, &arguments));
    data.operators.push_back(std::move(op));
  }
  connect(&data.operators);
  for (const PhoneDevice& device : schema.devices) {
    TANDEM_ASSIGN_OR_RETURN(std::vector<PhoneMeasurement> measured,
                            read_device(table, schema, device));
    data.measured.push_back(std::move(measured));
  }
  return data;
}

StatusOr<EndToEnd> read_end_to_end(const CsvTable& table, const PhoneSchema& schema) {
  TANDEM_ASSIGN_OR_RETURN(const size_t group, table.column(schema.end_to_end_group_column));
  EndToEnd times(schema.devices.size());
  for (size_t i = 0; i < schema.devices.size(); ++i) {
    if (schema.devices[i].end_to_end_column.empty()) continue;
    TANDEM_ASSIGN_OR_RETURN(const size_t column, table.column(schema.devices[i].end_to_end_column));
    for (size_t row = 0; row < table.rows(); ++row) {
      TANDEM_ASSIGN_OR_RETURN(const double value, table.number(row, column));
      if (!(value > 0)) {
        return invalid_argument(
            fmt::format("line {}, column '{}': a time of {}: it must be "
                        "positive",
                        table.line(row), table.columns()[column], value));
      }
      times[i][table.at(row, group)] = value * schema.us_per_unit;
    }
  }
  return times;
}

}  // namespace tandem::predict
