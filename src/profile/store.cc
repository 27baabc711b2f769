#include "profile/store.h"

#include <fmt/format.h>
#include <sqlite3.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <tuple>
#include <utility>

#include "profile/sqlite.h"
#include "support/cache_folder.h"
#include "support/hash.h"
#include "support/statistics.h"
#include "tandem/version.h"

namespace tandem {
namespace {

// Raised whenever the tables or the meaning of a column change.
constexpr int kSchema = 1;
// Tells our files from other programs' databases: "TDMP".
constexpr int kApplication = 0x54444d50;
// How long another process may keep the file to itself.
constexpr int kBusyMs = 3000;

constexpr const char* kTables = R"(
CREATE TABLE meta(name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE engines(
  id INTEGER PRIMARY KEY, fingerprint TEXT UNIQUE NOT NULL, tool TEXT NOT NULL,
  lane_facts TEXT NOT NULL, last_used INTEGER NOT NULL);
CREATE TABLE measurements(
  id INTEGER PRIMARY KEY,
  engine INTEGER NOT NULL REFERENCES engines(id),
  key TEXT NOT NULL,
  family TEXT NOT NULL,
  operator TEXT NOT NULL,
  slice TEXT NOT NULL,
  networks TEXT NOT NULL,
  lane TEXT NOT NULL,
  threads INTEGER NOT NULL,
  implementation TEXT NOT NULL,
  load TEXT NOT NULL,
  repeated INTEGER NOT NULL,
  median_us REAL NOT NULL,
  low_us REAL NOT NULL,
  high_us REAL NOT NULL,
  samples INTEGER NOT NULL,
  attempts INTEGER NOT NULL,
  disturbed INTEGER NOT NULL,
  alone_us REAL NOT NULL,
  probe_gflops REAL NOT NULL,
  probe_gbps REAL NOT NULL,
  unix_time REAL NOT NULL,
  slice_case TEXT NOT NULL,
  UNIQUE(engine, key));
)";

constexpr const char* kColumns =
    "key, family, operator, slice, networks, lane, threads, implementation, load, repeated, "
    "median_us, low_us, high_us, samples, attempts, disturbed, alone_us, probe_gflops, "
    "probe_gbps, unix_time, slice_case";

void bind_row(sqlite::Statement& statement, int64_t engine, const Measurement& row) {
  statement.bind(engine);
  for (const std::string* text :
       {&row.key, &row.family, &row.op, &row.slice, &row.networks, &row.lane}) {
    statement.bind(*text);
  }
  statement.bind(int64_t{row.threads});
  statement.bind(row.implementation);
  statement.bind(row.load);
  statement.bind(int64_t{row.repeated});
  for (const double us : {row.median_us, row.low_us, row.high_us}) statement.bind(us);
  for (const int64_t count : {int64_t{row.samples}, int64_t{row.attempts}, int64_t{row.disturbed}})
    statement.bind(count);
  for (const double value : {row.alone_us, row.probe_gflops, row.probe_gbps, row.unix_time})
    statement.bind(value);
  statement.bind(row.slice_case);
}

Measurement read_row(const sqlite::Statement& statement) {
  Measurement row;
  int column = 0;
  for (std::string* text : {&row.key, &row.family, &row.op, &row.slice, &row.networks, &row.lane})
    *text = statement.text(column++);
  row.threads = static_cast<int>(statement.integer(column++));
  row.implementation = statement.text(column++);
  row.load = statement.text(column++);
  row.repeated = statement.integer(column++) != 0;
  for (double* us : {&row.median_us, &row.low_us, &row.high_us}) *us = statement.real(column++);
  row.samples = static_cast<int>(statement.integer(column++));
  row.attempts = static_cast<int>(statement.integer(column++));
  row.disturbed = statement.integer(column++) != 0;
  for (double* value : {&row.alone_us, &row.probe_gflops, &row.probe_gbps, &row.unix_time})
    *value = statement.real(column++);
  row.slice_case = statement.text(column++);
  return row;
}

// SQLite would take a file that is no database for damaged only when it first reads it, and an
// empty one for new.
Status check_header(const std::string& path) {
  constexpr std::string_view kMagic("SQLite format 3\0", 16);
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) return not_found(path + " is a folder");
  std::ifstream file(path, std::ios::binary);
  if (!file) return failed_precondition("cannot read " + path);
  std::string header(kMagic.size(), '\0');
  file.read(header.data(), static_cast<std::streamsize>(header.size()));
  if (file.gcount() == 0 || header == kMagic) return {};
  return corrupt(path + " is no measurement store: it is no SQLite database. Give another file");
}

// True of a new file, which no program has made its own.
StatusOr<bool> is_empty(sqlite3* database) {
  for (const char* question :
       {"SELECT count(*) FROM sqlite_master", "PRAGMA application_id", "PRAGMA user_version"}) {
    TANDEM_ASSIGN_OR_RETURN(const int64_t number, sqlite::query_integer(database, question));
    if (number != 0) return false;
  }
  return true;
}

// Of a file that has something in it.
Status check_kind(sqlite3* database, const std::string& path) {
  TANDEM_ASSIGN_OR_RETURN(const int64_t application,
                          sqlite::query_integer(database, "PRAGMA application_id"));
  if (application != kApplication) {
    return failed_precondition(path + " is a database of another program. Give another file");
  }
  TANDEM_ASSIGN_OR_RETURN(const int64_t schema,
                          sqlite::query_integer(database, "PRAGMA user_version"));
  if (schema != kSchema) {
    return failed_precondition(
        fmt::format("{} has schema {}, and this version of Tandem knows schema {} only. Move it "
                    "away, or give another file",
                    path, schema, kSchema));
  }
  TANDEM_ASSIGN_OR_RETURN(const std::string state,
                          sqlite::query_text(database, "PRAGMA quick_check(1)"));
  if (state != "ok") {
    return corrupt(
        fmt::format("{} is damaged ({}). Move it away, or give another file", path, state));
  }
  return {};
}

}  // namespace

