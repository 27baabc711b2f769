// A mode problem laid out for evaluation: flat arrays, and what follows from the problem alone.
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

#include "schedule/mode_problem.h"

namespace tandem {

// Parts are addressed in two ways: by *slot*, whatever the mode (slot()), for what a solution says
// of them; and by mode and part (part()), for what the problem says. Everything here is read by the
// inner loops of searches, so that it is public and plain.
struct ModeTables {
  explicit ModeTables(const ModeProblem& problem);

  // The same problem without contention, its parts taking these times (by part()).
  ModeTables with_times(std::vector<double> times) const;

  size_t slot(int op, int part) const {
    return static_cast<size_t>(op) * stride + static_cast<size_t>(part);
  }
  size_t part(int op, int mode, int part) const {
    return static_cast<size_t>(mode_base[op] + mode) * stride + static_cast<size_t>(part);
  }
  int part_count(int op, int mode) const { return counts[mode_base[op] + mode]; }
  int mode_count(int op) const { return mode_base[op + 1] - mode_base[op]; }
  double latency_us(int from, int to) const { return latencies[from * lanes + to]; }

  // An edge as its consumer or its producer sees it. In `entries`, the entry of a pair of modes and
  // a part is at base + from_mode * from_stride + to_mode * stride + part.
  struct Edge {
    int from = 0;
    int to = 0;
    uint32_t base = 0;
    uint32_t from_stride = 0;
    uint32_t cross_base = 0;  // into `crosses`: + from_mode * to_modes + to_mode
    uint32_t to_modes = 0;
  };
  struct Entry {
    PartMask waits = 0;  // parts of the producer
    uint16_t lanes = 0;  // other lanes among theirs
  };
  size_t entry(const Edge& edge, int from_mode, int to_mode, int part) const {
    return edge.base + static_cast<size_t>(from_mode) * edge.from_stride +
           static_cast<size_t>(to_mode) * stride + static_cast<size_t>(part);
  }
  size_t cross(const Edge& edge, int from_mode, int to_mode) const {
    return edge.cross_base + static_cast<size_t>(from_mode) * edge.to_modes +
           static_cast<size_t>(to_mode);
  }

  // When lanes are free, given how many parts each has.
  void free_from(const std::vector<int>& parts_on_lane, double* free) const;
  // How long the part occupies its lane, in a solution of these modes (by operator).
  double duration_us(const std::vector<int>& modes, int op, int part) const;
  // Of a part in that mode, when its producers are done but nothing reads it yet: when what it
  // waits for has arrived, and how long it then occupies its lane. `modes`: of the producers;
  // `ends`: of their parts, by slot.
  struct Arrival {
    double ready_us = 0;
    double duration_us = 0;
  };
  Arrival arrival_of(const std::vector<int>& modes, const std::vector<double>& ends, int op,
                     int mode, int part) const;

  const ModeProblem& problem;
  int lanes = 0;
  int operators = 0;
  size_t stride = 1;              // the most parts that any mode has
  std::vector<int> mode_base;     // by operator, and one more
  std::vector<uint8_t> counts;    // of parts, by mode
  std::vector<uint8_t> lane;      // by part()
  std::vector<double> us;         // by part()
  std::vector<double> out_us;     // by part(): send and leave, where other lanes wait for it
  std::vector<double> tail_us;    // by part(): passes at least from its end to the makespan
  std::vector<double> latencies;  // [from][to]
  std::vector<Edge> edges;        // by consumer, and by producer in it
  std::vector<int> in_begin;      // by operator, and one more: into edges
  std::vector<int> out_begin;     // by operator, and one more: into out_edges
  std::vector<int> out_edges;     // by producer: indices into edges
  std::vector<Entry> entries;
  std::vector<double> fetch_us;   // like entries; empty: nothing
  std::vector<PartMask> crosses;  // parts of the producer that other lanes wait for
  bool has_out_us = false;        // some out_us is not zero
  bool has_contention = false;    // some part slows others down or is slowed
  bool has_feeders = false;       // some lane is fed by another and takes time

 private:
  void add_edges();
  void add_tails();
};

// A solution as one order of all parts in which each comes after those that it waits for and those
// before it on its lane: what lanes' orders amount to, and what searches change.
using Sequence = std::vector<PartRef>;

// Lanes' orders merged. The schedule must pass check_mode_schedule().
Sequence sequence_of(const ModeTables& tables, const ModeSchedule& schedule);
// And back.
ModeSchedule schedule_of(const ModeTables& tables, std::vector<int> modes,
                         const Sequence& sequence);

}  // namespace tandem
