#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <string>

#include "base/clock.h"
#include "base/loop.h"
#include "base/metrics.h"
#include "intake/batch_codec.h"
#include "intake/frame.h"
#include "intake/messages.h"
#include "profile/batch.h"
#include "symbols/packed_table.h"

namespace tributary::intake {

// The collector's end: keeps one connection to the reducer, says Hello, sends batches in order, keeps each (as samples)
// until it is acknowledged as durable, and starts over after a disconnect with exponential back-off and jitter. Re-sent
// batches have the same sequence number and the same samples, so a duplicate changes nothing. On the loop's thread.
struct ClientOptions {
  std::string host = "127.0.0.1";
  uint16_t port = 8000;
  Role role = Role::kNode;
  SessionInfo session;
  int64_t backoff_min_ms = 250;
  int64_t backoff_max_ms = 15'000;
  // Of samples held unacknowledged (sizeof(Sample) each); the oldest batches beyond are dropped as
  // lost{batch_overflow}.
  size_t unacked_bytes_max = 32u << 20;
  uint64_t seed = 0;                    // of the jitter; 0 = random
  int64_t connect_timeout_ms = 10'000;  // until Welcome
  int64_t symbol_chunk_period_ms = 62;  // a chunk of 64 KiB each: 1 MiB/s
};

class Client : public BatchSink {
 public:
  // Must not destroy the client.
  struct Callbacks {
    std::function<void(const ExecutableId&)> need_symbols;
    // Samples that this client had to drop: the owner counts them in its next batch's accounting.
    std::function<void(LossReason, uint64_t samples)> lost;
  };

  Client(Loop& loop, ClientOptions options, const Clock& clock, Metrics& metrics, Callbacks callbacks);
  ~Client() override;

  void Start();
  // Sequences go up by one from batch to batch. InvalidArgument: more samples than a batch may have; they are lost.
  absl::Status Take(Batch batch) override;

  // Queues a table for upload (chunks of 64 KiB between batches, 1 MiB/s at most), or says there is none. Tables not
  // yet sent when a connection breaks are dropped: the reducer asks again.
  void SendSymbols(const ExecutableId& id, PackedTable table);
  void SendNoSymbols(const ExecutableId& id, std::string why);

  // Calls `done` when every batch taken so far is acknowledged, or at the deadline: with the samples that are still
  // not.
  void Flush(int64_t timeout_ms, std::function<void(uint64_t unacked_samples)> done);

  bool connected() const;
  uint64_t unacked_samples() const;
  uint64_t bytes_sent() const;  // on the wire, all frames

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tributary::intake
