#include "symbols/local_debug_files.h"

#include <fcntl.h>

#include <cerrno>

#include "base/hex.h"
#include "base/status.h"

namespace tributary {
namespace {

DebugFileSource::File OpenElf(const std::string& path) {
  // O_NONBLOCK: do not wait for the other end of a FIFO.
  Fd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd.valid()) return ErrnoStatus("open", path, errno);
  return ElfFile::Open(std::move(fd));
}

std::string FolderOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? std::string() : path.substr(0, slash + 1);
}

std::string Joined(std::string_view folder, std::string_view name) {
  if (name.starts_with('/') || folder.empty()) return std::string(name);
  std::string path(folder);
  if (!path.ends_with('/')) path += '/';
  return path.append(name);
}

}  // namespace

DebugFileSource LocalDebugFiles(std::string path) {
  DebugFileSource source;
  source.package = [path] { return OpenElf(path + ".dwp"); };
  source.split = [path](std::string_view comp_dir, std::string_view name) {
    DebugFileSource::File file = OpenElf(Joined(comp_dir, name));
    if (file.ok()) return file;
    return OpenElf(FolderOf(path) + std::string(name.substr(name.rfind('/') + 1)));
  };
  source.shared = [path](std::string_view link, std::string_view build_id) {
    DebugFileSource::File file = OpenElf(Joined(FolderOf(path), link));
    if (file.ok() || build_id.size() < 2) return file;
    const std::string hex = ToHex({reinterpret_cast<const uint8_t*>(build_id.data()), build_id.size()});
    return OpenElf("/usr/lib/debug/.build-id/" + hex.substr(0, 2) + "/" + hex.substr(2) + ".debug");
  };
  return source;
}

}  // namespace tributary
