#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace tributary::intake {

// No file of a spool is longer: a segment and one more batch are a few MiB.
constexpr uint64_t kSpoolFileBytesMax = 128u << 20;

// The files of one directory, as a spool needs them; a simulation has its own, which tears, fills up and crashes
// (fake_spool_storage_testing.h). ResourceExhausted: the disk is full. NotFound: no such file.
class SpoolStorage {
 public:
  virtual ~SpoolStorage() = default;
  virtual absl::StatusOr<std::vector<std::string>> List() = 0;
  // OutOfRange: longer than kSpoolFileBytesMax.
  virtual absl::StatusOr<std::string> Read(const std::string& name) = 0;
  // Adds to the end of the file, which it makes if need be: all or an error, after which any part, but not all, may
  // have been written.
  virtual absl::Status Append(const std::string& name, std::string_view bytes) = 0;
  // Puts other bytes in the place of some that the file has. It needs no more room on the disk. After an error any part
  // may have been written.
  virtual absl::Status Overwrite(const std::string& name, uint64_t offset, std::string_view bytes) = 0;
  virtual absl::Status Sync(const std::string& name) = 0;  // the file's bytes and its name survive power loss
  virtual absl::Status Truncate(const std::string& name, uint64_t bytes) = 0;
  virtual absl::Status Remove(const std::string& name) = 0;  // also after power loss; a file that is not there: OK
};

}  // namespace tributary::intake
