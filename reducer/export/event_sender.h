#pragma once

#include <cstdint>
#include <span>

#include "otlp/request_identity.h"
#include "otlp/sender.h"
#include "reducer/store/event_record.h"

namespace tributary {

// Sends process events to a receiver. Senders whose receiver cannot take process events do not implement it. Only one
// thread at a time may call SendEvents.
class EventSender {
 public:
  virtual ~EventSender() = default;
  // Makes one attempt, as ProfilesSender::Send does. `identity` is that of the request.
  virtual otlp::SendResult SendEvents(std::span<const store::EventRecord> events, const otlp::RequestIdentity& identity,
                                      int64_t timeout_ns) = 0;
};

}  // namespace tributary
