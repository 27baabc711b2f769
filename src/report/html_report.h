// A recorded run as a page for people.
#pragma once

#include <string>

#include "report/trace.h"

namespace tandem {

// HTML that needs nothing else: conditions, times, the lanes' timelines measured and predicted, and
// a table of the operators.
std::string html_report(const Trace& trace);

}  // namespace tandem
