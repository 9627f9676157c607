#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "base/alarm.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "base/stream.h"
#include "intake/server/server_options.h"
#include "intake/server/server_session.h"
#include "reducer/ingest/batch_writer.h"
#include "reducer/ingest/ended_sessions.h"
#include "reducer/ingest/metadata_desk.h"
#include "reducer/ingest/old_days.h"
#include "reducer/ingest/queue_share.h"
#include "reducer/ingest/session_memory.h"
#include "reducer/ingest/symbol_desk.h"
#include "reducer/ingest/symbol_requests.h"
#include "reducer/ingest/waiting_sessions.h"
#include "reducer/metadata/metadata_sink.h"
#include "reducer/metadata/opt_outs.h"

namespace tributary::ingest {

// Makes the decisions of a shard, without its threads: which sessions are open or remembered, which batch is passed to
// the writer, which session must stop reading, which batch is acknowledged. Only OnCommitted acknowledges a batch. Runs
// on one thread: that of the shard's loop, or that of a simulation.
class ShardCore : private intake::SessionOwner {
 public:
  struct Options {
    intake::ServerOptions server;  // of its sessions
    QueueShare::Options queue;     // of the writer
    OldDays::Options old_days;
    size_t sessions_remembered_max = 16'384;
    size_t session_memory_bytes_max = 256u << 20;  // of decoders and executables; checked at each tick
    uint64_t tick_ms = 1'000;                      // maintenance, symbol requests
    MetadataDesk* metadata = nullptr;   // must outlive the core; null: metadata of hosts and pods is discarded
    const OptOuts* opt_outs = nullptr;  // must outlive the core; null: nodes are not told which containers opted out
  };
  // Callbacks must not destroy the core.
  struct Callbacks {
    std::function<void(const std::string& node_id)> connected, disconnected;  // a session of that node
    std::function<void()> closed;                                             // called after CloseAll (see below)
  };
  // A new connection. Its Hello was already read. `rest` contains the bytes that were received after the Hello.
  using Arrival = intake::ServerSession::Arrival;

  // All these objects must outlive the core.
  struct Dependencies {
    AlarmSource& alarms;
    BatchWriter& writer;
    SymbolDesk& symbols;
    const Clock& clock;
    Metrics& metrics;
  };
  ShardCore(const Dependencies& dependencies, Options options, Callbacks callbacks);
  ~ShardCore() override;

  void Start();
  void Accept(Arrival arrival);
  void OnFound(const SessionId& id, const absl::StatusOr<uint64_t>& durable_sequence);
  void OnCommitted(const std::vector<CommittedBatch>& done);

  void TakeNoMore();  // accepts no more batches and connections
  // Sends Goodbye to all collectors. Calls `closed` when all connections are closed, but after 1.5 s at the latest.
  void CloseAll();

 private:
  static constexpr uint64_t kNoOptOuts = UINT64_MAX;  // the node has no list of this connection

  // A connected collector.
  struct Live {
    std::unique_ptr<intake::ServerSession> session;
    std::shared_ptr<const SessionInfo> info;
    uint64_t oldest_held = 1;
    uint64_t counted_bytes = 0;      // part of bytes_received that batches already counted
    size_t batch_bytes = 0;          // memory of its last batch; the next batch probably needs as much
    bool metadata_waits = false;     // true: its metadata wait, because the desk has no space for them
    MonotonicNs old_days_until;      // other than 0: its batch waits until then, because of the limit of old days
    uint64_t opt_outs = kNoOptOuts;  // version of the list that the node has
    MetadataSender sender;
    bool registered = false;  // the connection was reported to `callbacks_` and `options_.metadata`
    SymbolRequests symbols;
    uint64_t asker = 0;   // number of this connection
    std::string peer_id;  // intake/server/peer_id.h
  };

  // intake::SessionOwner
  absl::StatusOr<Known> OnHello(const intake::Hello& hello) override;
  bool HasRoom(const SessionInfo& info) override;
  absl::Status OnBatch(const SessionInfo& info, intake::IncomingBatch batch) override;
  void OnSymbols(const SessionInfo& info, const ExecutableId& id, absl::StatusOr<std::string> encoded_table) override;
  void OnSymbolDigest(const SessionInfo& info, const ExecutableId& id,
                      const absl::StatusOr<SymbolDigest>& digest) override;
  void OnSymbolProgress(const SessionInfo& info) override;
  bool OnMetadata(const SessionInfo& info, MetadataUpdate update) override;
  void OnClosed(const SessionInfo& info, const absl::Status& why) override;

  void StartSession(Arrival arrival);
  bool HasRoom(Live& live, size_t memory_bytes);
  bool TakesDaysOf(Live& live, const RowBatch& batch);
  void Remember(const SessionInfo& info, const RowBatch& batch);
  void RefuseBatch(const CommittedBatch& done, Live& live);
  void CutOff(const SessionInfo& sender, const std::vector<ClosedSession>& ended);
  static SymbolNode NodeOf(const Live& live);
  void CountMemory(const Live& live, SessionMemory::Entry& entry);
  void LimitMemory();
  void AskForSymbols(const SessionId& id, Live& live);
  void WantReleased();
  void ResumeReading(const absl::flat_hash_set<std::string>& committed_nodes);
  void TellOptOuts(Live& live);
  void OnTick();
  absl::Status Register(Live& live);
  void RetryMetadata();
  void Disconnect(Live& live);

  AlarmSource& alarms_;
  const Options options_;
  BatchWriter& writer_;
  SymbolDesk& symbols_;
  const Clock& clock_;
  Metrics& metrics_;
  const Callbacks callbacks_;
  Counter &held_back_, &over_share_, &over_old_days_;

  // These maps are ordered by key, so that a simulation with the same seed always runs in the same way.
  std::map<SessionId, Live> live_;
  std::map<SessionId, Arrival> looked_up_;  // connections whose session is being looked up in the store
  EndedSessions ended_;
  SessionMemory memory_;
  QueueShare share_;
  WaitingSessions waiting_;
  OldDays old_days_;
  uint64_t askers_ = 0;
  uint64_t opt_outs_ = 0;  // OptOuts::version at the last tick
  bool stopping_ = false, closing_all_ = false;
  std::unique_ptr<Alarm> tick_, closing_, metadata_retry_;
};

}  // namespace tributary::ingest
