#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

#include "absl/container/flat_hash_map.h"
#include "base/clock.h"
#include "base/loop.h"
#include "base/metrics.h"
#include "intake/server/acceptor.h"
#include "intake/server/server_options.h"
#include "reducer/ingest/shard_core.h"
#include "reducer/ingest/symbol_worker.h"
#include "reducer/ingest/writer_thread.h"
#include "reducer/store/store.h"
#include "reducer/symbolizer/symbol_store.h"

namespace tributary::ingest {

// Receives and stores the samples of some of the nodes. A shard has three threads: an event loop, which owns the
// sessions of these nodes, a store writer, and a worker that reads and stores symbol tables. A batch goes from the loop
// to the writer through a bounded queue. If the queue is full, sessions stop reading until the queue has space. After a
// commit, the writer posts the result to the loop, which sends the acknowledgements. ShardCore makes the decisions;
// Shard only runs the threads.
//
// Do not call two methods at the same time, unless a comment says "Any thread".
class Shard final {
 public:
  struct Options {
    uint32_t number = 0;
    intake::ServerOptions server;  // of its sessions
    WriterThread::Options writer;
    OldDays::Options old_days;
    SymbolWorker::Options symbols;
    size_t sessions_remembered_max = 16'384;
    size_t session_memory_bytes_max = 256u << 20;  // of decoders and executables
    uint64_t tick_ms = 1'000;                      // maintenance, symbol requests
    MetadataDesk* metadata = nullptr;   // must outlive the shard; null: metadata of hosts and pods is discarded
    const OptOuts* opt_outs = nullptr;  // as in ShardCore::Options
  };

  // All references must outlive the shard. The constructor starts the threads of the writer and of the symbol worker.
  // Start starts the loop's thread.
  Shard(Options options, std::unique_ptr<store::ShardWriter> writer, SymbolStore& symbols, const Clock& clock,
        Metrics& metrics);
  ~Shard();  // Stop

  void Start();
  // Refuses new batches, and commits the queued batches.
  void Drain();
  // Calls Drain, acknowledges the committed batches, sends Goodbye to the collectors, and ends the threads. Returns
  // within about 2 s, unless a commit hangs.
  void Stop();

  // After Start, use the loop only on its own thread, except for methods that any thread may call.
  Loop& loop() { return loop_; }

  // Any thread. Takes over a connection of a node of this shard. The node's Hello was already read.
  void Accept(intake::PendingSession session);
  // Any thread. Returns true if a session of that node is open.
  bool IsConnected(std::string_view node_id) const;

 private:
  void StartSession(intake::PendingSession session);
  void CountConnected(const std::string& node_id, int change);

  const uint32_t number_;
  Loop loop_;
  std::thread thread_;
  bool started_ = false, drained_ = false;

  mutable std::mutex connected_mutex_;
  absl::flat_hash_map<std::string, int> connected_;  // guarded by connected_mutex_; sessions by node id

  SymbolWorker symbol_worker_;
  WriterThread writer_;              // its callbacks go to the core through the loop
  std::unique_ptr<ShardCore> core_;  // on the loop
};

}  // namespace tributary::ingest
