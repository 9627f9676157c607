#include "base/status.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace tributary {
namespace {

absl::StatusCode CodeOf(int error) {
  switch (error) {
    case ENOENT:
    case ESRCH:
    case ENODEV:
    case ENXIO:
      return absl::StatusCode::kNotFound;
    case EPERM:
    case EACCES:
    case EROFS:
      return absl::StatusCode::kPermissionDenied;
    case ENOSPC:
    case EMFILE:
    case ENFILE:
    case ENOMEM:
    case EDQUOT:
      return absl::StatusCode::kResourceExhausted;
    case EAGAIN:
    case EINTR:
    case ECONNREFUSED:
    case ECONNRESET:
    case ECONNABORTED:
    case ENETUNREACH:
    case EHOSTUNREACH:
    case EPIPE:
    case ETIMEDOUT:
      return absl::StatusCode::kUnavailable;
    case EEXIST:
    case EADDRINUSE:
      return absl::StatusCode::kAlreadyExists;
    case EINVAL:
      return absl::StatusCode::kInvalidArgument;
    default:
      return absl::StatusCode::kInternal;
  }
}

}  // namespace

absl::Status ErrnoStatus(std::string_view operation, std::string_view object, int error) {
  const char* name = strerrorname_np(error);
  return Error(CodeOf(error), fmt::format("{} {}: {} ({})", operation, object, name ? name : "errno", strerror(error)));
}

absl::Status WithContext(const absl::Status& status, std::string_view context) {
  if (status.ok()) return status;
  return Error(status.code(), fmt::format("{}: {}", context, ToStd(status.message())));
}

void CheckFailed(const char* file, int line, const char* expression) {
  fprintf(stderr, "%s:%d: bug: %s does not hold\n", file, line, expression);
  abort();
}

}  // namespace tributary