void MeasurementStore::Close::operator()(sqlite3* database) const { sqlite3_close_v2(database); }
MeasurementStore::~MeasurementStore() = default;
MeasurementStore::MeasurementStore(MeasurementStore&&) noexcept = default;
MeasurementStore& MeasurementStore::operator=(MeasurementStore&&) noexcept = default;
MeasurementStore::MeasurementStore(std::string path, Database database)
    : path_(std::move(path)), database_(std::move(database)) {}

StatusOr<std::string> MeasurementStore::default_path(const std::string& platform) {
  const std::string folder = default_data_folder("profile");
  if (folder == "none") {
    return not_found("there is no home folder for measurements: give a file with --store");
  }
  return fmt::format("{}/{:016x}.sqlite", folder, hash_of(platform));
}

StatusOr<MeasurementStore> MeasurementStore::open(const std::string& path,
                                                  const StoreIdentity& identity) {
  std::error_code error;
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  if (!folder.empty()) std::filesystem::create_directories(folder, error);
  if (std::filesystem::exists(path, error)) TANDEM_RETURN_IF_ERROR(check_header(path));
  sqlite3* opened = nullptr;
  const int code =
      sqlite3_open_v2(path.c_str(), &opened, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, nullptr);
  MeasurementStore store(path, Database(opened));
  TANDEM_RETURN_IF_ERROR(sqlite::check(code, opened, path));
  sqlite3_busy_timeout(opened, kBusyMs);
  if (sqlite3_db_readonly(opened, "main") == 1) {
    return failed_precondition(path + " cannot be written to. Give another file");
  }
  const auto prepare = [&]() -> Status {
    TANDEM_ASSIGN_OR_RETURN(const bool empty, is_empty(opened));
    if (empty) TANDEM_RETURN_IF_ERROR(store.create_tables(identity));
    TANDEM_RETURN_IF_ERROR(check_kind(opened, path));
    TANDEM_RETURN_IF_ERROR(sqlite::run(opened, "PRAGMA journal_mode = WAL"));
    TANDEM_RETURN_IF_ERROR(sqlite::run(opened, "PRAGMA synchronous = NORMAL"));
    return store.identify(identity);
  };
  TANDEM_RETURN_IF_ERROR(sqlite::explain(prepare(), path));
  return store;
}

