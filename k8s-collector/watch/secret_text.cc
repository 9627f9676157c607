#include "k8s-collector/watch/secret_text.h"

#include <fcntl.h>

#include <cerrno>

#include "base/fd.h"
#include "base/status.h"
#include "base/trim.h"
#include "base/whole_file.h"

namespace tributary {
namespace {

constexpr size_t kSecretBytesMax = 1u << 20;

}  // namespace

absl::StatusOr<std::string> SecretText(const std::string& file, const std::string& text) {
  std::string out = text;
  if (!file.empty()) {
    const Fd fd(open(file.c_str(), O_RDONLY | O_CLOEXEC));
    if (!fd.valid()) return ErrnoStatus("open", file, errno);
    ASSIGN_OR_RETURN(out, ReadWholeFile(fd.get(), kSecretBytesMax, file));
  }
  return std::string(Trim(out, " \t\r\n"));
}

}  // namespace tributary
