// Files about a recorded run.
#pragma once

#include <string>

#include "report/trace.h"
#include "tandem/status.h"

namespace tandem::cli {

// A trace for Perfetto and a page; an empty path: not that one.
Status write_recording(const Trace& trace, const std::string& trace_path,
                       const std::string& report_path);

}  // namespace tandem::cli
