// The measurement store: what `tandem profile` measured on this platform, in an SQLite database.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "tandem/status.h"

struct sqlite3;

namespace tandem {

// One row: a slice on a lane under some conditions. Times are in microseconds.
struct Measurement {
  std::string key;       // what was measured, as text; unique among the rows of one engine
  std::string family;    // of the operator: to_string(predict::SliceFamily)
  std::string op;        // signature(): kind, attributes and operands
  std::string slice;     // "whole", or "AXIS BEGIN:END" in elements of the output's dimension
  std::string networks;  // that have the operator, sorted, joined by commas; empty: none does
  std::string lane;
  int threads = 1;
  std::string implementation;  // ImplementationInfo::name
  std::string load = "none";   // of the other lanes meanwhile: "none", "memory", "compute"
  bool repeated = false;       // it ran several times in a row: its data were in caches
  double median_us = 0;
  double low_us = 0;   // first quartile
  double high_us = 0;  // third quartile
  int samples = 0;
  int attempts = 1;         // 2 and more: it was measured again, since it could not be trusted
  bool disturbed = false;   // the last attempt cannot be trusted either
  double alone_us = 0;      // with a load: the median without, measured in turn with this one
  double probe_gflops = 0;  // of one core, around the measurement: multiply-adds,
  double probe_gbps = 0;    // and reads of memory
  double unix_time = 0;     // seconds, when it was measured
  std::string slice_case;   // predict::SliceCase as JSON

  // Quartile distance over median.
  double spread() const { return median_us > 0 ? (high_us - low_us) / median_us : 0; }
};

// Which platform and engine the rows are of.
struct StoreIdentity {
  std::string platform;    // Platform::fingerprint()
  std::string engine;      // engine_fingerprint()
  std::string lane_facts;  // JSON, by lane name
};

// Rows by family, lane and kind of load.
struct StoreCount {
  std::string family;
  std::string lane;
  std::string load;
  int64_t rows = 0;
  int64_t disturbed = 0;
  int64_t measured_again = 0;  // took more than one attempt
  double median_spread = 0;
};

// Every row is on disk when add() returns, also if the process is killed then. Several processes
// may read and write at once. A file that is damaged, of another program, of another version or not
// writable is refused and left as it is.
class MeasurementStore {
 public:
  // $XDG_DATA_HOME/tandem/profile/HASH.sqlite for the platform; kNotFound without a home.
  static StatusOr<std::string> default_path(const std::string& platform);

  // Opens the file, or makes it. kFailedPrecondition if its rows are of another platform.
  static StatusOr<MeasurementStore> open(const std::string& path, const StoreIdentity& identity);
  // Opens a file that is there, of whatever platform, to read from it; rows() and the like
  // then tell of the engine that measured last.
  static StatusOr<MeasurementStore> open_to_read(const std::string& path);

  ~MeasurementStore();
  MeasurementStore(MeasurementStore&&) noexcept;
  MeasurementStore& operator=(MeasurementStore&&) noexcept;

  const std::string& path() const { return path_; }
  const StoreIdentity& identity() const { return identity_; }

  // All of the rows or none. A row with a key that is there replaces that one.
  Status add(const std::vector<Measurement>& rows);
  // What is there, by key.
  struct RowState {
    int attempts = 0;
    bool disturbed = false;
  };
  StatusOr<std::unordered_map<std::string, RowState>> keys() const;
  // The rows in the order in which they were measured first.
  StatusOr<std::vector<Measurement>> rows() const;
  // Calls `visit` with each of them in turn.
  Status for_each(const std::function<void(const Measurement&)>& visit) const;
  StatusOr<std::vector<StoreCount>> counts() const;
  // Rows that other engines, older versions of this one as a rule, measured.
  StatusOr<int64_t> rows_of_other_engines() const;

 private:
  struct Close {
    void operator()(sqlite3* database) const;
  };
  using Database = std::unique_ptr<sqlite3, Close>;

  MeasurementStore(std::string path, Database database);
  Status create_tables(const StoreIdentity& identity);
  Status identify(const StoreIdentity& identity);
  Status read_identity();

  std::string path_;
  Database database_;
  StoreIdentity identity_;
  int64_t engine_ = 0;  // its row in the table of engines
};

// A row as text: names of columns, and values in that order. Without the key and the description
// for predictors, which has columns of its own (predict/slice_case.h).
std::vector<std::string> measurement_columns();
std::vector<std::string> measurement_values(const Measurement& row);

}  // namespace tandem
