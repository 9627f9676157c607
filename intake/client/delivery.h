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

// The account of earlier collectors of this node that were killed, or that stopped with undelivered samples. No reducer
// has received this account yet.
struct EndedCollector {
  struct Session {
    std::array<uint8_t, 16> session_id{};
    SampleCounts attributed;  // samples and losses of its durable batches
  };
  SampleCounts captured;          // by the kernel's counter
  std::vector<Session> sessions;  // the most recently used session first
  LossReason reason = LossReason::kCollectorKilled;
};

struct DeliveryOptions {
  std::vector<HostPort> reducers;         // at least 1; each node has its own order of preference (rendezvous hash)
  ClientOptions client;                   // for every session; Delivery sets host, port and session id
  size_t memory_bytes_max = 8u << 20;     // of samples that wait; above it, the oldest batches go to the spool
  int64_t failover_ms = 5'000;            // silence of a reducer after which the next one and the spool are used
  int64_t in_doubt_timeout_ms = 300'000;  // how long a batch sent to a silent reducer waits for its answer
  std::optional<EndedCollector> earlier;  // a batch of this process closes the account of the earlier collectors
  Spool* spool = nullptr;                 // must outlive the delivery; null: batches are kept in memory only
};

// The whole sending side of the node. Delivers every batch to one reducer, once, or reports why it could not. Batches
// wait in memory, then in the spool. The session with the preferred reducer takes them when it has credit. When that
// reducer is silent, the next reducer in the order of preference takes over, with a session of its own. Batches that
// were sent and not acknowledged stay with the first reducer until it answers, or until they are given up as
// lost{in_doubt}. When the preferred reducer is back it is used again.
//
// The invariant of each session: the `captured` that a batch reports is the sum of two parts. The first part is all
// samples and losses of the session's batches so far. The second part is the samples that the node has captured and not
// yet put into a batch. On the loop's thread.
class Delivery : public BatchSink {
 public:
  // Callbacks must not destroy this object.
  struct Callbacks {
    std::function<void(const ExecutableId&)> need_symbols;
    // For the log and the process's own totals. The accounting of later batches already includes the loss.
    std::function<void(LossReason, const SampleCounts& samples)> lost;
    // Called when a session begins, when it is about to be used (`asked` is true from then on), and when some of its
    // batches became durable. If this process is killed, an EndedCollector is made of these values.
    std::function<void(size_t reducer, const EndedCollector::Session& session, bool asked)> durable;
    // No reducer needs the account of the earlier collectors any more. `taken_over`: samples and losses that the
    // earlier collectors left in the spool. The sessions of this process report them, in addition to what this process
    // captured itself.
    std::function<void(const SampleCounts& taken_over)> earlier_reported;
  };

  // All borrowed objects must outlive this object.
  Delivery(AlarmSource& alarms, Connector& connector, DeliveryOptions options, const Clock& clock, Metrics& metrics,
           Callbacks callbacks);
  ~Delivery() override;

  void Start();
  // The batch's accounting must hold the process's totals. The session that sends the batch assigns its sequence
  // number.
  absl::Status Take(Batch batch) override;

  // The spool must be created with this function as its `dropped` callback.
  void OnSpoolDropped(LossReason reason, const SampleCounts& samples, const Accounting& accounting, bool earlier);

  // Sets the sample rate that each reducer receives from its next connection on.
  void SetSampleRate(uint32_t hz);

  void SendSymbols(const ExecutableId& id, PackedTable table);
  void SendNoSymbols(const ExecutableId& id, std::string why);

  // Calls `done` when everything taken so far is durable at a reducer, or at the deadline. At the deadline the
  // undelivered rest is written to the spool, if there is a spool, and nothing is sent any more.
  void Flush(int64_t timeout_ms, std::function<void(uint64_t undelivered_samples)> done);
  bool settled() const;  // after Flush: everything was reported before the deadline

  bool connected() const;
  uint64_t waiting_samples() const;  // not yet durable at a reducer: in memory, spooled or in doubt
  uint64_t bytes_sent() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tributary::intake
