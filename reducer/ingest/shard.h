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

// One slice of the ingest: an event loop on its own thread, which owns its nodes' sessions, and the store-writer thread
// behind it. A batch goes from the loop to the writer through a bounded queue. If the queue is full, sessions stop
// reading until it has space. After the commit, the acknowledgements are posted back to the loop. ShardCore makes the
// decisions; Shard has the threads.
//
// Call the methods from any one thread, unless a comment says otherwise.
class Shard final {
 public:
  struct Options {
    uint32_t number = 0;
    intake::ServerOptions server;  // of its sessions
    WriterThread::Options writer;
    SymbolWorker::Options symbols;
    size_t sessions_remembered_max = 16'384;
    uint64_t tick_ms = 1'000;          // maintenance, symbol requests
    MetadataSink* metadata = nullptr;  // must outlive the shard; null: metadata of hosts and pods is discarded
  };

  // All references must outlive the shard. Before Start, only the writer runs.
  Shard(Options options, std::unique_ptr<store::ShardWriter> writer, SymbolStore& symbols, const Clock& clock,
        Metrics& metrics);
  ~Shard();  // Stop

  void Start();
  // Accepts no more batches, and commits the queued ones.
  void Drain();
  // Drains, acknowledges the committed batches, sends Goodbye, and ends the threads. Takes at most a second or two,
  // unless a commit hangs.
  void Stop();

  // Before Start, use it to put an acceptor on the loop. After Start, use it on its thread.
  Loop& loop() { return loop_; }

  // Any thread. Takes a connection of a node of this shard. Its Hello was already read.
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
