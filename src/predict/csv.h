// Tables in comma-separated text.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tandem/status.h"

namespace tandem::predict {

// As RFC 4180 has it: a header, and records of as many fields; fields may be quoted, and then hold
// commas, line breaks and doubled quotes.
class CsvTable {
 public:
  // Refuses an empty file, records of another length (naming the line) and an open quote.
  static StatusOr<CsvTable> parse(std::string_view text);
  // The same for a file; errors name it.
  static StatusOr<CsvTable> read(const std::string& path);

  size_t rows() const { return records_.size(); }
  const std::vector<std::string>& columns() const { return columns_; }
  // The column of that name; an error that lists those that there are.
  StatusOr<size_t> column(const std::string& name) const;
  const std::string& at(size_t row, size_t column) const { return records_[row][column]; }
  // The line of the file on which the row begins, from 1.
  size_t line(size_t row) const { return lines_[row]; }
  // The field as a number. Errors name line, column and text.
  StatusOr<double> number(size_t row, size_t column) const;

 private:
  std::vector<std::string> columns_;
  std::vector<std::vector<std::string>> records_;
  std::vector<size_t> lines_;
};

// All of `text` as a finite number, or an error.
StatusOr<double> parse_number(std::string_view text);

}  // namespace tandem::predict
