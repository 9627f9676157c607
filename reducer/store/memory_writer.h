#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "base/clock.h"
#include "reducer/store/commit_counters.h"
#include "reducer/store/memory_shard.h"
#include "reducer/store/session_dictionary.h"
#include "reducer/store/store.h"
#include "reducer/store/trie_share.h"

namespace tributary::store {

// Writes a MemoryShard. Decides whether to refuse a batch before it stores anything of the batch. Storing cannot fail,
// so a group needs no transaction. For tests only: some look-ups are linear. Use a MemoryWriter on one thread.
class MemoryWriter : public ShardWriter {
 public:
  // `mutex` guards `shard`. `shard`, `mutex`, `clock` and `metrics` must outlive the writer.
  MemoryWriter(MemoryShard& shard, std::mutex& mutex, const StoreOptions& options, const Clock& clock,
               Metrics& metrics);

  absl::StatusOr<std::vector<Outcome>> Commit(std::span<const RowBatch> group) override;
  absl::StatusOr<SessionState> FindSession(std::span<const uint8_t> session_id) override;
  absl::Status Maintain(UnixNs now) override;

 private:
  using Session = MemoryShard::Session;
  // The part of a source's state that is lost when the store is closed.
  struct Live {
    std::unique_ptr<SessionDictionary> dictionary;  // nullptr: the next batch must start a new dictionary
    uint32_t unknown_closed = 0;                    // unknown sessions that this source has reported as ended
    uint64_t last_use = 0;
  };
  using NodeKey = std::tuple<Day, NodeNo, FrameKind, bool, ExecutableNo, uint64_t, uint32_t, StringId>;

  Outcome Apply(const RowBatch& batch);
  static bool TakeDefinitions(Live& live, const RowBatch& batch);
  void Store(Session& session, Live& live, const RowBatch& batch);
  void NoteBoot(Session& session, const ClockPair& clock);
  void Close(const RowBatch& batch, Session& sender, Live& live);
  Session* FindClosed(const Source& source, Session& sender, Live& live, bool may_be_new);
  void StoreSamples(Session& session, SessionDictionary& dictionary, const RowBatch& batch);
  void StoreSample(Session& session, SessionDictionary& dictionary, const Sample& sample, MemoryShard::Sample row);
  void StoreEvents(Session& session, const SessionDictionary& dictionary, const RowBatch& batch);
  TypeNo FindType(const SampleTypeInfo& info, const std::string& node_id);
  MappedNode MapNode(const Session& session, SessionDictionary& dictionary, NodeRef ref, Day day);
  ExecutableNo MapExecutable(SessionDictionary& dictionary, ExecutableRef ref);
  StringId MapString(std::string_view text);
  SessionDictionary::StoreThread MapThread(const Session& session, SessionDictionary& dictionary, ThreadRef ref,
                                           Slot slot);
  ProcessNo MapProcess(const Session& session, SessionDictionary& dictionary, ProcessRef ref, Slot slot);
  void NoteLosses(const std::map<Source, SessionTotals>& before);
  void ForgetUnused();
  void DropLeastUsed();

  MemoryShard& shard_;
  std::mutex& mutex_;
  const StoreOptions options_;
  const Clock& clock_;
  CommitCounters counters_;
  CommitTally tally_;
  std::map<Source, Live> live_;
  uint64_t uses_ = 0;
  // Indices of the shard's rows by their contents.
  absl::flat_hash_map<NodeKey, NodeNo> nodes_;
  std::map<ExecutableId, ExecutableNo> executables_;
  absl::flat_hash_map<std::string, StringId> strings_;
};

}  // namespace tributary::store
