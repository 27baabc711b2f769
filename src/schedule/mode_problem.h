// The scheduling problem as searches and the offline referee see it: per operator a short list of
// modes with their costs. Needs no graph: it may come from one (mode_builder.h), from a file or
// from a generator. docs/scheduling.md has the same as formulas, and the file format.
//
// A solution chooses one mode per operator, and for every lane an order of the chosen parts. With
// lane(p) the lane of part p, and "p waits for q" as the chosen modes' ModeEdge::waits say:
//
// - Lane l is free from
//     (enqueue_us(l) if slices of l are enqueued) + sum over lanes g fed by l of
//     enqueue_us(g) * (chosen parts on g).
// - Part p occupies its lane without a break for
//     us(p) + receive_us(lane(p)) * (number of other lanes with a part that p waits for)
//           + sum of fetch_us over its edges
//           + (send_us(lane(p)) + leave_us(p) if a part on another lane waits for p).
// - p starts no earlier than its lane is free, the part before it on its lane has ended, every part
//   that it waits for has ended, and latency_us(lane(q), lane(p)) after the end of those q on other
//   lanes.
// - The makespan is the end of the last part. The model's inputs are there at time zero.
//
// So much is without contention. With it, what is left of a part takes longer while other lanes are
// busy, by the factor of cost_table.h; of several others, the most memory-bound one counts.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "graph/partition.h"
#include "schedule/cost_table.h"
#include "tandem/status.h"

namespace tandem {

// A set of a mode's parts: bit i is part i.
using PartMask = uint16_t;
inline constexpr int kMaxParts = 16;  // of a mode
inline constexpr int kMaxModeLanes = 16;

struct ModeLane {
  std::string name;
  // The lane whose thread enqueues this lane's parts before its own first; kNone: no lane does.
  int fed_by = kNone;
  double enqueue_us = 0;  // per part of this lane
  double send_us = 0;     // occupied by telling other lanes of a part's end, if any waits for it
  double receive_us = 0;  // occupied by waiting for another lane, even if it is long done

  bool operator==(const ModeLane&) const = default;
};

// What one lane does of an operator.
struct Part {
  int lane = 0;
  int threads = 0;  // 0: all of the lane's
  // At least the lane's enqueue_us. On lanes with memory of their own, fetching model inputs and
  // handing over model outputs is included.
  double us = 0;
  double leave_us = 0;  // to take what it made out of its lane's memory
  Slice slice{};        // for whoever turns the solution into a Schedule
  Contention contention{};

  bool operator==(const Part&) const = default;
};

struct Mode {
  std::vector<Part> parts;  // at most kMaxParts

  bool operator==(const Mode&) const = default;
};

struct ModeOperator {
  std::string name;
  std::vector<Mode> modes;  // at least one

  bool operator==(const ModeOperator&) const = default;
};

// `to` reads what `from` makes. from < to: operators are in a topological order. At most one edge
// between two operators.
struct ModeEdge {
  int from = 0;
  int to = 0;
  // Which parts of `from` each part of `to` waits for: [mode of from][mode of to][part of to], see
  // ModeProblem::index().
  std::vector<PartMask> waits;
  // In the same order, what it takes to copy what the part reads into its lane's memory. Empty:
  // nothing.
  std::vector<double> fetch_us;

  bool operator==(const ModeEdge&) const = default;
};

struct ModeProblem {
  std::string name;
  std::vector<ModeLane> lanes;
  std::vector<std::vector<double>> latency_us;  // [from lane][to lane]
  std::vector<ModeOperator> operators;
  std::vector<ModeEdge> edges;

  // The most parts that a mode of the operator has.
  int max_parts(int op) const;
  // Where an edge keeps what it knows of these modes and that part.
  size_t index(const ModeEdge& edge, int from_mode, int to_mode, int to_part) const {
    const size_t to_modes = operators[edge.to].modes.size();
    return (static_cast<size_t>(from_mode) * to_modes + static_cast<size_t>(to_mode)) *
               static_cast<size_t>(max_parts(edge.to)) +
           static_cast<size_t>(to_part);
  }
  // What `waits` has to be resized to.
  size_t index_size(const ModeEdge& edge) const {
    return operators[edge.from].modes.size() * operators[edge.to].modes.size() *
           static_cast<size_t>(max_parts(edge.to));
  }
  // The first thing that these comments say and that is not so.
  Status validate() const;

  bool operator==(const ModeProblem&) const = default;
};

struct PartRef {
  int op = 0;
  int part = 0;  // of the mode that was chosen

  bool operator==(const PartRef&) const = default;
  auto operator<=>(const PartRef&) const = default;
};

// A solution.
struct ModeSchedule {
  std::vector<int> modes;                   // by operator
  std::vector<std::vector<PartRef>> lanes;  // in order

  bool operator==(const ModeSchedule&) const = default;
};

// A mode of the operator is chosen for every operator, every one of its parts is on its lane once,
// and lane orders do not contradict what parts wait for. The first violation, named.
Status check_mode_schedule(const ModeProblem& problem, const ModeSchedule& schedule);

// Files, versioned. Reading validates.
std::string to_json(const ModeProblem& problem);
StatusOr<ModeProblem> mode_problem_from_json(std::string_view text);
// `makespan_us`: as evaluate() says, for the reader's information.
std::string to_json(const ModeSchedule& schedule, double makespan_us);
// A schedule of that problem; checks it.
StatusOr<ModeSchedule> mode_schedule_from_json(const ModeProblem& problem, std::string_view text);

}  // namespace tandem
