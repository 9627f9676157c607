#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "profile/executable_id.h"
#include "profile/sample_types.h"
#include "reducer/store/store.h"

namespace tributary {

// A copy of the samples that one shard committed after a cursor, with all data from the store that is needed to send
// them. Because it is a copy, the store is not blocked while the exporter waits for symbols and sends requests. A scan
// uses about 50 bytes of memory per sample. Used by one thread.
class ShardScan {
 public:
  ShardScan() = default;
  ShardScan(const ShardScan&) = delete;
  ShardScan& operator=(const ShardScan&) = delete;

  // Reads the samples after `cursor`, about `samples_max` at most. Reads fewer if the samples' own attributes
  // (attributes of single samples) are large. If the trie with the stacks of a sample's day was already deleted,
  // because it was too old, the sample has an empty stack.
  static absl::StatusOr<std::unique_ptr<ShardScan>> Read(store::StoreReader& reader, const store::Cursor& cursor,
                                                         size_t samples_max);

  // The samples' processes, each once. Unset: the store does not know the process.
  const std::vector<std::optional<store::ProcessRow>>& processes() const { return processes_; }
  store::TimeRange range() const { return range_; }  // of the samples
  const store::CommittedScan& committed() const { return committed_; }
  store::Cursor begin() const { return CursorAt(0, 0); }  // of the first row, or behind the scan if it has no rows
  size_t row_count() const { return row_count_; }
  bool is_cut() const { return is_cut_; }  // fewer samples were read, because their own attributes are large
  // The executables that occur in the samples' stacks, each once.
  const std::vector<ExecutableId>& executables() const { return executables_; }

 private:
  friend class RequestMaker;
  struct Chunk {
    std::string node_id;
    store::SampleColumns columns;
    std::vector<uint32_t> threads;  // of each row: index in threads_
    store::Cursor begin;            // of the first row
  };
  struct Thread {
    uint32_t process = 0;  // index in processes_
    store::ThreadNo no;
    std::optional<store::ThreadRow> row;  // unset: the store does not know the thread
  };

  absl::Status Collect(store::StoreReader& reader, const store::Cursor& cursor, size_t samples_max);
  store::Cursor CursorAt(size_t chunk, size_t row) const;
  absl::Status LoadTries(store::StoreReader& reader);
  void NumberThreads();
  absl::Status LoadDefinitions(store::StoreReader& reader);
  absl::Status LoadOwn(store::StoreReader& reader);
  absl::Status FindExecutables(store::StoreReader& reader);

  std::vector<Chunk> chunks_;
  store::TimeRange range_;
  size_t row_count_ = 0;
  bool is_cut_ = false;
  store::CommittedScan committed_;
  // Rows refer to threads by index, and threads to processes, so that a sample needs no hash look-up.
  std::vector<std::optional<store::ProcessRow>> processes_;
  std::vector<Thread> threads_;
  absl::flat_hash_map<store::ProcessNo, uint32_t> process_indices_;
  absl::flat_hash_map<store::StringId, std::string> own_;  // own attributes of samples, as they arrived
  size_t own_bytes_ = 0;
  absl::flat_hash_map<store::StringId, std::string> frame_names_;  // names that were sent with frames
  std::vector<store::ExecutableRow> executable_rows_;
  std::map<store::TypeNo, SampleTypeInfo> types_;
  std::map<store::Day, store::Trie> tries_;  // the samples' part of each day's trie
  std::vector<ExecutableId> executables_;
};

}  // namespace tributary
