#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "intake/spool/spool_storage.h"

// For tests: lets a spool use a storage that outlives it, as a disk outlives a process.

namespace tributary {

class BorrowedStorage : public intake::SpoolStorage {
 public:
  explicit BorrowedStorage(intake::SpoolStorage& disk) : disk_(disk) {}

  absl::StatusOr<std::vector<std::string>> List() override { return disk_.List(); }
  absl::StatusOr<std::string> Read(const std::string& name) override { return disk_.Read(name); }
  absl::Status Append(const std::string& name, std::string_view bytes) override { return disk_.Append(name, bytes); }
  absl::Status Overwrite(const std::string& name, uint64_t offset, std::string_view bytes) override {
    return disk_.Overwrite(name, offset, bytes);
  }
  absl::Status Sync(const std::string& name) override { return disk_.Sync(name); }
  absl::Status Truncate(const std::string& name, uint64_t bytes) override { return disk_.Truncate(name, bytes); }
  absl::Status Remove(const std::string& name) override { return disk_.Remove(name); }

 private:
  intake::SpoolStorage& disk_;
};

}  // namespace tributary
