#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "base/status.h"
#include "intake/spool/spool_storage.h"

// For tests: lets a spool use a storage that outlives it, as a disk outlives a process.

namespace tributary {

// What a BorrowedStorage does before it uses the disk.
struct DiskFaults {
  uint64_t failing_reads = 0;  // a read fails, and the number becomes smaller by 1
  std::function<void()> on_append = [] {}, on_sync = [] {}, on_remove = [] {};  // for example, time passes
};

class BorrowedStorage : public intake::SpoolStorage {
 public:
  BorrowedStorage(intake::SpoolStorage& disk, DiskFaults& faults) : disk_(disk), faults_(faults) {}

  absl::StatusOr<std::vector<std::string>> List() override { return disk_.List(); }
  absl::StatusOr<std::string> Read(const std::string& name) override {
    if (faults_.failing_reads > 0) {
      --faults_.failing_reads;
      return Error(absl::StatusCode::kResourceExhausted, "open " + name + ": EMFILE");
    }
    return disk_.Read(name);
  }
  absl::StatusOr<uint64_t> Size(const std::string& name) override { return disk_.Size(name); }
  absl::Status Append(const std::string& name, std::string_view bytes) override {
    faults_.on_append();
    return disk_.Append(name, bytes);
  }
  absl::Status Overwrite(const std::string& name, uint64_t offset, std::string_view bytes) override {
    return disk_.Overwrite(name, offset, bytes);
  }
  absl::Status Sync(const std::string& name) override {
    faults_.on_sync();
    return disk_.Sync(name);
  }
  absl::Status Truncate(const std::string& name, uint64_t bytes) override { return disk_.Truncate(name, bytes); }
  absl::Status Remove(const std::string& name) override {
    faults_.on_remove();
    return disk_.Remove(name);
  }

 private:
  intake::SpoolStorage& disk_;
  DiskFaults& faults_;
};

}  // namespace tributary
