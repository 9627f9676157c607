#include "base/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>

#include "base/fd.h"
#include "base/status.h"

namespace tributary {

absl::StatusOr<MappedFile> MappedFile::Open(const std::string& path) {
  Fd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return ErrnoStatus("open", path, errno);
  return Map(fd.get(), path);
}

absl::StatusOr<MappedFile> MappedFile::Map(int fd, const std::string& name) {
  struct stat info{};
  if (fstat(fd, &info) != 0) return ErrnoStatus("stat", name, errno);
  if (info.st_size == 0) return MappedFile();
  const auto size = static_cast<size_t>(info.st_size);
  void* bytes = mmap(nullptr, size, PROT_READ, MAP_SHARED, fd, 0);
  if (bytes == MAP_FAILED) return ErrnoStatus("map", name, errno);
  return MappedFile(std::string_view(static_cast<const char*>(bytes), size));
}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(bytes_, other.bytes_);
  return *this;
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) munmap(const_cast<char*>(bytes_.data()), bytes_.size());
}

}  // namespace tributary
