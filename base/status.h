#pragma once

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

// Errors as absl::Status, and checks for bugs. ToAbsl and ToStd convert between std::string_view and absl::string_view,
// which are different types in Debian's Abseil.

namespace tributary {

inline absl::string_view ToAbsl(std::string_view s) { return {s.data(), s.size()}; }
inline std::string_view ToStd(absl::string_view s) { return {s.data(), s.size()}; }

inline absl::Status Error(absl::StatusCode code, std::string_view message) {
  return absl::Status(code, ToAbsl(message));
}

// Returns an error with a message such as "open /proc/42/maps: ESRCH (No such process)". The status code depends on
// `error`, an errno value: NotFound (ENOENT, ESRCH, ENODEV, ENXIO), PermissionDenied (EPERM, EACCES, EROFS),
// ResourceExhausted (ENOSPC, EMFILE, ENFILE, ENOMEM, EDQUOT), Unavailable (EAGAIN, EINTR, ECONN*, ENETUNREACH,
// EHOSTUNREACH, EPIPE, ETIMEDOUT), AlreadyExists (EEXIST, EADDRINUSE), InvalidArgument (EINVAL), Internal (any other
// value).
absl::Status ErrnoStatus(std::string_view operation, std::string_view object, int error);

// Returns the same status with "context: " before its message. Returns OK for OK.
absl::Status WithContext(const absl::Status& status, std::string_view context);

// Returns the message without the status code. For logs and other texts for people.
inline std::string Message(const absl::Status& status) { return std::string(status.message()); }

// Prints the file, line and expression of a failed TRIBUTARY_CHECK, and aborts. Use TRIBUTARY_CHECK only for conditions
// that a bug in this program would violate. Errors with another cause must be an absl::Status.
[[noreturn]] void CheckFailed(const char* file, int line, const char* expression);

}  // namespace tributary

#define TRIBUTARY_CHECK(expression) \
  (static_cast<bool>(expression) ? void() : ::tributary::CheckFailed(__FILE__, __LINE__, #expression))

#define TRIBUTARY_CONCAT_INNER(a, b) a##b
#define TRIBUTARY_CONCAT(a, b) TRIBUTARY_CONCAT_INNER(a, b)

#define RETURN_IF_ERROR(expression)                                                                    \
  do {                                                                                                 \
    if (absl::Status tributary_status = (expression); !tributary_status.ok()) return tributary_status; \
  } while (0)

#define ASSIGN_OR_RETURN(lhs, expression) \
  ASSIGN_OR_RETURN_IMPL(TRIBUTARY_CONCAT(tributary_or_, __LINE__), lhs, expression)
#define ASSIGN_OR_RETURN_IMPL(tmp, lhs, expression) \
  auto tmp = (expression);                          \
  if (!tmp.ok()) return std::move(tmp).status();    \
  lhs = *std::move(tmp)
