#include "cli/line_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <thread>
#include <utility>

#include "fmt/format.h"

namespace tandem::cli {
namespace {

constexpr std::chrono::milliseconds kEndPatience{2000};

// Waits for the child's end; its status as of waitpid(), or -1 if it still runs then.
int wait_for_end(pid_t child, std::chrono::milliseconds patience) {
  const Clock::time_point deadline = Clock::now() + patience;
  while (true) {
    int status = 0;
    if (waitpid(child, &status, WNOHANG) == child) return status;
    if (Clock::now() >= deadline) return -1;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

Status how_it_ended(const std::string& name, int status) {
  if (WIFSIGNALED(status)) {
    return failed_precondition(fmt::format("{} was ended by signal {} ({})", name, WTERMSIG(status),
                                           strsignal(WTERMSIG(status))));
  }
  return failed_precondition(fmt::format("{} has ended with status {}", name, WEXITSTATUS(status)));
}

}  // namespace

StatusOr<LineProcess> LineProcess::start(const std::vector<std::string>& command,
                                         const std::string& errors) {
  // A socket, not pipes: writing to a child that has ended is then an error and no signal.
  std::array<int, 2> ends{};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    return resource_exhausted(fmt::format("cannot make a socket: {}", std::strerror(errno)));
  }
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  if (!errors.empty()) {
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, errors.c_str(),
                                     O_WRONLY | O_CREAT | O_TRUNC, 0600);
  }
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  pid_t child = 0;
  const int error =
      posix_spawnp(&child, arguments[0], &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  if (error != 0) {
    close(ends[0]);
    return not_found(fmt::format("cannot start {}: {}", command[0], std::strerror(error)));
  }
  return LineProcess(child, ends[0], command[0]);
}

LineProcess::LineProcess(LineProcess&& other) noexcept
    : child_(std::exchange(other.child_, 0)),
      socket_(std::exchange(other.socket_, -1)),
      name_(std::move(other.name_)),
      received_(std::move(other.received_)),
      broken_(std::move(other.broken_)) {}

LineProcess& LineProcess::operator=(LineProcess&& other) noexcept {
  std::swap(child_, other.child_);
  std::swap(socket_, other.socket_);
  std::swap(name_, other.name_);
  std::swap(received_, other.received_);
  std::swap(broken_, other.broken_);
  return *this;
}

LineProcess::~LineProcess() {
  if (socket_ >= 0) close(socket_);
  if (child_ <= 0 || wait_for_end(child_, kEndPatience) != -1) return;
  kill(child_, SIGKILL);
  waitpid(child_, nullptr, 0);
}

StatusOr<std::string> LineProcess::ask(const std::string& line,
                                       std::chrono::milliseconds patience) {
  TANDEM_RETURN_IF_ERROR(broken_);
  const Clock::time_point deadline = Clock::now() + patience;
  const std::string message = line + "\n";
  // Requests are far smaller than a socket's buffer: sending does not block.
  if (send(socket_, message.data(), message.size(), MSG_NOSIGNAL) !=
      static_cast<ssize_t>(message.size())) {
    return broken_ = ended();
  }
  while (true) {
    if (const size_t end = received_.find('\n'); end != std::string::npos) {
      std::string answer = received_.substr(0, end);
      received_.erase(0, end + 1);
      return answer;
    }
    const StatusOr<bool> more = receive(deadline);
    if (!more.ok()) {
      return broken_ = deadline_exceeded(
                 fmt::format("{} has not answered within {} ms", name_, patience.count()));
    }
    if (!*more) return broken_ = ended();
  }
}

StatusOr<std::string> LineProcess::read_to_end(std::chrono::milliseconds patience) {
  TANDEM_RETURN_IF_ERROR(broken_);
  const Clock::time_point deadline = Clock::now() + patience;
  StatusOr<bool> more = true;
  while (more.ok() && *more) more = receive(deadline);
  const int status = more.ok() ? wait_for_end(child_, kEndPatience) : -1;
  if (status == -1) {
    return broken_ = deadline_exceeded(
               fmt::format("{} has not ended within {} ms", name_, patience.count()));
  }
  child_ = 0;
  broken_ = how_it_ended(name_, status);
  if (status != 0) return broken_;
  return std::exchange(received_, {});
}

StatusOr<bool> LineProcess::receive(Clock::time_point deadline) {
  while (true) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    pollfd waiting{socket_, POLLIN, 0};
    const int ready = poll(&waiting, 1, static_cast<int>(std::max<int64_t>(0, left)));
    if (ready == 0) return deadline_exceeded("no answer");
    if (ready < 0) continue;  // a signal
    std::array<char, 4096> buffer{};
    const ssize_t size = recv(socket_, buffer.data(), buffer.size(), 0);
    if (size <= 0) return false;
    received_.append(buffer.data(), static_cast<size_t>(size));
    return true;
  }
}

Status LineProcess::ended() {
  const int status = wait_for_end(child_, kEndPatience);
  if (status == -1) return failed_precondition(name_ + " answers no more");
  child_ = 0;
  return how_it_ended(name_, status);
}

}  // namespace tandem::cli
