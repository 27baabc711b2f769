// How to divide one operator over lanes: the axis, the cuts, the lanes that take part and their
// threads.
#pragma once

#include <limits>
#include <vector>

#include "schedule/scheduler.h"

namespace tandem {

// What one lane does of an operator.
struct SplitPart {
  int lane = 0;
  Slice slice;
  int threads = 0;  // 0: all that the lane has
  double us = 0;    // predicted for the slice alone
};

struct Split {
  std::vector<SplitPart> parts;  // by ascending lane, along the axis
  // Predicted: when the operator's output is where it is needed, on the clock of the surroundings.
  double end_us = std::numeric_limits<double>::infinity();
};

// What goes on around the operator.
class SplitSurroundings {
 public:
  virtual ~SplitSurroundings() = default;
  // When each part could start, if these are all there are.
  virtual std::vector<double> starts_us(const std::vector<SplitPart>& parts) const = 0;
  // What passes from the end of the part to its output being where it is needed, if these are all
  // parts that there are.
  virtual double joining_us(const std::vector<SplitPart>& parts, const SplitPart& part) const = 0;
};

// When parts end that start at `starts_us` and run beside each other: each is slowed down, as
// Contention says, while others run. Of several others, the most memory-bound counts.
std::vector<double> ends_us(const CostModel& cost, const std::vector<SplitPart>& parts,
                            const std::vector<double>& starts_us);

// The least end_us of: the whole operator on one lane; and along each axis that may be cut, one
// part per lane in the order of lanes (so that neighbouring operators keep their parts on their
// lanes), some of which may come out empty, with cuts at the axis's granularity. Cuts are moved
// from where the lanes' speeds on the whole operator put them, one after another, each to its best
// place, until none gets better: thoroughly, with two lanes, that is the best cut (up to 64 places
// are all tried; of more, 64, and all around the best). Else eighths are tried to both sides until
// they are far worse than the best, and around that ever finer, which takes a fraction of the time
// and may miss a place that suits both lanes' tiles: good enough where the cut is one of many, and
// where searches go on from it.
enum class SplitEffort { kThorough, kQuick };
Split choose_split(const Problem& problem, OperatorId op, const SplitSurroundings& surroundings,
                   SplitEffort effort = SplitEffort::kThorough);

// The operator alone in a session: devices have to be started, which costs them and the lane that
// feeds them time before their parts, and the end of a queue's part has to be seen by the host
// (StartCosts). Inputs and outputs are in the host's memory.
Split choose_split(const Problem& problem, OperatorId op);

}  // namespace tandem
