#include "reducer/export/log_sender.h"

#include <algorithm>
#include <optional>

#include "base/clock.h"
#include "base/version.h"
#include "otlp/event_logs.h"

namespace tributary {
namespace {

store::TimeRange RangeOf(std::span<const store::EventRecord> events) {
  store::TimeRange range{events.front().time, events.front().time};
  for (const store::EventRecord& event : events) {
    range.from = std::min(range.from, event.time);
    range.to = std::max(range.to, UnixNs{event.time.value + 1});
  }
  return range;
}

// Finds the resources of process events.
class Resources {
 public:
  Resources(const ResourceJoiner* joiner, store::TimeRange range) {
    if (joiner != nullptr) joined_.emplace(*joiner, range);
  }

  Attributes Of(const store::EventRecord& event) {
    if (!joined_) {
      return {{"container.id", event.container_id}, {"host.id", event.node_id}, {"host.name", event.host_name}};
    }
    store::ProcessRow process;
    process.node_id = event.node_id;
    process.host_name = event.host_name;
    process.pid = event.pid;
    process.comm = event.name;
    process.executable_path = event.executable_path;
    process.container_id = event.container_id;
    process.cgroup_path = event.cgroup_path;
    return ResourceAt(*joined_->Of(process), event.time)->attributes;
  }

 private:
  std::optional<ResourceCache> joined_;
};

otlp::EventInfo InfoOf(const store::EventRecord& event) {
  return {.time = event.time,
          .kind = event.kind,
          .pid = event.pid,
          .parent = event.parent,
          .uid = event.uid,
          .name = event.name,
          .executable_path = event.executable_path,
          .events = event.events,
          .processes = event.processes,
          .end = event.end};
}

}  // namespace

otlp::SendResult LogSender::SendEvents(std::span<const store::EventRecord> events,
                                       const otlp::RequestIdentity& identity, int64_t timeout_ns) {
  const int64_t deadline = Clock::Real().Monotonic().value + timeout_ns;
  if (unfinished_ != identity) accepted_ = 0;
  unfinished_ = identity;
  Resources resources(joiner_, RangeOf(events));
  otlp::SendResult total;
  while (accepted_ < events.size()) {
    otlp::RequestIdentity of_part = identity;
    of_part.first += accepted_;
    otlp::EventLogs logs(of_part, kVersion);
    size_t end = accepted_;
    do {
      logs.Add(resources.Of(events[end]), InfoOf(events[end]));
    } while (++end < events.size() && logs.bytes() < event_bytes_max_);
    const int64_t left_ns = std::max<int64_t>(deadline - Clock::Real().Monotonic().value, 1);
    otlp::SendResult result = logs_.SendLogs(*logs.Finish(), left_ns);
    if (!result.status.ok() && result.may_retry) return result;
    accepted_ = end;
    total.rejected_items += result.rejected_items;
    if (!result.message.empty()) total.message = std::move(result.message);
    if (!result.status.ok()) total.status = std::move(result.status);
  }
  unfinished_ = {};
  return total;
}

}  // namespace tributary
