#pragma once

#include <cstdint>
#include <utility>

#include "otlp/text_sender.h"
#include "reducer/export/event_sender.h"

namespace tributary {

// Prints samples and process events as text to a file descriptor that the caller owns. Its errors are those of
// otlp::TextOutput.
class ConsoleSender : public otlp::TextSender, public EventSender {
 public:
  ConsoleSender(int fd, otlp::TextOptions options) : otlp::TextSender(fd, std::move(options)) {}

  EventResult SendEvents(std::span<const store::EventRecord> events, const otlp::RequestIdentity& identity,
                         int64_t timeout_ns) override;
};

}  // namespace tributary