StatusOr<MeasurementStore> MeasurementStore::open_to_read(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::exists(path, error)) {
    return not_found("there are no measurements in " + path + ": 'tandem profile' makes them");
  }
  if (std::filesystem::is_regular_file(path, error) &&
      std::filesystem::file_size(path, error) == 0) {
    return not_found(path + " is empty: 'tandem profile' fills it with measurements");
  }
  TANDEM_RETURN_IF_ERROR(check_header(path));
  sqlite3* opened = nullptr;
  const int code = sqlite3_open_v2(path.c_str(), &opened, SQLITE_OPEN_READONLY, nullptr);
  MeasurementStore store(path, Database(opened));
  TANDEM_RETURN_IF_ERROR(sqlite::check(code, opened, path));
  sqlite3_busy_timeout(opened, kBusyMs);
  TANDEM_RETURN_IF_ERROR(sqlite::explain(check_kind(opened, path), path));
  TANDEM_RETURN_IF_ERROR(sqlite::explain(store.read_identity(), path));
  return store;
}

// In one transaction, so that no other process sees half of it; another one may have been faster.
Status MeasurementStore::create_tables(const StoreIdentity& identity) {
  sqlite3* database = database_.get();
  sqlite::Transaction transaction(database);
  TANDEM_RETURN_IF_ERROR(transaction.begin());
  TANDEM_ASSIGN_OR_RETURN(const bool empty, is_empty(database));
  if (!empty) return {};
  TANDEM_RETURN_IF_ERROR(
      sqlite::run(database, fmt::format("PRAGMA application_id = {}", kApplication)));
  TANDEM_RETURN_IF_ERROR(sqlite::run(database, fmt::format("PRAGMA user_version = {}", kSchema)));
  TANDEM_RETURN_IF_ERROR(sqlite::run(database, kTables));
  TANDEM_ASSIGN_OR_RETURN(sqlite::Statement insert,
                          sqlite::prepare(database, "INSERT INTO meta VALUES('platform', ?)"));
  insert.bind(identity.platform);
  TANDEM_RETURN_IF_ERROR(insert.finish());
  return transaction.commit();
}

Status MeasurementStore::identify(const StoreIdentity& identity) {
  sqlite3* database = database_.get();
  TANDEM_ASSIGN_OR_RETURN(
      const std::string platform,
      sqlite::query_text(database, "SELECT value FROM meta WHERE name = 'platform'"));
  if (platform != identity.platform) {
    return failed_precondition(fmt::format(
        "{} has measurements of another platform ({}), not of this one ({}). Give another file",
        path_, platform, identity.platform));
  }
  identity_ = identity;
  TANDEM_ASSIGN_OR_RETURN(
      sqlite::Statement insert,
      sqlite::prepare(database,
                      "INSERT INTO engines(fingerprint, tool, lane_facts, last_used) "
                      "VALUES(?, ?, ?, unixepoch()) ON CONFLICT(fingerprint) DO UPDATE SET "
                      "lane_facts = excluded.lane_facts, last_used = excluded.last_used "
                      "RETURNING id"));
  for (const std::string& text : {identity.engine, std::string(kVersion), identity.lane_facts})
    insert.bind(text);
  TANDEM_ASSIGN_OR_RETURN(const bool row, insert.step());
  if (!row) return internal_error(path_ + ": no engine was added");
  engine_ = insert.integer(0);
  return insert.finish();
}

Status MeasurementStore::read_identity() {
  TANDEM_ASSIGN_OR_RETURN(
      sqlite::Statement select,
      sqlite::prepare(database_.get(),
                      "SELECT value, id, fingerprint, lane_facts FROM meta, engines "
                      "WHERE name = 'platform' ORDER BY last_used DESC, id DESC"));
  TANDEM_ASSIGN_OR_RETURN(const bool row, select.step());
  if (!row) return not_found("there are no measurements in " + path_);
  engine_ = select.integer(1);
  identity_ = {select.text(0), select.text(2), select.text(3)};
  return {};
}

Status MeasurementStore::add(const std::vector<Measurement>& rows) {
  const auto write = [&]() -> Status {
    sqlite3* database = database_.get();
    sqlite::Transaction transaction(database);
    TANDEM_RETURN_IF_ERROR(transaction.begin());
    std::string places = "?";
    std::string updates;
    std::string_view names = kColumns;
    while (!names.empty()) {
      const size_t end = std::min(names.find(", "), names.size());
      const std::string_view name = names.substr(0, end);
      names.remove_prefix(std::min(end + 2, names.size()));
      places += ", ?";
      updates += fmt::format("{}{} = excluded.{}", updates.empty() ? "" : ", ", name, name);
    }
    TANDEM_ASSIGN_OR_RETURN(
        sqlite::Statement insert,
        sqlite::prepare(database, fmt::format("INSERT INTO measurements(engine, {}) VALUES({}) "
                                              "ON CONFLICT(engine, key) DO UPDATE SET {}",
                                              kColumns, places, updates)));
    for (const Measurement& row : rows) {
      bind_row(insert, engine_, row);
      TANDEM_RETURN_IF_ERROR(insert.finish());
    }
    return transaction.commit();
  };
  return rows.empty() ? Status() : sqlite::explain(write(), path_);
}

