// The offline referee (tools/offline.py, OR-tools' CP-SAT) in a process of its own, and what its
// word is checked by.
#pragma once

#include <optional>
#include <string>

#include "cli/line_process.h"
#include "schedule/evaluator.h"
#include "tandem/status.h"

namespace tandem::cli {

struct RefereeOptions {
  std::string python;     // with the package ortools; empty: of the .venv beside the script
  double time_limit = 5;  // seconds per problem
  int workers = 2;
};

class Referee {
 public:
  struct Verdict {
    std::optional<ModeSchedule> schedule;
    double makespan_us = 0;  // of it, as our evaluator says
    bool is_optimal = false;
    double bound_us = 0;  // no schedule takes less
    double seconds = 0;
  };

  // kNotFound, saying what to do, if there is no Python with OR-tools.
  static StatusOr<Referee> start(const RefereeOptions& options);

  // `hint`: where it starts from. kInternal if the referee's model and our evaluator disagree on
  // the hint, on the referee's own schedule or on its bound.
  StatusOr<Verdict> judge(const ModeTables& tables, const ModeSchedule& hint);

 private:
  Referee(LineProcess process, RefereeOptions options)
      : process_(std::move(process)), options_(std::move(options)) {}

  LineProcess process_;
  RefereeOptions options_;
};

}  // namespace tandem::cli
