#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "base/status.h"
#include "intake/spool/spool_storage.h"

// For tests: lets a spool use a storage that outlives it, as a disk outlives a process.

namespace tributary {

class BorrowedStorage : public intake::SpoolStorage {
 public:
  // While `*failing_reads` is above 0, a read fails, and the number becomes smaller by 1.
  explicit BorrowedStorage(intake::SpoolStorage& disk, uint64_t* failing_reads = nullptr)
      : disk_(disk), failing_reads_(failing_reads) {}

  absl::StatusOr<std::vector<std::string>> List() override { return disk_.List(); }
  absl::StatusOr<std::string> Read(const std::string& name) override {
    if (failing_reads_ != nullptr && *failing_reads_ > 0) {
      --*failing_reads_;
      return Error(absl::StatusCode::kResourceExhausted, "open " + name + ": EMFILE");
    }
    return disk_.Read(name);
  }
  absl::Status Append(const std::string& name, std::string_view bytes) override { return disk_.Append(name, bytes); }
  absl::Status Overwrite(const std::string& name, uint64_t offset, std::string_view bytes) override {
    return disk_.Overwrite(name, offset, bytes);
  }
  absl::Status Sync(const std::string& name) override { return disk_.Sync(name); }
  absl::Status Truncate(const std::string& name, uint64_t bytes) override { return disk_.Truncate(name, bytes); }
  absl::Status Remove(const std::string& name) override { return disk_.Remove(name); }

 private:
  intake::SpoolStorage& disk_;
  uint64_t* const failing_reads_;
};

}  // namespace tributary
