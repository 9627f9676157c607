#include "base/open_beneath.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <cerrno>
#include <string_view>
#include <utility>

namespace tributary {
namespace {

constexpr int kFlags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;

Fd Refuse(int error) {
  errno = error;
  return Fd();
}

bool IsLink(int directory, const std::string& name) {
  struct stat info{};
  return fstatat(directory, name.c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(info.st_mode);
}

}  // namespace

Fd OpenBeneath(int directory, const std::string& path) {
  open_how how = {};
  how.flags = kFlags;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS;
  Fd file(static_cast<int>(syscall(SYS_openat2, directory, path.c_str(), &how, sizeof(how))));
  // EPERM: the answer of a seccomp filter that does not know the call. A file without permission gives EACCES.
  if (!file.valid() && (errno == ENOSYS || errno == EPERM)) return OpenWithoutLinks(directory, path);
  return file;
}

Fd OpenWithoutLinks(int directory, const std::string& path) {
  std::string_view rest(path);
  if (rest.starts_with('/')) return Refuse(EXDEV);
  Fd folder;  // the folder that contains `rest`; not valid: `directory` itself
  while (true) {
    const std::string name(rest.substr(0, rest.find('/')));
    if (name == "..") return Refuse(EXDEV);
    const int parent = folder.valid() ? folder.get() : directory;
    if (name.size() == rest.size()) return Fd(openat(parent, name.c_str(), kFlags | O_NOFOLLOW));
    rest.remove_prefix(name.size() + 1);
    if (name.empty()) continue;  // a double slash
    Fd next(openat(parent, name.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!next.valid()) return errno == ENOTDIR && IsLink(parent, name) ? Refuse(ELOOP) : std::move(next);
    folder = std::move(next);
  }
}

}  // namespace tributary
