#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/functional/function_ref.h"
#include "reducer/sqlite/damage_reports.h"
#include "reducer/sqlite/event_reader.h"
#include "reducer/sqlite/executable_reader.h"
#include "reducer/sqlite/process_reader.h"
#include "reducer/sqlite/sqlite.h"
#include "reducer/sqlite/trie_cache.h"
#include "reducer/sqlite/trie_pieces.h"
#include "reducer/store/store.h"

namespace tributary::store {

// Reads one shard's file through its own connection, in one read transaction, so it does not see later commits. Readers
// should be short-lived: while a reader is open, the write-ahead log behind its snapshot cannot shrink.
class SqliteShardReader : public StoreReader {
 public:
  // What the readers of a shard share. `cache` serves all shards.
  struct Shared {
    TrieCache& cache;
    SharedExecutableNumbers& executables;
    DamageReports& damage;  // damaged pieces are skipped and reported here
  };
  // Reads an empty shard if the file does not exist, or if the writer has not yet updated the file's schema. All
  // objects in `shared` must outlive the reader.
  static absl::StatusOr<std::unique_ptr<StoreReader>> Open(const std::string& path, uint32_t shard,
                                                           const Shared& shared);

  absl::StatusOr<std::vector<NodeStatus>> Nodes() override;
  absl::StatusOr<std::map<TypeNo, SampleTypeInfo>> SampleTypes() override;
  absl::StatusOr<std::vector<ProcessRow>> Processes(TimeRange range, const ProcessSet* only) override;
  absl::Status ScanProcesses(TimeRange range, const ProcessVisitor& visit) override;
  absl::StatusOr<std::vector<ThreadRow>> Threads(TimeRange range, const ProcessSet& of) override;
  absl::StatusOr<std::vector<ExecutableRow>> Executables() override;
  absl::StatusOr<std::shared_ptr<const Trie>> LoadTrie(Day day) override;
  absl::StatusOr<TriePart> LoadTriePart(Day day, std::span<const NodeNo> leaves) override;
  absl::StatusOr<std::string_view> Text(StringId id) override;
  absl::Status ScanSamples(TimeRange range, const SampleVisitor& visit) override;
  absl::Status ScanSums(TimeRange range, const SumVisitor& visit) override;
  absl::StatusOr<CommittedScan> ScanCommitted(const Cursor& cursor, size_t samples_max,
                                              const CommittedVisitor& visit) override;
  absl::Status ScanEvents(TimeRange range, const EventVisitor& visit) override;
  absl::StatusOr<int64_t> ScanCommittedEvents(int64_t cursor, size_t events_max, const EventVisitor& visit) override;

 private:
  SqliteShardReader(uint32_t shard, const Shared& shared)
      : shard_(shard), cache_(shared.cache), executable_numbers_(shared.executables), damage_(shared.damage) {}
  absl::Status Start(const std::string& path);
  absl::Status ScanProcesses(TimeRange range, const ProcessSet* only, const ProcessVisitor& visit);
  absl::Status Describe(const StoredProcess& process, Slot last_slot, ProcessRow* row);
  // Returns the machine's node id, or "" if no row has this machine.
  absl::StatusOr<std::string_view> NodeIdOf(int64_t machine);
  // The ids of the first and the last piece of a day's trie, as far as this reader's snapshot contains them. {0, 0}:
  // there are no pieces.
  struct Pieces {
    int64_t first = 0, last = 0, newest_gap = 0;
  };
  absl::StatusOr<Pieces> PiecesOf(Day day);
  // Returns what the cache contains of the day's trie, if this reader can continue after its newest piece.
  absl::StatusOr<TrieCache::Snapshot> FindTrie(const TrieCache::Key& key, const Pieces& pieces);
  // Decodes the day's pieces that have an id above `after`, and appends them to `to`. `before`: as for TrieAppender.
  // Returns false if a piece is damaged: then `to` must not be used by readers that see a later state of the file.
  absl::StatusOr<bool> AppendPieces(Day day, int64_t after, const TrieEnds& before, Trie* to);
  // Decodes the columns of a row, which begin with raw_bytes in the column `raw_bytes_column`. Returns false if they
  // are damaged, after it has reported the row.
  absl::StatusOr<bool> DecodeOrReport(const Statement& row, PieceKind kind, int id_column, int raw_bytes_column,
                                      absl::FunctionRef<absl::Status(std::string_view)> decode);
  absl::StatusOr<bool> IsGauge(TypeNo type);
  class LateSnapshots;
  absl::Status ScanSumRows(int64_t first_minute, int64_t last_minute, const SumVisitor& visit);
  absl::Status SumRaw(TimeRange range, int64_t first_minute, int64_t last_minute, const SumVisitor& visit);
  // Visits the stored samples of the minutes [first_minute, last_minute] that have not expired. Cuts each chunk to
  // `range`.
  absl::Status ScanRaw(TimeRange range, int64_t first_minute, int64_t last_minute, const SampleVisitor& visit);

  const uint32_t shard_;
  TrieCache& cache_;
  SharedExecutableNumbers& executable_numbers_;
  DamageReports& damage_;
  std::optional<TriePieces> trie_pieces_;  // unset: there is no file
  std::unique_ptr<Database> database_;     // null: the shard has no file
  int64_t closed_before_ = 0, raw_from_ = 0;
  Machines machines_;
  std::optional<StringReader> strings_;
  std::optional<ExecutableReader> executables_;        // unset: there is no file
  std::optional<EventReader> events_;                  // unset: there is no file
  std::optional<absl::flat_hash_set<TypeNo>> gauges_;  // set at the first use
};

}  // namespace tributary::store