StatusOr<std::unordered_map<std::string, MeasurementStore::RowState>> MeasurementStore::keys()
    const {
  std::unordered_map<std::string, RowState> keys;
  const auto read = [&]() -> Status {
    TANDEM_ASSIGN_OR_RETURN(
        sqlite::Statement select,
        sqlite::prepare(database_.get(),
                        "SELECT key, attempts, disturbed FROM measurements WHERE engine = ?"));
    select.bind(engine_);
    while (true) {
      TANDEM_ASSIGN_OR_RETURN(const bool row, select.step());
      if (!row) return {};
      keys[select.text(0)] = {static_cast<int>(select.integer(1)), select.integer(2) != 0};
    }
  };
  TANDEM_RETURN_IF_ERROR(sqlite::explain(read(), path_));
  return keys;
}

Status MeasurementStore::for_each(const std::function<void(const Measurement&)>& visit) const {
  const auto read = [&]() -> Status {
    TANDEM_ASSIGN_OR_RETURN(
        sqlite::Statement select,
        sqlite::prepare(
            database_.get(),
            fmt::format("SELECT {} FROM measurements WHERE engine = ? ORDER BY id", kColumns)));
    select.bind(engine_);
    while (true) {
      TANDEM_ASSIGN_OR_RETURN(const bool row, select.step());
      if (!row) return {};
      visit(read_row(select));
    }
  };
  return sqlite::explain(read(), path_);
}

StatusOr<std::vector<Measurement>> MeasurementStore::rows() const {
  std::vector<Measurement> rows;
  TANDEM_RETURN_IF_ERROR(for_each([&](const Measurement& row) { rows.push_back(row); }));
  return rows;
}

StatusOr<std::vector<StoreCount>> MeasurementStore::counts() const {
  using Group = std::tuple<std::string, std::string, std::string>;
  std::map<Group, std::pair<StoreCount, std::vector<double>>> groups;
  TANDEM_RETURN_IF_ERROR(for_each([&](const Measurement& row) {
    auto& [count, spreads] = groups[{row.family, row.lane, row.load}];
    ++count.rows;
    count.disturbed += row.disturbed;
    count.measured_again += row.attempts > 1;
    spreads.push_back(row.spread());
  }));
  std::vector<StoreCount> counts;
  for (auto& [group, entry] : groups) {
    std::tie(entry.first.family, entry.first.lane, entry.first.load) = group;
    entry.first.median_spread = summarize(std::move(entry.second)).median;
    counts.push_back(entry.first);
  }
  return counts;
}

StatusOr<int64_t> MeasurementStore::rows_of_other_engines() const {
  return sqlite::query_integer(
      database_.get(),
      fmt::format("SELECT count(*) FROM measurements WHERE engine <> {}", engine_));
}

std::vector<std::string> measurement_columns() {
  return {"family",    "operator",       "slice",        "networks",   "lane",
          "threads",   "implementation", "load",         "repeated",   "median_us",
          "low_us",    "high_us",        "spread",       "samples",    "attempts",
          "disturbed", "alone_us",       "probe_gflops", "probe_gbps", "unix_time"};
}

std::vector<std::string> measurement_values(const Measurement& row) {
  return {row.family,
          row.op,
          row.slice,
          row.networks,
          row.lane,
          fmt::to_string(row.threads),
          row.implementation,
          row.load,
          fmt::to_string(static_cast<int>(row.repeated)),
          fmt::to_string(row.median_us),
          fmt::to_string(row.low_us),
          fmt::to_string(row.high_us),
          fmt::format("{:.4f}", row.spread()),
          fmt::to_string(row.samples),
          fmt::to_string(row.attempts),
          fmt::to_string(static_cast<int>(row.disturbed)),
          fmt::to_string(row.alone_us),
          fmt::format("{:.1f}", row.probe_gflops),
          fmt::format("{:.2f}", row.probe_gbps),
          fmt::format("{:.3f}", row.unix_time)};
}

}  // namespace tandem
