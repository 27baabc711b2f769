#include "schedule/mode_tables.h"

#include <algorithm>

namespace tandem {

ModeTables::ModeTables(const ModeProblem& p)
    : problem(p),
      lanes(static_cast<int>(p.lanes.size())),
      operators(static_cast<int>(p.operators.size())) {
  mode_base.push_back(0);
  for (const ModeOperator& op : p.operators) {
    mode_base.push_back(mode_base.back() + static_cast<int>(op.modes.size()));
    for (const Mode& mode : op.modes) {
      stride = std::max(stride, mode.parts.size());
      counts.push_back(static_cast<uint8_t>(mode.parts.size()));
    }
  }
  const size_t parts = counts.size() * stride;
  lane.assign(parts, 0);
  us.assign(parts, 0);
  out_us.assign(parts, 0);
  size_t at = 0;
  for (const ModeOperator& op : p.operators) {
    for (const Mode& mode : op.modes) {
      for (size_t i = 0; i < mode.parts.size(); ++i) {
        const Part& made = mode.parts[i];
        lane[at + i] = static_cast<uint8_t>(made.lane);
        us[at + i] = made.us;
        out_us[at + i] = p.lanes[made.lane].send_us + made.leave_us;
        has_out_us |= out_us[at + i] != 0;
        has_contention |=
            made.contention.slowdown_memory != 1 || made.contention.slowdown_compute != 1;
      }
      at += stride;
    }
  }
  for (const std::vector<double>& row : p.latency_us) {
    latencies.insert(latencies.end(), row.begin(), row.end());
  }
  for (const ModeLane& l : p.lanes) has_feeders |= l.fed_by != kNone && l.enqueue_us > 0;
  add_edges();
  add_tails();
}

void ModeTables::add_edges() {
  std::vector<const ModeEdge*> sorted;
  for (const ModeEdge& edge : problem.edges) sorted.push_back(&edge);
  std::sort(sorted.begin(), sorted.end(), [](const ModeEdge* a, const ModeEdge* b) {
    return std::pair(a->to, a->from) < std::pair(b->to, b->from);
  });
  std::vector<std::vector<int>> out(operators);
  in_begin.assign(operators + 1, 0);
  const bool has_fetches = std::any_of(
      sorted.begin(), sorted.end(), [](const ModeEdge* edge) { return !edge->fetch_us.empty(); });
  for (const ModeEdge* from : sorted) {
    Edge edge;
    edge.from = from->from;
    edge.to = from->to;
    edge.base = static_cast<uint32_t>(entries.size());
    edge.to_modes = static_cast<uint32_t>(mode_count(edge.to));
    edge.from_stride = static_cast<uint32_t>(edge.to_modes * stride);
    edge.cross_base = static_cast<uint32_t>(crosses.size());
    const int from_modes = mode_count(edge.from);
    const size_t parts = problem.max_parts(edge.to);
    entries.resize(entries.size() + from_modes * edge.from_stride);
    if (has_fetches) fetch_us.resize(entries.size(), 0);
    crosses.resize(crosses.size() + static_cast<size_t>(from_modes) * edge.to_modes);
    size_t given = 0;
    for (int f = 0; f < from_modes; ++f) {
      for (int t = 0; t < static_cast<int>(edge.to_modes); ++t, given += parts) {
        for (int p = 0; p < part_count(edge.to, t); ++p) {
          const size_t at = entry(edge, f, t, p);
          Entry& e = entries[at];
          e.waits = from->waits[given + p];
          const int own = lane[part(edge.to, t, p)];
          for (unsigned mask = e.waits; mask != 0; mask &= mask - 1) {
            const int q = std::countr_zero(mask);
            const int other = lane[part(edge.from, f, q)];
            if (other == own) continue;
            e.lanes = static_cast<uint16_t>(e.lanes | (1u << other));
            PartMask& crossing = crosses[cross(edge, f, t)];
            crossing = static_cast<PartMask>(crossing | (1u << q));
          }
          if (!from->fetch_us.empty()) fetch_us[at] = from->fetch_us[given + p];
        }
      }
    }
    ++in_begin[edge.to + 1];
    out[edge.from].push_back(static_cast<int>(edges.size()));
    edges.push_back(edge);
  }
  out_begin.push_back(0);
  for (int op = 0; op < operators; ++op) {
    in_begin[op + 1] += in_begin[op];
    out_edges.insert(out_edges.end(), out[op].begin(), out[op].end());
    out_begin.push_back(static_cast<int>(out_edges.size()));
  }
}

ModeTables ModeTables::with_times(std::vector<double> times) const {
  ModeTables result = *this;
  result.us = std::move(times);
  result.has_contention = false;
  result.add_tails();
  return result;
}

// After a part, whichever modes others have: the longest way on, each consumer in the mode that
// makes it shortest.
void ModeTables::add_tails() {
  tail_us.assign(us.size(), 0);
  std::vector<double> way_us(us);  // by part(): from its start on, of operators that are done
  double best[kMaxParts];
  double way[kMaxParts];
  for (int op = operators - 1; op >= 0; --op) {
    for (int i = out_begin[op]; i < out_begin[op + 1]; ++i) {
      const Edge& edge = edges[out_edges[i]];
      const size_t first_to = part(edge.to, 0, 0);
      for (int f = 0; f < mode_count(op); ++f) {
        const int parts = part_count(op, f);
        const size_t own = part(op, f, 0);
        std::fill_n(best, parts, -1);
        for (int t = 0; t < static_cast<int>(edge.to_modes); ++t) {
          std::fill_n(way, parts, 0);
          const Entry* entry_of = &entries[entry(edge, f, t, 0)];
          const size_t to = first_to + static_cast<size_t>(t) * stride;
          for (int p = 0; p < part_count(edge.to, t); ++p) {
            for (unsigned mask = entry_of[p].waits; mask; mask &= mask - 1) {
              const int q = std::countr_zero(mask);
              way[q] = std::max(way[q], way_us[to + p] + latency_us(lane[own + q], lane[to + p]));
            }
          }
          for (int q = 0; q < parts; ++q) {
            if (best[q] < 0 || way[q] < best[q]) best[q] = way[q];
          }
        }
        for (int q = 0; q < parts; ++q) tail_us[own + q] = std::max(tail_us[own + q], best[q]);
      }
    }
    for (size_t at = part(op, 0, 0); at < part(op, mode_count(op), 0); ++at) {
      way_us[at] = us[at] + tail_us[at];
    }
  }
}

void ModeTables::free_from(const std::vector<int>& parts_on_lane, double* free) const {
  for (int l = 0; l < lanes; ++l) free[l] = problem.lanes[l].enqueue_us;
  for (int l = 0; l < lanes; ++l) {
    const ModeLane& fed = problem.lanes[l];
    if (fed.fed_by != kNone) free[fed.fed_by] += fed.enqueue_us * parts_on_lane[l];
  }
}

ModeTables::Arrival ModeTables::arrival_of(const std::vector<int>& modes,
                                           const std::vector<double>& ends, int op, int mode,
                                           int p) const {
  const size_t which = part(op, mode, p);
  const int to_lane = lane[which];
  Arrival arrival{0, us[which]};
  unsigned others = 0;
  for (int i = in_begin[op]; i < in_begin[op + 1]; ++i) {
    const Edge& edge = edges[i];
    const int from_mode = modes[edge.from];
    const size_t at = entry(edge, from_mode, mode, p);
    others |= entries[at].lanes;
    if (!fetch_us.empty()) arrival.duration_us += fetch_us[at];
    for (unsigned mask = entries[at].waits; mask != 0; mask &= mask - 1) {
      const int q = std::countr_zero(mask);
      const int from_lane = lane[part(edge.from, from_mode, q)];
      const double latency = from_lane == to_lane ? 0 : latency_us(from_lane, to_lane);
      arrival.ready_us = std::max(arrival.ready_us, ends[slot(edge.from, q)] + latency);
    }
  }
  if (others != 0) {
    arrival.duration_us += std::popcount(others) * problem.lanes[to_lane].receive_us;
  }
  return arrival;
}

double ModeTables::duration_us(const std::vector<int>& modes, int op, int p) const {
  const int mode = modes[op];
  const size_t which = part(op, mode, p);
  double duration = us[which];
  unsigned others = 0;
  for (int i = in_begin[op]; i < in_begin[op + 1]; ++i) {
    const size_t at = entry(edges[i], modes[edges[i].from], mode, p);
    others |= entries[at].lanes;
    if (!fetch_us.empty()) duration += fetch_us[at];
  }
  duration += std::popcount(others) * problem.lanes[lane[which]].receive_us;
  if (out_us[which] == 0) return duration;
  for (int i = out_begin[op]; i < out_begin[op + 1]; ++i) {
    const Edge& edge = edges[out_edges[i]];
    if (crosses[cross(edge, mode, modes[edge.to])] >> p & 1) return duration + out_us[which];
  }
  return duration;
}

Sequence sequence_of(const ModeTables& tables, const ModeSchedule& schedule) {
  std::vector<PartMask> done(tables.operators, 0);
  const auto is_ready = [&](const PartRef& ref) {
    for (int i = tables.in_begin[ref.op]; i < tables.in_begin[ref.op + 1]; ++i) {
      const ModeTables::Edge& edge = tables.edges[i];
      const PartMask needed = tables
                                  .entries[tables.entry(edge, schedule.modes[edge.from],
                                                        schedule.modes[ref.op], ref.part)]
                                  .waits;
      if (needed & ~done[edge.from]) return false;
    }
    return true;
  };
  Sequence sequence;
  std::vector<size_t> next(schedule.lanes.size(), 0);
  for (bool progress = true; progress;) {
    progress = false;
    for (size_t lane = 0; lane < next.size(); ++lane) {
      for (; next[lane] < schedule.lanes[lane].size(); ++next[lane]) {
        const PartRef& ref = schedule.lanes[lane][next[lane]];
        if (!is_ready(ref)) break;
        done[ref.op] = static_cast<PartMask>(done[ref.op] | (1u << ref.part));
        sequence.push_back(ref);
        progress = true;
      }
    }
  }
  return sequence;
}

ModeSchedule schedule_of(const ModeTables& tables, std::vector<int> modes,
                         const Sequence& sequence) {
  ModeSchedule schedule;
  schedule.lanes.resize(tables.lanes);
  for (const PartRef& ref : sequence) {
    schedule.lanes[tables.lane[tables.part(ref.op, modes[ref.op], ref.part)]].push_back(ref);
  }
  schedule.modes = std::move(modes);
  return schedule;
}

}  // namespace tandem
