#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/alarm.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "base/parse.h"
#include "base/stream.h"
#include "intake/client/client.h"
#include "intake/spool/spool.h"
#include "profile/batch.h"

namespace tributary::intake {

// The totals of earlier collectors of this node that were killed, or that stopped with undelivered samples. No reducer
// has received these totals yet.
struct EndedCollector {
  struct Session {
    std::array<uint8_t, 16> session_id{};
    SampleCounts attributed;  // samples and losses in the durable batches of the session
  };
  SampleCounts captured;          // captured samples of all these collectors, as their BPF programs counted them
  std::vector<Session> sessions;  // the most recently used session first
  LossReason reason = LossReason::kCollectorKilled;
};

struct DeliveryOptions {
  std::vector<HostPort> reducers;  // at least 1; each node has its own order of preference (rendezvous hash)
  ClientOptions client;            // for all sessions; Delivery sets host, port and session id
  // Limit of samples in memory. Above it, the oldest batches go to the spool. Without a spool they are lost.
  size_t memory_bytes_max = 8u << 20;
  int64_t failover_ms = 5'000;  // after this silence of a reducer, the next reducer is used, or the spool
  // After this silence of a reducer, its unacknowledged batches are given up, but only if another reducer is used.
  int64_t in_doubt_timeout_ms = 300'000;
  std::optional<EndedCollector> earlier;  // batches report these totals to a reducer
  Spool* spool = nullptr;                 // must outlive the delivery; null: batches are kept in memory only
};

// Sends the batches of a node. Delivers each batch once, to one reducer, or reports why the batch is lost. Batches wait
// in memory, then in the spool. They are sent in the session with the preferred reducer while that session has credit.
// If that reducer is silent, the next reducer in the order of preference is used, in a session of its own. Batches that
// were sent and not acknowledged stay in the session with the silent reducer until it answers, or until they are given
// up as lost (in_doubt). When the preferred reducer answers again, it is used again.
//
// The invariant of each session: the number `captured` in a batch is the sum of two numbers. The first number is all
// samples and losses in the session's batches up to this batch. The second number is the samples that the node has
// captured, and that no session has sent or reported lost yet. Use it only on the loop's thread.
class Delivery : public BatchSink {
 public:
  // Callbacks must not destroy this object.
  struct Callbacks {
    std::function<void(const ExecutableId&)> need_symbols;
    std::function<void(const ExecutableId&)> need_digest;  // only the digest; null: see Client::Callbacks
    // Called for each loss, for the log and for the process's own totals. A later batch reports the loss to the
    // reducer.
    std::function<void(LossReason, const SampleCounts& samples)> lost;
    // Called when a reducer is chosen, before the first batch of its session is sent, and when batches of the session
    // became durable. `asked`: true if the session has sent a batch or is about to send one. `reducer`: index in
    // DeliveryOptions::reducers. The caller must store the values so that they survive a kill: the next process makes
    // an EndedCollector of them.
    std::function<void(size_t reducer, const EndedCollector::Session& session, bool asked)> durable;
    // A reducer has stored the totals of the earlier collectors. `taken_over`: samples and losses that the earlier
    // collectors left in the spool. The sessions of this process report these in addition to the samples that this
    // process captured.
    std::function<void(const SampleCounts& taken_over)> earlier_reported;
  };

  // All borrowed objects must outlive this object.
  Delivery(AlarmSource& alarms, Connector& connector, DeliveryOptions options, const Clock& clock, Metrics& metrics,
           Callbacks callbacks);
  ~Delivery() override;

  void Start();
  // The accounting of the batch must be the totals of the process. The session that sends the batch assigns its
  // sequence number.
  absl::Status Take(Batch batch) override;

  // The spool must be created with this function as its `dropped` callback.
  void OnSpoolDropped(LossReason reason, const SampleCounts& samples, const Accounting& accounting, bool earlier);

  // Sets the sample rate in Hello, from the next connection with each reducer on.
  void SetSampleRate(uint32_t hz);

  void SendSymbols(const ExecutableId& id, PackedTable table);
  void SendNoSymbols(const ExecutableId& id, std::string why);
  void SendDigest(const ExecutableId& id, const absl::StatusOr<SymbolDigest>& digest);

  // Calls `done` when all batches are durable at a reducer, or after `timeout_ms`. After `timeout_ms`, the undelivered
  // batches are written to the spool, if there is a spool, and nothing more is sent.
  void Flush(int64_t timeout_ms, std::function<void(uint64_t undelivered_samples)> done);
  bool settled() const;  // after Flush: true if all batches and totals were acknowledged in time

  bool connected() const;
  // If no reducer is connected, and a reducer does not accept this node unless a person changes something: its address
  // and the reason. Otherwise "".
  std::string refusal() const;
  uint64_t waiting_samples() const;  // not durable at a reducer: in memory, in the spool, or unacknowledged
  uint64_t bytes_sent() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tributary::intake
