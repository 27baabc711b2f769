#include "schedule/edge_builder.h"

#include <algorithm>
#include <map>

namespace tandem {

EdgeBuilder::EdgeBuilder(const Problem& problem, const Placement& placement,
                         const std::vector<OperatorId>& launched, ModeProblem* result)
    : problem_(problem),
      graph_(*problem.graph),
      placement_(placement),
      result_(result),
      index_of_(graph_.operators().size(), kNone) {
  for (size_t i = 0; i < launched.size(); ++i) index_of_[launched[i]] = static_cast<int>(i);
  for (const LaneTraits& lane : problem.lanes) any_own_memory_ |= lane.own_memory;
}

void EdgeBuilder::add_edges_to(int to) {
  std::map<int, ModeEdge> edges;  // by producer
  const std::vector<Mode>& modes = result_->operators[to].modes;
  for (size_t m = 0; m < modes.size(); ++m) {
    for (size_t p = 0; p < modes[m].parts.size(); ++p) {
      for (const TensorRegion& read : reads_of(modes[m].parts[p].slice)) {
        const int from = index_of_[graph_.tensor(read.tensor).producer];
        const auto [entry, fresh] = edges.try_emplace(from);
        ModeEdge& edge = entry->second;
        if (fresh) {
          edge.from = from;
          edge.to = to;
          edge.waits.assign(result_->index_size(edge), 0);
          if (any_own_memory_) edge.fetch_us.assign(edge.waits.size(), 0);
        }
        add(&edge, static_cast<int>(m), static_cast<int>(p), read);
      }
    }
  }
  for (auto& [from, edge] : edges) result_->edges.push_back(std::move(edge));
}

const std::vector<TensorRegion>& EdgeBuilder::reads_of(const Slice& slice) {
  for (const auto& [known, reads] : reads_) {
    if (known == slice) return reads;
  }
  if (!reads_.empty() && reads_.back().first.op != slice.op) reads_.clear();
  const Operator& op = graph_.op(slice.op);
  const Region region = output_region(graph_, slice);
  std::vector<TensorRegion> parts;
  for (size_t i = 0; i < op.inputs.size(); ++i) {
    if (graph_.tensor(op.inputs[i]).kind == TensorKind::kConstant) continue;
    resolve(graph_, placement_, op.inputs[i],
            input_region(graph_, slice.op, static_cast<int>(i), region), &parts);
  }
  std::erase_if(parts, [&](const TensorRegion& part) {
    return graph_.tensor(part.tensor).producer == kNone || is_empty(part.region);
  });
  return reads_.emplace_back(slice, std::move(parts)).second;
}

void EdgeBuilder::add(ModeEdge* edge, int to_mode, int to_part, const TensorRegion& read) {
  const std::vector<Mode>& from_modes = result_->operators[edge->from].modes;
  const int reader = result_->operators[edge->to].modes[to_mode].parts[to_part].lane;
  const size_t stride = edge->waits.size() / from_modes.size();
  size_t at = result_->index(*edge, 0, to_mode, to_part);
  for (size_t f = 0; f < from_modes.size(); ++f, at += stride) {
    for (size_t q = 0; q < from_modes[f].parts.size(); ++q) {
      const Part& made = from_modes[f].parts[q];
      const Slice& slice = made.slice;
      if (!slice.whole() && (slice.begin >= read.region[slice.axis].end ||
                             read.region[slice.axis].begin >= slice.end)) {
        continue;
      }
      edge->waits[at] = static_cast<PartMask>(edge->waits[at] | (1u << q));
      if (made.lane == reader || !problem_.lanes[reader].own_memory) continue;
      TensorRegion fetched = read;
      if (!slice.whole()) {
        Range& range = fetched.region[slice.axis];
        range = {std::max(range.begin, slice.begin), std::min(range.end, slice.end)};
      }
      edge->fetch_us[at] += problem_.cost->copy_us(reader, copy_size(graph_, fetched));
    }
  }
}

}  // namespace tandem
