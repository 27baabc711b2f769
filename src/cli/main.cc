// `tandem`: the command line. Exit status: 0 on success, 1 when a command failed, 2 when the
// command line itself is wrong, 130 when the user interrupted it. Results go to stdout, everything
// else to stderr.
#include <fcntl.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <exception>
#include <new>
#include <optional>
#include <string>
#include <string_view>

#include "cli/command.h"
#include "fmt/format.h"
#include "tandem/version.h"

namespace {

constexpr int kFailed = 1;
constexpr int kUsage = 2;
constexpr int kInterrupted = 130;  // as shells say it: 128 and the number of SIGINT

// A file that is opened while standard output is closed would become it, and be written to.
void occupy_standard_streams() {
  for (int stream = 0; stream <= 2; ++stream) {
    // What is written to the wrong end of /dev/null is an error, as it was.
    if (fcntl(stream, F_GETFD) == -1) {
      [[maybe_unused]] const int opened = open("/dev/null", stream == 0 ? O_WRONLY : O_RDONLY);
    }
  }
}

// Only what signal handlers may do. Files appear whole or not at all (write_file): there is nothing
// to put in order.
extern "C" void end_interrupted(int) {
  constexpr std::string_view kText = "\ntandem: interrupted\n";
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, kText.data(), kText.size());
  _exit(kInterrupted);
}

// Where nobody watches for interrupts (InterruptWatch), there is nothing to show for the work yet.
void say_when_interrupted() {
  struct sigaction before = {};
  sigaction(SIGINT, nullptr, &before);
  // Whoever started this process may want it to go on.
  if (before.sa_handler == SIG_IGN) return;
  struct sigaction action = {};
  action.sa_handler = &end_interrupted;
  sigaction(SIGINT, &action, nullptr);
}

// Options would take an empty value for none, such as that of a variable that a script forgot to
// set.
std::optional<std::string> find_empty(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    const std::string_view before = i == 1 ? std::string_view("tandem") : argv[i - 1];
    if (argument.empty()) return fmt::format("the argument after '{}' is empty", before);
    if (argument.starts_with("--") && argument.ends_with("=") &&
        argument.find('=') == argument.size() - 1) {
      return fmt::format("'{}' gives no value", argument);
    }
  }
  return std::nullopt;
}

// What is wrong with a command line, and where to read on.
std::string usage_error(const CLI::App* app, const CLI::Error& error) {
  std::string command = "tandem";
  for (auto given = app->get_subcommands(); !given.empty(); given = app->get_subcommands()) {
    app = given.front();
    command += " " + app->get_name();
  }
  std::string what = error.what();
  // CLI11 only says that a command is missing.
  const std::vector<std::string> unknown = app->remaining();
  if (!unknown.empty() && !app->get_subcommands(nullptr).empty()) {
    what = fmt::format("{} has no command '{}'", command, unknown.front());
  }
  return fmt::format("tandem: {}\nSee '{} --help'.\n", what, command);
}

int run(int argc, char** argv) {
  CLI::App app("Runs one neural-network inference on CPU and OpenCL lanes at once.", "tandem");
  app.set_version_flag("--version", std::string("tandem ") + tandem::kVersion);
  app.require_subcommand(1);

  tandem::Status outcome;
  tandem::cli::add_devices_command(app, &outcome);
  tandem::cli::add_run_command(app, &outcome);
  tandem::cli::add_plan_command(app, &outcome);
  tandem::cli::add_report_command(app, &outcome);
  tandem::cli::add_zoo_command(app, &outcome);
  tandem::cli::add_bench_command(app, &outcome);
  tandem::cli::add_profile_command(app, &outcome);
  tandem::cli::add_simulate_command(app, &outcome);
  tandem::cli::add_train_command(app, &outcome);
  if (const auto empty = find_empty(argc, argv)) {
    fmt::print(stderr, "tandem: {}: give a value, or leave it out\n", *empty);
    return kUsage;
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& success) {  // --help, --version
    return app.exit(success);
  } catch (const CLI::ParseError& error) {
    fmt::print(stderr, "{}", usage_error(&app, error));
    return kUsage;
  }
  if (!outcome.ok()) {
    fmt::print(stderr, "tandem: {}\n", outcome.to_string());
    return outcome.code() == tandem::StatusCode::kCancelled ? kInterrupted : kFailed;
  }
  // A full disk or a closed pipe shows only here.
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
    fmt::print(stderr, "tandem: cannot write to standard output\n");
    return kFailed;
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  // Tandem's own errors are values; what is left is memory running out, or a mistake.
  occupy_standard_streams();
  say_when_interrupted();
  try {
    return run(argc, argv);
  } catch (const std::bad_alloc&) {
    std::fputs("tandem: resource exhausted: there is not enough memory\n", stderr);
    return kFailed;
  } catch (const std::exception& error) {
    std::fputs("tandem: ", stderr);
    std::fputs(error.what(), stderr);
    std::fputs("\n", stderr);
    return kFailed;
  }
}
