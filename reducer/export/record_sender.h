#pragma once

#include <cstdint>
#include <span>

#include "otlp/request_identity.h"
#include "otlp/sender.h"
#include "reducer/metadata/rollout_log.h"
#include "reducer/store/event_record.h"
#include "reducer/store/loss_record.h"

namespace tributary {

// The result of one attempt to send records.
struct RecordResult : otlp::SendResult {
  // Records that the receiver refused for good, if it accepted others. If the status is an error that may not be
  // retried, it refused all of them.
  uint64_t refused_records = 0;
};

// Sends records that are no samples: process events, losses and rollouts. Senders whose receiver cannot take them do
// not implement it. Only one thread at a time may call the methods. Each call makes one attempt, as
// ProfilesSender::Send does. `identity` is that of the first record. If a call is repeated, it has the same records and
// the same identity.
class RecordSender {
 public:
  virtual ~RecordSender() = default;
  // Returns true if events are sent with metadata, and with the attributes that their processes have reported.
  virtual bool joins_events() const { return false; }
  virtual RecordResult SendEvents(std::span<const store::EventRecord> events, const otlp::RequestIdentity& identity,
                                  int64_t timeout_ns) = 0;
  virtual RecordResult SendLosses(std::span<const store::LossRecord> losses, const otlp::RequestIdentity& identity,
                                  int64_t timeout_ns) = 0;
  virtual RecordResult SendRollouts(std::span<const Rollout> rollouts, const otlp::RequestIdentity& identity,
                                    int64_t timeout_ns) = 0;
};

}  // namespace tributary
