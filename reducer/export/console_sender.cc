#include "reducer/export/console_sender.h"

#include "reducer/export/events_text.h"

namespace tributary {

otlp::SendResult ConsoleSender::Send(const otlp::ProfilesRequest& request, const otlp::RequestIdentity& identity,
                                     int64_t timeout_ns) {
  return output_.Print(identity, [&] { return otlp::FormatProfiles(request, options_); }, timeout_ns);
}

EventResult ConsoleSender::SendEvents(std::span<const store::EventRecord> events, const otlp::RequestIdentity& identity,
                                      int64_t timeout_ns) {
  return {output_.Print(identity, [&] { return FormatEvents(events); }, timeout_ns), 0};
}

}  // namespace tributary
