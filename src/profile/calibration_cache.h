// Measured times on disk: one JSON file per platform.
#pragma once

#include <map>
#include <string>

namespace tandem {

// The part of an operator's output that was measured: how much of an axis; kNone: all of it.
struct SliceSize {
  int axis = -1;
  int64_t size = 0;

  auto operator<=>(const SliceSize&) const = default;
};

// Microseconds of a copy to or from a lane's own memory: base + per_piece * pieces + per_byte *
// bytes.
struct CopyTimes {
  double base = 0;
  double per_piece = 0;
  double per_byte = 0;

  bool operator==(const CopyTimes&) const = default;
};

// How many times as long as alone a lane takes for memory-bound and for compute-bound work while
// all other lanes run either kind; at least 1.
struct LaneSlowdowns {
  double memory_beside_memory = 1;
  double memory_beside_compute = 1;
  double compute_beside_memory = 1;
  double compute_beside_compute = 1;
  double bytes_per_us = 0;  // of memory-bound work, alone

  bool operator==(const LaneSlowdowns&) const = default;
};

// Microseconds.
struct CalibrationData {
  // Operator signature -> lane name -> slice -> time.
  std::map<std::string, std::map<std::string, std::map<SliceSize, double>>> slices;
  // "svm cpu>gpu" -> time.
  std::map<std::string, double> crossings;
  // Lane name -> time of the host per slice. Of lanes with a queue.
  std::map<std::string, double> enqueueing;
  // Lane name -> copies. Of lanes that compute on memory of their own.
  std::map<std::string, CopyTimes> copies;
  // By lane name.
  std::map<std::string, LaneSlowdowns> slowdowns;

  bool operator==(const CalibrationData&) const = default;
};

// The name of a crossing in CalibrationData, from lane to lane.
std::string crossing_key(const std::string& mechanism, const std::string& from,
                         const std::string& to);

// `dir` is "none" for no cache, and empty for the user's cache folder. Neither call fails: what
// cannot be read or written costs measurements only, and is warned of in the log.
class CalibrationCache {
 public:
  CalibrationCache(std::string dir, std::string fingerprint);

  // Empty if there is nothing fit for use.
  CalibrationData load() const;
  // Adds to what is there.
  void save(const CalibrationData& data) const;
  const std::string& path() const { return path_; }

 private:
  std::string dir_;
  std::string fingerprint_;
  std::string path_;             // empty: no cache
  mutable bool warned_ = false;  // of a file that cannot be used: once is enough
};

}  // namespace tandem
