#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <utility>
#include <variant>
#include <vector>

#include "reducer/ingest/batch_writer.h"
#include "reducer/store/session_dictionary.h"
#include "test/simulator/durable_store.h"
#include "test/simulator/rules.h"
#include "test/simulator/world.h"

namespace tributary::sim {

// A store writer on simulated time. It takes a group of batches from its queue and commits the whole group or nothing
// some time later. If the disk is full it tries again. It reports to the shard a moment after the commit. Its rules are
// those of the real writer. Its dictionaries and its queue are lost with the process.
class SimWriter final : public ingest::BatchWriter {
 public:
  struct Options {
    size_t queue_batches_max = 16;
    size_t group_batches_max = 8;
    size_t dictionaries_max = 4;  // sessions whose dictionaries are kept
    int64_t commit_ns_max = 20 * kNsPerMs;
    Break broken = Break::kNone;
  };
  struct Callbacks {
    std::function<void(const std::vector<ingest::CommittedBatch>&)> committed;
    std::function<void(const SessionId&, uint64_t durable_sequence)> found;
  };
  SimWriter(SimProcess& process, DurableStore& store, Options options, Callbacks callbacks)
      : process_(process), store_(store), options_(options), callbacks_(std::move(callbacks)) {}

  void set_disk_full(bool full) { disk_full_ = full; }
  void set_slow(int64_t extra_ns) { extra_ns_ = extra_ns; }

  bool HasRoom() const override { return queue_.size() < options_.queue_batches_max; }
  bool TrySubmit(RowBatch batch) override;
  bool TryFind(const SessionId& id) override;
  void Maintain() override {}

 private:
  using Job = std::variant<RowBatch, SessionId>;
  struct Held {
    std::unique_ptr<store::SessionDictionary> dictionary;
    uint64_t used = 0;
  };

  void Work();
  void Commit();
  std::vector<ingest::CommittedBatch> Apply(const std::vector<RowBatch>& group, bool marks_only);
  store::ShardWriter::Outcome ApplyOne(const RowBatch& batch, bool marks_only);
  bool TakeDefinitions(Held& held, const RowBatch& batch);
  RowBatch AsTaken(RowBatch batch);
  void Store(DurableStore::Session& session, store::SessionDictionary& dictionary, const RowBatch& batch);
  void StoreEvents(DurableStore::Session& session, store::SessionDictionary& dictionary, const RowBatch& batch);
  void ReportMark(const SessionId& id);
  void Report(std::vector<ingest::CommittedBatch> done);

  SimProcess& process_;
  DurableStore& store_;
  const Options options_;
  const Callbacks callbacks_;
  std::deque<Job> queue_;
  std::vector<RowBatch> group_;  // being committed
  bool working_ = false, disk_full_ = false;
  int64_t extra_ns_ = 0;
  std::map<SessionId, Held> held_;
  uint64_t uses_ = 0;
};

}  // namespace tributary::sim
