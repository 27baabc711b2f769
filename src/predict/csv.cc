#include "predict/csv.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

#include "support/read_file.h"

namespace tandem::predict {
namespace {

// Walks through the text, a record at a time.
class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {
    if (text_.starts_with("\xEF\xBB\xBF")) at_ = 3;  // a byte order mark
  }

  size_t line() const { return line_; }

  // Nothing at the end of the text.
  StatusOr<std::optional<std::vector<std::string>>> next() {
    while (at_ < text_.size() && (text_[at_] == '\n' || text_[at_] == '\r')) take();
    if (at_ == text_.size()) return std::optional<std::vector<std::string>>();
    std::vector<std::string> record;
    begin_ = line_;
    bool more = true;
    while (more) {
      TANDEM_ASSIGN_OR_RETURN(std::string field, next_field());
      record.push_back(std::move(field));
      more = at_ < text_.size() && text_[at_] == ',';
      if (more) ++at_;
    }
    return std::optional(std::move(record));
  }

  size_t begin() const { return begin_; }

 private:
  char take() {
    if (text_[at_] == '\n') ++line_;
    return text_[at_++];
  }

  StatusOr<std::string> next_field() {
    std::string field;
    if (at_ < text_.size() && text_[at_] == '"') {
      ++at_;
      while (true) {
        if (at_ == text_.size()) {
          return corrupt(fmt::format("the quote of the record in line {} is never closed", begin_));
        }
        const char c = take();
        if (c != '"') {
          field += c;
        } else if (at_ < text_.size() && text_[at_] == '"') {
          field += take();
        } else {
          break;
        }
      }
    }
    while (at_ < text_.size() && text_[at_] != ',' && text_[at_] != '\n' && text_[at_] != '\r') {
      field += text_[at_++];
    }
    return field;
  }

  std::string_view text_;
  size_t at_ = 0;
  size_t line_ = 1;
  size_t begin_ = 1;
};

}  // namespace

StatusOr<double> parse_number(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) {
    return invalid_argument(fmt::format("'{}' is no finite number", text));
  }
  return value;
}

StatusOr<CsvTable> CsvTable::parse(std::string_view text) {
  Reader reader(text);
  CsvTable table;
  TANDEM_ASSIGN_OR_RETURN(auto header, reader.next());
  if (!header) return corrupt("it is empty: a header with the names of the columns is missing");
  table.columns_ = std::move(*header);
  while (true) {
    TANDEM_ASSIGN_OR_RETURN(auto record, reader.next());
    if (!record) break;
    if (record->size() != table.columns_.size()) {
      return corrupt(fmt::format("line {} has {} fields where the header has {}", reader.begin(),
                                 record->size(), table.columns_.size()));
    }
    table.records_.push_back(std::move(*record));
    table.lines_.push_back(reader.begin());
  }
  if (table.records_.empty()) return corrupt("it has a header and no rows");
  return table;
}

StatusOr<CsvTable> CsvTable::read(const std::string& path) {
  TANDEM_ASSIGN_OR_RETURN(const std::string content, read_file(path));
  StatusOr<CsvTable> table = parse(content);
  return table.ok() ? std::move(table) : table.status().with_context(path);
}

StatusOr<size_t> CsvTable::column(const std::string& name) const {
  const auto found = std::find(columns_.begin(), columns_.end(), name);
  if (found == columns_.end()) {
    return invalid_argument(
        fmt::format("there is no column '{}'; there are: {}", name, fmt::join(columns_, ", ")));
  }
  return static_cast<size_t>(found - columns_.begin());
}

StatusOr<double> CsvTable::number(size_t row, size_t column) const {
  const StatusOr<double> value = parse_number(at(row, column));
  if (value.ok()) return value;
  return value.status().with_context(
      fmt::format("line {}, column '{}'", line(row), columns_[column]));
}

}  // namespace tandem::predict
