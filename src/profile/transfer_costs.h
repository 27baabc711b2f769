// What is paid between slices: crossings from lane to lane, enqueueing, copies.
#pragma once

#include <functional>
#include <vector>

#include "profile/calibration_cache.h"
#include "profile/lane_crew.h"
#include "schedule/cost_table.h"
#include "tandem/status.h"

namespace tandem {

// Where measurements come from that are not in the cache. Called only if some are missing.
struct CalibrationSources {
  // Memory for every tensor of the graph, without reuse. Must live until create() returns.
  std::function<StatusOr<const TensorBindings*>()> memory;
  // Microseconds of a crossing.
  std::function<StatusOr<double>(int from, int to)> crossing;
  // Of a lane with a queue. Not set: starting is not measured.
  std::function<StatusOr<StartCosts>(int lane)> start;
  // Adds how lanes slow each other down, where the data lack it. Null: they are taken not to.
  std::function<Status(CalibrationData*)> contention;
};

// Microseconds.
struct TransferCosts {
  std::vector<std::vector<double>> crossings;  // [from][to]
  std::vector<double> enqueueing;              // by lane; 0 without a queue
  std::vector<double> commands;                // by lane; 0 where waiting takes no command
  std::vector<CopyTimes> copies;               // by lane
  std::vector<StartCosts> starts;              // by lane with a queue; empty: not measured
};

// Measures what `data` lack of crossings and of copies to lanes that compute on memory of their
// own, and puts it there. The caller has the lease.
Status measure_transfers(const Graph& graph, LaneCrew& crew, const std::string& mechanism,
                         const CalibrationSources& sources, CalibrationData* data);
// The same for what it takes to enqueue a slice, on lanes with a queue. (Timing slices tells it,
// too.)
Status measure_enqueueing(const Graph& graph, LaneCrew& crew, const CalibrationSources& sources,
                          CalibrationData* data);

// Measures starts if `sources` can. They are not kept: what a start costs depends on where the
// system happens to run the thread that starts it, too, and lasts for a while only.
Status measure_starts(const LaneCrew& crew, const CalibrationSources& sources,
                      TransferCosts* costs);

double copy_us(const CopyTimes& copy, const CopySize& size);

// Zeros where the data have nothing.
TransferCosts transfer_costs(const LaneCrew& crew, const std::string& mechanism,
                             const CalibrationData& data);

}  // namespace tandem
