#pragma once

#include <cstdint>
#include <span>

#include "otlp/request_identity.h"
#include "otlp/sender.h"
#include "reducer/store/event_record.h"

namespace tributary {

// The result of one attempt to send process events.
struct EventResult : otlp::SendResult {
  // Events that the receiver refused for good, if it accepted others. If the status is an error that may not be
  // retried, it refused all of them.
  uint64_t refused_events = 0;
};

// Sends process events to a receiver. Senders whose receiver cannot take process events do not implement it. Only one
// thread at a time may call SendEvents.
class EventSender {
 public:
  virtual ~EventSender() = default;
  // Makes one attempt, as ProfilesSender::Send does. `identity` is that of the first event. If a call is repeated, it
  // has the same events and the same identity.
  virtual EventResult SendEvents(std::span<const store::EventRecord> events, const otlp::RequestIdentity& identity,
                                 int64_t timeout_ns) = 0;
};

}  // namespace tributary
