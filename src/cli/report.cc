// `tandem report`: a page about a recorded run; and what `tandem run` records for it.
#include "cli/report.h"

#include <memory>

#include "cli/command.h"
#include "cli/distinct_files.h"
#include "cli/output_files.h"
#include "fmt/format.h"
#include "report/html_report.h"
#include "support/read_file.h"
#include "support/write_file.h"

namespace tandem::cli {
namespace {

struct Flags {
  std::string trace;
  std::string output;
};

Status report(const Flags& flags) {
  TANDEM_RETURN_IF_ERROR(check_distinct({{"the trace", flags.trace}, {"--output", flags.output}}));
  TANDEM_RETURN_IF_ERROR(check_can_write({{"--output", flags.output}}));
  const StatusOr<std::string> bytes = read_file(flags.trace);
  if (!bytes.ok()) {
    return Status(bytes.status().code(),
                  fmt::format("there is no trace to be read; 'tandem run MODEL --trace {}' writes "
                              "one: {}",
                              flags.trace, bytes.status().message()));
  }
  TANDEM_ASSIGN_OR_RETURN(const Trace trace, from_perfetto(*bytes, flags.trace));
  TANDEM_RETURN_IF_ERROR(write_file(flags.output, html_report(trace)));
  fmt::print("written to {}\n", flags.output);
  return {};
}

}  // namespace

Status write_recording(const Trace& trace, const std::string& trace_path,
                       const std::string& report_path) {
  if (!trace_path.empty()) TANDEM_RETURN_IF_ERROR(write_file(trace_path, to_perfetto(trace)));
  if (!report_path.empty()) TANDEM_RETURN_IF_ERROR(write_file(report_path, html_report(trace)));
  return {};
}

void add_report_command(CLI::App& app, Status* outcome) {
  CLI::App* command =
      app.add_subcommand("report", "Make a page of a trace of 'tandem run --trace'");
  const auto flags = std::make_shared<Flags>();
  command->add_option("trace", flags->trace, "The trace")->required();
  command->add_option("-o,--output", flags->output, "The HTML file to write")->required();
  command->callback([flags, outcome] { *outcome = report(*flags); });
}

}  // namespace tandem::cli
