#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "reducer/store/memory_shard.h"
#include "reducer/store/store.h"

namespace tributary::store {

// Reads a copy of a shard, so it does not see later commits. It returns small chunks, so that tests fail if a caller
// expects all samples in one chunk.
class MemoryReader : public StoreReader {
 public:
  explicit MemoryReader(MemoryShard shard);

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
  void ForgetTexts() override {}
  absl::Status ScanSamples(TimeRange range, const ScanFilter& filter, const SampleVisitor& visit) override;
  absl::Status ScanThreadWeights(TimeRange range, const ScanFilter& filter, const WeightsVisitor& visit) override;
  absl::Status ScanSums(TimeRange range, const ScanFilter& filter, const SumVisitor& visit) override;
  absl::StatusOr<CommittedScan> ScanCommitted(const Cursor& cursor, size_t samples_max,
                                              const CommittedVisitor& visit) override;
  absl::Status ScanEvents(TimeRange range, const ScanFilter& filter, const EventVisitor& visit) override;
  absl::StatusOr<int64_t> ScanCommittedEvents(int64_t cursor, size_t events_max, const EventVisitor& visit) override;
  absl::StatusOr<uint64_t> CountPassedEvents(int64_t cursor) override;
  absl::StatusOr<int64_t> ScanCommittedLosses(int64_t cursor, size_t losses_max, const LossVisitor& visit) override;
  void CancelIf(std::function<bool()> is_cancelled) override { is_cancelled_ = std::move(is_cancelled); }
  absl::StatusOr<UnixNs> RawFrom() override;

 private:
  static constexpr size_t kChunkSamples = 7;
  struct Key {
    int64_t minute = 0;
    TypeNo type{1};
    std::string node_id;
    friend auto operator<=>(const Key&, const Key&) = default;
  };
  using Groups = std::map<Key, std::vector<const MemoryShard::Sample*>>;

  // Returns the shard's error, or DeadlineExceeded if the caller has cancelled.
  absl::Status Check() const;

  static int64_t NumberOf(const MemoryShard::Event& event, size_t index);
  bool IsExpired(const MemoryShard::Sample& sample) const;
  bool Has(const ScanFilter& filter, const MemoryShard::Sample& sample) const;
  template <typename Filter>
  absl::StatusOr<Groups> Group(Filter filter) const;

  MachineNo MachineOf(const std::string& node_id) const;
  StringId Intern(const std::string& text);

  MemoryShard shard_;
  std::function<bool()> is_cancelled_;
  std::vector<MachineRow> machines_;  // sorted by node id; index: MachineNo - 1
  // The texts of processes, which have no ids in the shard. Their ids follow those of the shard.
  std::map<std::string, StringId> interned_;
  std::vector<const std::string*> interned_texts_;
};

}  // namespace tributary::store
