#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/status.h"

namespace tributary::intake {

// The limit for the size of a spool's file. Segments are much smaller: a segment and one more batch have a few MiB.
constexpr uint64_t kSpoolFileBytesMax = 128u << 20;

// The operations on files that a spool needs, in one directory. Tests use an implementation that simulates partial
// writes, a full disk and crashes (fake_spool_storage_testing.h). ResourceExhausted: the disk is full. NotFound: there
// is no such file.
class SpoolStorage {
 public:
  virtual ~SpoolStorage() = default;
  virtual absl::StatusOr<std::vector<std::string>> List() = 0;
  // OutOfRange if the file is longer than kSpoolFileBytesMax.
  virtual absl::StatusOr<std::string> Read(const std::string& name) = 0;
  struct Start {
    std::string bytes;
    uint64_t file_bytes = 0;
  };
  // Returns the first bytes of a file, at most `bytes_max`, and its size. A file of any size is allowed.
  virtual absl::StatusOr<Start> ReadStart(const std::string& name, size_t bytes_max) {
    ASSIGN_OR_RETURN(const std::string bytes, Read(name));
    return Start{bytes.substr(0, bytes_max), bytes.size()};
  }
  // Returns the size of a file, also if the file cannot be opened, for example because too many files are open.
  virtual absl::StatusOr<uint64_t> Size(const std::string& name) {
    ASSIGN_OR_RETURN(const std::string bytes, Read(name));
    return bytes.size();
  }
  // Appends to the end of the file, and creates the file if it does not exist. After an error the file may have a part
  // of `bytes`, but not all of them.
  virtual absl::Status Append(const std::string& name, std::string_view bytes) = 0;
  // Overwrites bytes that the file already has. Needs no more space on the disk. After an error any part of `bytes` may
  // have been written.
  virtual absl::Status Overwrite(const std::string& name, uint64_t offset, std::string_view bytes) = 0;
  virtual absl::Status Sync(
      const std::string& name) = 0;  // afterwards the file's bytes and its name survive power loss
  // Syncs several files. The directory needs to be synced only once. Returns the first error.
  virtual absl::Status SyncAll(const std::vector<std::string>& names) {
    absl::Status first;
    for (const std::string& name : names) first.Update(Sync(name));
    return first;
  }
  virtual absl::Status Truncate(const std::string& name, uint64_t bytes) = 0;
  virtual absl::Status Remove(
      const std::string& name) = 0;  // the removal survives power loss; OK if there is no such file
};

}  // namespace tributary::intake
