#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "reducer/sqlite/damage_reports.h"
#include "reducer/sqlite/event_reader.h"
#include "reducer/sqlite/executable_reader.h"
#include "reducer/sqlite/process_reader.h"
#include "reducer/sqlite/sample_reader.h"
#include "reducer/sqlite/sqlite.h"
#include "reducer/sqlite/sum_reader.h"
#include "reducer/sqlite/trie_cache.h"
#include "reducer/sqlite/trie_reader.h"
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
  absl::StatusOr<std::map<MachineNo, MachineRow>> ListMachines() override;
  absl::StatusOr<std::map<TypeNo, SampleTypeInfo>> SampleTypes() override;
  absl::StatusOr<std::vector<ProcessRow>> Processes(TimeRange range, const ProcessSet* only) override;
  absl::Status ScanProcesses(TimeRange range, const ProcessVisitor& visit) override;
  absl::Status ScanProcessIds(TimeRange range, const ScanFilter& filter, const ProcessIdsVisitor& visit) override;
  absl::Status ScanIds(TimeRange range, const ScanFilter& filter, const IdsVisitor& visit) override;
  absl::StatusOr<std::vector<ThreadRow>> Threads(TimeRange range, const ProcessSet& of) override;
  absl::StatusOr<std::vector<ExecutableRow>> Executables() override;
  absl::StatusOr<ExecutableRow> Executable(ExecutableNo no) override;
  absl::StatusOr<TrieView> LoadTrie(Day day) override;
  absl::StatusOr<TriePart> LoadTriePart(Day day, std::span<const NodeNo> leaves) override;
  absl::StatusOr<std::string_view> Text(StringId id) override;
  void ForgetTexts() override;
  absl::Status ScanSamples(TimeRange range, const ScanFilter& filter, const SampleVisitor& visit) override;
  absl::Status ScanThreadWeights(TimeRange range, const ScanFilter& filter, const WeightsVisitor& visit) override;
  absl::Status ScanSums(TimeRange range, const ScanFilter& filter, const SumVisitor& visit) override;
  absl::StatusOr<CommittedScan> ScanCommitted(const Cursor& cursor, size_t samples_max,
                                              const CommittedVisitor& visit) override;
  absl::Status ScanEvents(TimeRange range, const ScanFilter& filter, const EventVisitor& visit) override;
  absl::StatusOr<int64_t> ScanCommittedEvents(int64_t cursor, size_t events_max, const EventVisitor& visit) override;
  absl::StatusOr<uint64_t> CountPassedEvents(int64_t cursor) override;
  absl::StatusOr<int64_t> ScanCommittedLosses(int64_t cursor, size_t losses_max, const LossVisitor& visit) override;
  void CancelIf(std::function<bool()> is_cancelled) override;
  absl::StatusOr<UnixNs> RawFrom() override;

 private:
  SqliteShardReader(uint32_t shard, const Shared& shared) : shard_(shard), shared_(shared) {}
  absl::Status Start(const std::string& path);
  absl::Status ScanProcesses(TimeRange range, const ProcessSet* only, const ProcessVisitor& visit);
  absl::Status ScanIds(TimeRange range, const ScanFilter& filter, PieceParts parts, const IdsVisitor& visit);
  absl::Status Describe(const StoredProcess& process, Slot last_slot, ProcessRow* row);

  const uint32_t shard_;
  const Shared shared_;
  std::unique_ptr<Database> database_;  // null: the shard has no file, and all readers below are unset
  Machines machines_;
  int64_t raw_from_ = 0;  // the watermark: a minute
  std::optional<StringReader> strings_;
  std::optional<ExecutableReader> executables_;
  std::optional<TrieReader> tries_;
  std::optional<SampleReader> samples_;
  std::optional<SumReader> sums_;
  std::optional<EventReader> events_;
};

}  // namespace tributary::store
