#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "base/fd.h"

namespace tributary {

// A file that exists only in memory (memfd). The kernel frees it when its last descriptor is closed. It is not mapped,
// so it counts as memory of the process's cgroup, but not of the process. Use it for large data that must be kept for
// some time, or that is passed to another process. Create and Append return ResourceExhausted if no descriptor or no
// memory is left.
class MemoryFile {
 public:
  static absl::StatusOr<MemoryFile> Create(const char* name);

  absl::Status Append(std::string_view bytes);
  // Returns the bytes [offset, offset + size). This range must be within the file.
  absl::StatusOr<std::string> Read(uint64_t offset, size_t size) const;
  uint64_t size() const { return size_; }
  Fd TakeDescriptor() && { return std::move(fd_); }

 private:
  Fd fd_;
  uint64_t size_ = 0;
};

}  // namespace tributary
