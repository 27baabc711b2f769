// A child process that answers lines.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <string>
#include <vector>

#include "support/clock.h"
#include "tandem/status.h"

namespace tandem::cli {

// Its standard input and output are ours.
class LineProcess {
 public:
  // kNotFound if it cannot be started. command[0] is looked for in PATH. Its standard error goes to
  // the file `errors`, or where this process's does if that is empty.
  static StatusOr<LineProcess> start(const std::vector<std::string>& command,
                                     const std::string& errors = {});
  // Closes its input; a child that does not end soon is killed.
  ~LineProcess();
  LineProcess(LineProcess&& other) noexcept;
  LineProcess& operator=(LineProcess&& other) noexcept;

  // Sends a line, and returns the line that it answers. kDeadlineExceeded if it does not, and
  // kFailedPrecondition if it has ended: with how. After an error there are only errors.
  StatusOr<std::string> ask(const std::string& line, std::chrono::milliseconds patience);
  // All that it writes until it ends by itself, with status 0. The same errors.
  StatusOr<std::string> read_to_end(std::chrono::milliseconds patience);

 private:
  LineProcess(pid_t child, int socket, std::string name)
      : child_(child), socket_(socket), name_(std::move(name)) {}
  // Waits for more of what it writes: false if there is no more.
  StatusOr<bool> receive(Clock::time_point deadline);
  Status ended();

  pid_t child_;
  int socket_;
  std::string name_;
  std::string received_;
  Status broken_;
};

}  // namespace tandem::cli
