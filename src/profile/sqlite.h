// SQLite's C interface, as values and errors.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "tandem/status.h"

struct sqlite3;
struct sqlite3_stmt;

namespace tandem::sqlite {

// The error that SQLite's result code stands for, if any: `what` was being done, or the file.
Status check(int code, sqlite3* database, const std::string& what);
// Puts the file's name before an error that does not have it.
Status explain(const Status& status, const std::string& path);

class Statement {
 public:
  explicit Statement(sqlite3* database, sqlite3_stmt* statement)
      : database_(database), statement_(statement) {}

  // Of the parameters in order, again from the first after finish().
  void bind(int64_t value);
  void bind(double value);
  void bind(const std::string& value);
  // True: there is a row, which the functions below read, columns from 0.
  StatusOr<bool> step();
  // Runs what is left of it, and makes it ready for another time.
  Status finish();

  int64_t integer(int column) const;
  double real(int column) const;
  std::string text(int column) const;

 private:
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const;
  };

  sqlite3* database_;
  std::unique_ptr<sqlite3_stmt, Finalize> statement_;
  int parameter_ = 0;  // of the last bind()
};
StatusOr<Statement> prepare(sqlite3* database, const std::string& sql);

// Statements without parameters.
Status run(sqlite3* database, const std::string& sql);
StatusOr<int64_t> query_integer(sqlite3* database, const std::string& sql);
StatusOr<std::string> query_text(sqlite3* database, const std::string& sql);

// Undoes what was done since begin() unless commit() succeeds.
class Transaction {
 public:
  explicit Transaction(sqlite3* database) : database_(database) {}
  ~Transaction();
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;

  Status begin();
  Status commit();

 private:
  sqlite3* database_;
  bool open_ = false;
};

}  // namespace tandem::sqlite
