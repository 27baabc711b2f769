// Evaluation for searches, where a change costs about as much as what it touches.
#pragma once

#include <limits>
#include <vector>

#include "schedule/evaluator.h"
#include "schedule/ordered_modes.h"

namespace tandem {

// A local change: other modes for up to two operators, and another place for one.
struct Change {
  struct NewMode {
    int op = 0;
    int mode = 0;
  };
  NewMode modes[2];
  int mode_count = 0;
  int moved = kNone;  // operator
  int place = 0;      // its index in the order after the move
};

// Without contention. Holds a current solution and its times, and prices changes to it.
class OrderEvaluator {
 public:
  static constexpr double kNever = std::numeric_limits<double>::infinity();

  explicit OrderEvaluator(const ModeTables& tables);

  // Evaluates in full.
  void reset(OrderedModes solution);
  // The makespan after the change if that is at most `limit`, else kNever. The current solution
  // stays. A moved operator has to stay between its producers and its consumers: see range_of().
  double try_change(const Change& change, double limit = kNever);
  // Makes the change that was tried last, with a finite result, the current solution.
  void accept();

  double makespan_us() const { return makespan_us_; }
  const OrderedModes& solution() const { return solution_; }
  int place_of(int op) const { return places_[op]; }
  int mode_of(int op) const { return solution_.modes[op]; }
  double start_us(int op, int part) const { return times_[tables_.slot(op, part)].start_us; }
  double end_us(int op, int part) const { return times_[tables_.slot(op, part)].end_us; }
  // The first and the last place that the operator could have.
  std::pair<int, int> range_of(int op) const;

  // From the last part that ends back to one that starts first, or to the last one at place `first`
  // or later, each with what kept it waiting.
  struct Link {
    PartRef part;
    bool by_lane = false;  // waited for its lane, that is for the next link; else for its result
  };
  std::vector<Link> critical_path(int first = 0) const;

  // Evaluations so far, and how many operators' times they computed.
  int64_t evaluations() const { return evaluations_; }
  int64_t steps() const { return steps_; }

 private:
  // What a place hands on: besides when lanes are free, the ends of the operators before it that
  // operators from it on read.
  struct Checkpoint {
    int place = 0;
    std::vector<int> live;  // operators
  };

  void apply(const Change& change);
  void set_mode(int op, int mode);
  void move(int op, int place);
  bool feeders_shift(const Change& change, double* most_earlier) const;
  int first_touched(const Change& change) const;
  int touched_until(const Change& change) const;
  void compute(int place, double* free);
  double run(int from, int touched_until, double limit);
  // Whether the rest need not be computed, given what has been until the checkpoint; and if so, the
  // makespan, or kNever if it is beyond the limit.
  bool may_stop(const Checkpoint& checkpoint, const double* free, double latest, double limit,
                double* result);
  void forget_tried();
  void summarise();
  void place_checkpoints();
  PartRef before_on_lane(const PartRef& ref) const;
  PartRef last_to_end() const;

  const ModeTables& tables_;
  OrderedModes solution_;
  std::vector<int> places_;      // by operator
  std::vector<int> counts_;      // parts by lane
  std::vector<PartTime> times_;  // by slot
  std::vector<double> free_;     // by place and lane: when lanes are free before it; one place more
  std::vector<double> prefix_;   // by place: the latest end before it; one place more
  std::vector<double> suffix_;   // by place: the latest end from it on; one place more
  double makespan_us_ = 0;
  std::vector<Checkpoint> checkpoints_;

  // Of the change that was tried last.
  Change change_;
  std::vector<PartTime> new_times_;  // by slot; where nothing was computed, the same as times_
  std::vector<double> new_free_;
  std::vector<int> computed_;  // operators
  int from_ = 0;               // the places that were computed
  int until_ = 0;
  bool rest_shifts_ = false;  // and those after them change, all by the same time
  int64_t evaluations_ = 0;
  int64_t steps_ = 0;
};

}  // namespace tandem
