#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "base/fd.h"

namespace tributary {

// Bytes in a file that exists in memory only (memfd), and is gone with its last descriptor. Read and written by system
// calls, they are no part of the process's own memory, but of its cgroup's. For what is large and waits, and for what
// another process is handed. Errors: ResourceExhausted: no descriptor or memory.
class MemoryFile {
 public:
  static absl::StatusOr<MemoryFile> Create(const char* name);

  absl::Status Append(std::string_view bytes);
  // All of [offset, offset + size), which lies within.
  absl::StatusOr<std::string> Read(uint64_t offset, size_t size) const;
  uint64_t size() const { return size_; }
  Fd TakeDescriptor() && { return std::move(fd_); }

 private:
  Fd fd_;
  uint64_t size_ = 0;
};

}  // namespace tributary
