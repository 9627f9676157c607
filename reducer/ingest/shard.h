#pragma once

#include <atomic>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/loop.h"
#include "base/metrics.h"
#include "intake/server.h"
#include "reducer/ingest/session_memory.h"
#include "reducer/ingest/symbol_requests.h"
#include "reducer/ingest/symbol_worker.h"
#include "reducer/ingest/writer_thread.h"
#include "reducer/store/store.h"
#include "reducer/symbolizer/symbol_store.h"

namespace tributary::ingest {

// One slice of the ingest: an event loop on a thread of its own that owns its nodes' sessions, and the store-writer
// thread behind it. A batch goes from the loop to the writer through a bounded queue; when it is full, sessions stop
// reading until there is room. After the commit the acknowledgements are posted back to the loop.
//
// Methods may be called from any one thread where nothing else is said.
class Shard : private intake::SessionOwner {
 public:
  struct Options {
    uint32_t number = 0;
    intake::ServerOptions server;  // of its sessions
    WriterThread::Options writer;
    SymbolWorker::Options symbols;
    size_t sessions_remembered_max = 16'384;
    uint64_t tick_ms = 1'000;  // maintenance, symbol requests
  };

  // What is lent outlives the shard. Nothing runs until Start, apart from the writer.
  Shard(Options options, std::unique_ptr<store::ShardWriter> writer, SymbolStore& symbols, const Clock& clock,
        Metrics& metrics);
  ~Shard();  // Stop

  void Start();
  // Takes no more batches and commits what is queued.
  void Drain();
  // Drains, acknowledges what was committed, says Goodbye, and ends the threads. Takes a second or two at most, unless
  // a commit hangs.
  void Stop();

  // Before Start, to put an acceptor on it; then on its thread.
  Loop& loop() { return loop_; }

  // Any thread: a connection of a node of this shard, whose Hello was read.
  void Accept(intake::PendingSession session);
  // Any thread: whether a session of that node is open.
  bool IsConnected(std::string_view node_id) const;

 private:
  // A connected collector.
  struct Live {
    std::unique_ptr<intake::ServerSession> session;
    std::shared_ptr<const SessionInfo> info;
    uint64_t oldest_held = 1;
    uint64_t counted_bytes = 0;  // of bytes_received, already with a batch
    bool held_back = false;      // its batch found no room
    bool registered = false;     // counted in connected_
    SymbolRequests symbols;
  };

  // intake::SessionOwner, on the loop
  absl::StatusOr<Known> OnHello(const intake::Hello& hello) override;
  absl::Status OnBatch(const SessionInfo& info, intake::IncomingBatch batch) override;
  void OnSymbols(const SessionInfo& info, const ExecutableId& id, absl::StatusOr<std::string> encoded_table) override;
  void OnClosed(const SessionInfo& info, const absl::Status& why) override;

  void Open(intake::PendingSession session);
  void StartSession(intake::PendingSession session);
  void OnFound(const SessionId& id, const absl::StatusOr<uint64_t>& durable_sequence);
  void OnCommitted(const std::vector<WriterThread::Done>& done);
  void Remember(const SessionInfo& info, const intake::IncomingBatch& batch);
  void AskForSymbols(const SessionId& id, Live& live);
  void OnTick();
  void Disconnect(Live& live);
  void CloseAll();

  const Options options_;
  const Clock& clock_;
  Metrics& metrics_;
  Counter& held_back_;
  Loop loop_;
  std::thread thread_;
  bool started_ = false, drained_ = false;

  // On the loop.
  absl::flat_hash_map<SessionId, Live> live_;
  absl::flat_hash_map<SessionId, intake::PendingSession> looked_up_;  // wait for the store's word on them
  SessionMemory memory_;
  bool stopping_ = false;
  std::unique_ptr<Timer> tick_, closing_;
  LogLimit log_limit_{kNsPerSecond};

  mutable std::mutex connected_mutex_;
  absl::flat_hash_map<std::string, uint32_t> connected_;  // guarded by connected_mutex_; sessions by node id

  SymbolWorker symbol_worker_;
  WriterThread writer_;  // last: its callbacks use everything above
};

}  // namespace tributary::ingest
