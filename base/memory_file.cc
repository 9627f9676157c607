#include "base/memory_file.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>

#include "base/status.h"

namespace tributary {

absl::StatusOr<MemoryFile> MemoryFile::Create(const char* name) {
  MemoryFile file;
  file.fd_.Reset(memfd_create(name, MFD_CLOEXEC));
  if (!file.fd_.valid()) return ErrnoStatus("memfd_create", name, errno);
  return file;
}

absl::Status MemoryFile::Append(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = pwrite(fd_.get(), bytes.data(), bytes.size(), static_cast<off_t>(size_));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return ErrnoStatus("write", "memory file", n < 0 ? errno : ENOSPC);
    size_ += static_cast<uint64_t>(n);
    bytes.remove_prefix(static_cast<size_t>(n));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> MemoryFile::Read(uint64_t offset, size_t size) const {
  TRIBUTARY_CHECK(offset <= size_ && size <= size_ - offset);
  std::string bytes(size, '\0');
  for (size_t done = 0; done < size;) {
    const ssize_t n = pread(fd_.get(), bytes.data() + done, size - done, static_cast<off_t>(offset + done));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return ErrnoStatus("read", "memory file", n < 0 ? errno : EIO);
    done += static_cast<size_t>(n);
  }
  return bytes;
}

}  // namespace tributary
