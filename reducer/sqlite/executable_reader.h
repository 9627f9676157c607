#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "reducer/sqlite/sqlite.h"
#include "reducer/store/store.h"

namespace tributary::store {

// Numbers the executables of a shard for its readers (ExecutableNo), without gaps from 1. So a list by number has about
// as many places as the table has rows. Ids of rows grow for ever, and a damaged row may have any id. Use it on any
// thread.
class ExecutableNumbers {
 public:
  explicit ExecutableNumbers(uint64_t generation) : generation_(generation) {}

  // Differs from that of all other objects for the shard.
  uint64_t generation() const { return generation_; }
  // Return the number of the executable's id. 0: it has none.
  uint32_t Find(uint32_t id);
  uint32_t Add(uint32_t id);
  // Returns the id with this number. 0: there is none.
  uint32_t IdOf(ExecutableNo no);
  size_t size();  // the highest number + 1

 private:
  const uint64_t generation_;
  std::mutex mutex_;
  absl::flat_hash_map<uint32_t, uint32_t> numbers_;  // guarded by mutex_
  std::vector<uint32_t> ids_ = {0};                  // index: number; guarded by mutex_
};

// The current numbers of a shard. All its readers share them, because they share cached tries. Removed executables keep
// their numbers. If they are more than the stored ones, later readers begin with new numbers. Use it on any thread.
class SharedExecutableNumbers {
 public:
  static constexpr size_t kUnusedMin = 4096;  // so many unused numbers do not matter

  std::shared_ptr<ExecutableNumbers> Get();
  // Replaces `numbers`, if they are the current ones and the file has only `rows` executables.
  void Renew(const std::shared_ptr<ExecutableNumbers>& numbers, size_t rows);

 private:
  std::mutex mutex_;
  std::shared_ptr<ExecutableNumbers> current_ = std::make_shared<ExecutableNumbers>(0);  // guarded by mutex_
};

// Reads the table of executables for one reader. Use it on one thread.
class ExecutableReader {
 public:
  // All must outlive the object.
  static absl::StatusOr<ExecutableReader> Prepare(Database& database, SharedExecutableNumbers& shared);

  // Cached tries contain numbers. They serve only readers with the same generation.
  uint64_t generation() const { return numbers_->generation(); }
  // Returns the number of the executable with this id, or 0 if it has no row.
  absl::StatusOr<ExecutableNo> NumberOf(uint32_t id);
  // Replaces the ids of executables in decoded frames by numbers.
  absl::Status Number(std::span<FrameRow> frames);
  // Returns all executables by their numbers. Leaves out rows with a damaged id, because no data can refer to them.
  absl::StatusOr<std::vector<ExecutableRow>> All();
  // Returns ExecutableRow{} if the executable was removed, or if its row is damaged.
  absl::StatusOr<ExecutableRow> Of(ExecutableNo no);

 private:
  ExecutableReader(Database& database, SharedExecutableNumbers& shared)
      : database_(&database), shared_(&shared), numbers_(shared.Get()) {}

  Database* database_;
  SharedExecutableNumbers* shared_;
  std::shared_ptr<ExecutableNumbers> numbers_;
  Statement find_, read_;
  absl::flat_hash_map<uint32_t, ExecutableNo> known_;  // of this reader: also ids without a row
};

}  // namespace tributary::store
