#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "base/fd.h"

namespace tributary {

// Bytes in a file that exists only in memory (memfd) and disappears with its last descriptor. System calls read and
// write it, so it counts as memory of the process's cgroup, but not as memory of the process itself. It is for large
// data that must wait, and for data that is passed to another process. ResourceExhausted if there is no descriptor or
// no memory.
class MemoryFile {
 public:
  static absl::StatusOr<MemoryFile> Create(const char* name);

  absl::Status Append(std::string_view bytes);
  // Returns all bytes of [offset, offset + size), which must be within the file.
  absl::StatusOr<std::string> Read(uint64_t offset, size_t size) const;
  uint64_t size() const { return size_; }
  Fd TakeDescriptor() && { return std::move(fd_); }

 private:
  Fd fd_;
  uint64_t size_ = 0;
};

}  // namespace tributary
