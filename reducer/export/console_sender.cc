#include "reducer/export/console_sender.h"

#include "reducer/export/events_text.h"

namespace tributary {

EventResult ConsoleSender::SendEvents(std::span<const store::EventRecord> events, const otlp::RequestIdentity& identity,
                                      int64_t timeout_ns) {
  return {output().Print(identity, [&] { return FormatEvents(events); }, timeout_ns), 0};
}

}  // namespace tributary
