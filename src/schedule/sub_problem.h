// A part of a mode problem as a problem of its own.
#pragma once

#include "schedule/mode_problem.h"

namespace tandem {

// Operators [first, last), with the edges among them: what comes from before is there at time 0,
// and lanes are free. Lanes and modes are the same.
ModeProblem sub_problem(const ModeProblem& problem, int first, int last);

}  // namespace tandem
