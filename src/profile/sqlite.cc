#include "profile/sqlite.h"

#include <fmt/format.h>
#include <sqlite3.h>

namespace tandem::sqlite {

Status check(int code, sqlite3* database, const std::string& what) {
  if (code == SQLITE_OK || code == SQLITE_ROW || code == SQLITE_DONE) return {};
  const char* reason = database ? sqlite3_errmsg(database) : sqlite3_errstr(code);
  switch (code & 0xff) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return failed_precondition(
          fmt::format("{}: another process keeps it locked. Try again when it has ended", what));
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return corrupt(
          fmt::format("{} is damaged ({}). Move it away, or give another file", what, reason));
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_CANTOPEN:
    case SQLITE_AUTH:
      return failed_precondition(
          fmt::format("{} cannot be opened or written to ({}). Give another file", what, reason));
    case SQLITE_FULL:
      return resource_exhausted(fmt::format("{}: the disk is full", what));
    case SQLITE_NOMEM:
      return resource_exhausted(fmt::format("{}: there is not enough memory", what));
    default:
      return internal_error(fmt::format("{}: SQLite says: {}", what, reason));
  }
}

Status explain(const Status& status, const std::string& path) {
  if (status.ok() || status.message().find(path) != std::string::npos) return status;
  return status.with_context(path);
}

void Statement::Finalize::operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }

void Statement::bind(int64_t value) { sqlite3_bind_int64(statement_.get(), ++parameter_, value); }
void Statement::bind(double value) { sqlite3_bind_double(statement_.get(), ++parameter_, value); }
void Statement::bind(const std::string& value) {
  sqlite3_bind_text(statement_.get(), ++parameter_, value.data(), static_cast<int>(value.size()),
                    SQLITE_TRANSIENT);
}

StatusOr<bool> Statement::step() {
  const int code = sqlite3_step(statement_.get());
  TANDEM_RETURN_IF_ERROR(check(code, database_, "the store"));
  return code == SQLITE_ROW;
}

Status Statement::finish() {
  bool more = true;
  while (more) {
    TANDEM_ASSIGN_OR_RETURN(more, step());
  }
  sqlite3_reset(statement_.get());
  parameter_ = 0;
  return {};
}

int64_t Statement::integer(int column) const {
  return sqlite3_column_int64(statement_.get(), column);
}
double Statement::real(int column) const { return sqlite3_column_double(statement_.get(), column); }
std::string Statement::text(int column) const {
  const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(statement_.get(), column));
  const int size = sqlite3_column_bytes(statement_.get(), column);
  return text ? std::string(text, static_cast<size_t>(size)) : std::string();
}

StatusOr<Statement> prepare(sqlite3* database, const std::string& sql) {
  sqlite3_stmt* statement = nullptr;
  const int code =
      sqlite3_prepare_v2(database, sql.c_str(), static_cast<int>(sql.size()), &statement, nullptr);
  Statement result(database, statement);
  TANDEM_RETURN_IF_ERROR(check(code, database, "the store"));
  return result;
}

Status run(sqlite3* database, const std::string& sql) {
  return check(sqlite3_exec(database, sql.c_str(), nullptr, nullptr, nullptr), database,
               "the store");
}

namespace {

// The statement, at its first row.
StatusOr<Statement> first_row(sqlite3* database, const std::string& sql) {
  TANDEM_ASSIGN_OR_RETURN(Statement statement, prepare(database, sql));
  TANDEM_ASSIGN_OR_RETURN(const bool row, statement.step());
  if (!row) return corrupt("the store is damaged: nothing answers " + sql);
  return statement;
}

}  // namespace

StatusOr<int64_t> query_integer(sqlite3* database, const std::string& sql) {
  TANDEM_ASSIGN_OR_RETURN(const Statement statement, first_row(database, sql));
  return statement.integer(0);
}

StatusOr<std::string> query_text(sqlite3* database, const std::string& sql) {
  TANDEM_ASSIGN_OR_RETURN(const Statement statement, first_row(database, sql));
  return statement.text(0);
}

Transaction::~Transaction() {
  if (open_) sqlite3_exec(database_, "ROLLBACK", nullptr, nullptr, nullptr);
}

Status Transaction::begin() {
  TANDEM_RETURN_IF_ERROR(run(database_, "BEGIN IMMEDIATE"));
  open_ = true;
  return {};
}

Status Transaction::commit() {
  TANDEM_RETURN_IF_ERROR(run(database_, "COMMIT"));
  open_ = false;
  return {};
}

}  // namespace tandem::sqlite
