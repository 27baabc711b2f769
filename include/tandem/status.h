// Error values of the public API. No exception crosses it: a call that can fail returns a Status or
// a StatusOr<T>, both [[nodiscard]].
#pragma once

#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace tandem {

// What went wrong, coarse enough to branch on. The message says the rest.
enum class StatusCode {
  kOk = 0,
  kInvalidArgument,     // the caller's input is off: a wrong shape, a bad flag, a NaN where refused
  kNotFound,            // a file, a tensor, an operator or a device of that name does not exist
  kUnsupported,         // understood, but Tandem has no implementation for it
  kCorrupt,             // a file or cache entry that cannot be what it claims to be
  kFailedPrecondition,  // the call is legal, but not now (a session in use, a stale plan)
  kResourceExhausted,   // out of memory or of device resources
  kDeadlineExceeded,    // a wait ran past its deadline
  kCancelled,           // the caller asked to stop
  kDeviceError,         // a lane's device or driver reported a failure
  kInternal,            // a broken invariant of Tandem itself: please report it
};

std::string_view to_string(StatusCode code);

// The outcome of a call: kOk, or a code and a message that names the thing and says what to do.
class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(StatusCode code, std::string message) : code_(code), message_(std::move(message)) {}

  bool ok() const { return code_ == StatusCode::kOk; }
  StatusCode code() const { return code_; }
  const std::string& message() const { return message_; }

  // "invalid argument: the message", or "ok".
  std::string to_string() const;

  // The same error with `context` put before its message: "while packing conv1: the message".
  Status with_context(std::string_view context) const;

 private:
  StatusCode code_ = StatusCode::kOk;
  std::string message_;
};

inline Status invalid_argument(std::string m) {
  return {StatusCode::kInvalidArgument, std::move(m)};
}
inline Status not_found(std::string m) { return {StatusCode::kNotFound, std::move(m)}; }
inline Status unsupported(std::string m) { return {StatusCode::kUnsupported, std::move(m)}; }
inline Status corrupt(std::string m) { return {StatusCode::kCorrupt, std::move(m)}; }
inline Status failed_precondition(std::string m) {
  return {StatusCode::kFailedPrecondition, std::move(m)};
}
inline Status resource_exhausted(std::string m) {
  return {StatusCode::kResourceExhausted, std::move(m)};
}
inline Status deadline_exceeded(std::string m) {
  return {StatusCode::kDeadlineExceeded, std::move(m)};
}
inline Status cancelled(std::string m) { return {StatusCode::kCancelled, std::move(m)}; }
inline Status device_error(std::string m) { return {StatusCode::kDeviceError, std::move(m)}; }
inline Status internal_error(std::string m) { return {StatusCode::kInternal, std::move(m)}; }

// A value, or the Status that says why there is none. Reading value() of an error aborts: check
// ok() first.
template <typename T>
class [[nodiscard]] StatusOr {
 public:
  StatusOr(T value) : rep_(std::in_place_index<0>, std::move(value)) {}        // NOLINT: implicit
  StatusOr(Status status) : rep_(std::in_place_index<1>, std::move(status)) {  // NOLINT: implicit
    if (std::get<1>(rep_).ok()) rep_.template emplace<1>(internal_error("ok status without value"));
  }

  bool ok() const { return rep_.index() == 0; }
  Status status() const { return ok() ? Status() : std::get<1>(rep_); }

  T& value() & { return check(), std::get<0>(rep_); }
  const T& value() const& { return check(), std::get<0>(rep_); }
  T&& value() && { return check(), std::get<0>(std::move(rep_)); }

  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

 private:
  void check() const {
    if (!ok()) std::abort();
  }
  std::variant<T, Status> rep_;
};

}  // namespace tandem

// Leaves the enclosing function with the error, if `expr` is one.
#define TANDEM_RETURN_IF_ERROR(expr)                                                           \
  do {                                                                                         \
    if (::tandem::Status tandem_status_ = (expr); !tandem_status_.ok()) return tandem_status_; \
  } while (false)

// TANDEM_ASSIGN_OR_RETURN(auto x, f()): x = f()'s value, or leaves with its error.
#define TANDEM_CONCAT_INNER_(a, b) a##b
#define TANDEM_CONCAT_(a, b) TANDEM_CONCAT_INNER_(a, b)
#define TANDEM_ASSIGN_OR_RETURN(lhs, expr) \
  TANDEM_ASSIGN_OR_RETURN_IMPL_(TANDEM_CONCAT_(tandem_or_, __LINE__), lhs, expr)
#define TANDEM_ASSIGN_OR_RETURN_IMPL_(tmp, lhs, expr) \
  auto tmp = (expr);                                  \
  if (!tmp.ok()) return tmp.status();                 \
  lhs = std::move(tmp).value()
