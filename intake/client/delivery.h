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

// What is known of earlier collectors of this node that were killed, or stopped with samples undelivered, and of which
// no reducer has been told.
struct EndedCollector {
  struct Session {
    std::array<uint8_t, 16> session_id{};
    SampleCounts attributed;  // samples and losses of its durable batches
  };
  SampleCounts captured;          // by the kernel's counter
  std::vector<Session> sessions;  // the one used last first
  LossReason reason = LossReason::kCollectorKilled;
};

struct DeliveryOptions {
  std::vector<HostPort> reducers;         // ≥ 1; each node prefers them in an order of its own (rendezvous hash)
  ClientOptions client;                   // of every session; host, port and session id are set here
  size_t memory_bytes_max = 8u << 20;     // of samples that wait to be sent; beyond, the oldest go to the spool
  int64_t failover_ms = 5'000;            // without an answer, before the next reducer is tried and the spool is used
  int64_t in_doubt_timeout_ms = 300'000;  // how long a batch sent to a silent reducer waits for its answer
  std::optional<EndedCollector> earlier;  // whose account a batch of this one closes
  Spool* spool = nullptr;                 // outlives the delivery; null: memory is all there is
};

// Gets every batch to one reducer, once, or says why not: the node's whole sending side. Batches wait in memory, then
// in the spool; the session with the preferred reducer takes them when it has credit. When that reducer is silent the
// next one takes over, with a session of its own; what was sent and not acknowledged stays the first one's until it
// answers or is given up as lost{in_doubt}. When the preferred reducer is back it is used again.
//
// The law per session: what a batch tells as captured is all samples and losses of the session's batches so far, plus
// what the node has captured and not yet put into a batch. On the loop's thread.
class Delivery : public BatchSink {
 public:
  // Must not destroy this object.
  struct Callbacks {
    std::function<void(const ExecutableId&)> need_symbols;
    // For the log and the process's own totals: the loss is already in the accounting of the batches to come.
    std::function<void(LossReason, const SampleCounts& samples)> lost;
    // A session is begun, is about to be used (`asked` from then on), or something of it became durable: what an
    // EndedCollector will be made of, should this process be killed.
    std::function<void(size_t reducer, const EndedCollector::Session& session, bool asked)> durable;
    // No reducer needs to be told of the earlier collectors any more. `handed_on`: what they had left in the spool, and
    // this one's sessions tell: they answer for that beside what it captured itself.
    std::function<void(const SampleCounts& handed_on)> earlier_told;
  };

  // Everything lent outlives this.
  Delivery(AlarmSource& alarms, Connector& connector, DeliveryOptions options, const Clock& clock, Metrics& metrics,
           Callbacks callbacks);
  ~Delivery() override;

  void Start();
  // The batch's accounting holds the process's totals; sequence numbers are given by the session that sends it.
  absl::Status Take(Batch batch) override;

  // What the spool was made with as its `dropped`.
  void OnSpoolDropped(LossReason reason, const SampleCounts& samples, const Accounting& accounting, bool earlier);

  // What reducers are told of this node, each from its next connection on.
  void SetSampleRate(uint32_t hz);

  void SendSymbols(const ExecutableId& id, PackedTable table);
  void SendNoSymbols(const ExecutableId& id, std::string why);

  // Calls `done` when everything taken so far is durable at a reducer, or at the deadline: what is not, is then written
  // to the spool, where there is one, and nothing is sent any more.
  void Flush(int64_t timeout_ms, std::function<void(uint64_t undelivered_samples)> done);
  bool settled() const;  // after Flush: everything was told

  bool connected() const;
  uint64_t waiting_samples() const;  // not yet durable anywhere: in memory, spooled or in doubt
  uint64_t bytes_sent() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tributary::intake
