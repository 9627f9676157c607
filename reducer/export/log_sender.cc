#include "reducer/export/log_sender.h"

#include <algorithm>
#include <optional>
#include <utility>

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
          .start_time_ns = event.start_time_ns,
          .uid = event.uid,
          .name = event.name,
          .executable_path = event.executable_path,
          .events = event.events,
          .processes = event.processes,
          .end = event.end};
}

}  // namespace

EventResult LogSender::SendEvents(std::span<const store::EventRecord> events, const otlp::RequestIdentity& identity,
                                  int64_t timeout_ns) {
  const int64_t deadline = clock_.Monotonic().value + timeout_ns;
  if (unfinished_ != identity) {
    answered_ = 0;
    answers_ = {};
  }
  unfinished_ = identity;
  Resources resources(joiner_, RangeOf(events));
  const size_t begin = answered_;
  while (answered_ < events.size()) {
    const int64_t left_ns = deadline - clock_.Monotonic().value;
    if (answered_ > begin && left_ns < kAnswerNs) {
      EventResult later;
      later.status = absl::DeadlineExceededError("the receiver is too slow for all process events of a batch");
      later.may_retry = true;
      return later;
    }
    otlp::RequestIdentity of_part = identity;
    of_part.first += answered_;
    otlp::EventLogs logs(of_part, kVersion);
    size_t end = answered_;
    do {
      logs.Add(resources.Of(events[end]), InfoOf(events[end]));
    } while (++end < events.size() && logs.bytes() < event_bytes_max_);
    otlp::SendResult result = logs_.SendLogs(*logs.Finish(), left_ns);
    if (!result.status.ok() && result.may_retry) {
      EventResult unanswered;
      static_cast<otlp::SendResult&>(unanswered) = std::move(result);
      return unanswered;
    }
    if (!result.status.ok()) answers_.refused_events += end - answered_;
    const size_t begin_of_part = std::exchange(answered_, end);
    answers_.rejected_items += std::clamp<int64_t>(result.rejected_items, 0, static_cast<int64_t>(end - begin_of_part));
    if (!result.message.empty()) answers_.message = std::move(result.message);
    if (!result.status.ok()) answers_.message = result.status.ToString();
  }
  unfinished_ = {};
  return std::exchange(answers_, {});
}

}  // namespace tributary
