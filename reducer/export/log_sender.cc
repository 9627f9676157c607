#include "reducer/export/log_sender.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/version.h"
#include "otlp/event_logs.h"
#include "otlp/loss_logs.h"
#include "otlp/rollout_logs.h"
#include "reducer/metadata/rollout_fields.h"

namespace tributary {
namespace {

UnixNs TimeOf(const store::EventRecord& event) { return event.time; }
UnixNs TimeOf(const store::LossRecord& loss) { return loss.first; }

template <typename Record>
store::TimeRange RangeOf(std::span<const Record> records) {
  store::TimeRange range{TimeOf(records.front()), TimeOf(records.front())};
  for (const Record& record : records) {
    range.from = std::min(range.from, TimeOf(record));
    range.to = std::max(range.to, UnixNs{TimeOf(record).value + 1});
  }
  return range;
}

// Finds the resources of records.
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
    process.attributes = event.attributes;
    return ResourceAt(*joined_->Of(process), event.time)->attributes;
  }

  // A loss belongs to a host, and to no service.
  Attributes Of(const store::LossRecord& loss) {
    if (!joined_) return {{"host.id", loss.node_id}, {"host.name", loss.host_name}};
    store::ProcessRow process;
    process.node_id = loss.node_id;
    process.host_name = loss.host_name;
    Attributes attributes = ResourceAt(*joined_->Of(process), loss.first)->attributes;
    std::erase_if(attributes, [](const Attribute& attribute) { return attribute.key.starts_with("service."); });
    return attributes;
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

RecordResult LogSender::SendEvents(std::span<const store::EventRecord> events, const otlp::RequestIdentity& identity,
                                   int64_t timeout_ns) {
  Resources resources(joiner_, RangeOf(events));
  const auto add = [&](size_t i, otlp::RecordLogs* logs) {
    otlp::AddEvent(resources.Of(events[i]), InfoOf(events[i]), logs);
  };
  return SendRecords(events.size(), add, identity, timeout_ns);
}

RecordResult LogSender::SendLosses(std::span<const store::LossRecord> losses, const otlp::RequestIdentity& identity,
                                   int64_t timeout_ns) {
  Resources resources(joiner_, RangeOf(losses));
  const auto add = [&](size_t i, otlp::RecordLogs* logs) {
    const store::LossRecord& loss = losses[i];
    otlp::AddLoss(resources.Of(loss),
                  {.type = loss.type,
                   .reason = store::ReasonText(loss),
                   .samples = loss.samples,
                   .first = loss.first,
                   .last = loss.last},
                  logs);
  };
  return SendRecords(losses.size(), add, identity, timeout_ns);
}

RecordResult LogSender::SendRollouts(std::span<const Rollout> rollouts, const otlp::RequestIdentity& identity,
                                     int64_t timeout_ns) {
  const auto add = [&](size_t i, otlp::RecordLogs* logs) {
    const Rollout& rollout = rollouts[i];
    const auto version = [](const RolloutVersion& of) {
      return otlp::RolloutInfo::Version{of.hash, of.images, of.version};
    };
    otlp::AddRollout({.time = rollout.at,
                      .cluster = rollout.cluster,
                      .kind = rollout.kind,
                      .name_space = rollout.name_space,
                      .name = rollout.name,
                      .environment = EnvironmentOf(rollout),
                      .executable = ExecutableOf(rollout),
                      .version = version(VersionOf(rollout)),
                      .previous = version(PreviousVersionOf(rollout))},
                     logs);
  };
  return SendRecords(rollouts.size(), add, identity, timeout_ns);
}

// `add` adds the record with the index.
RecordResult LogSender::SendRecords(size_t count, AddRecord add, const otlp::RequestIdentity& identity,
                                    int64_t timeout_ns) {
  const int64_t deadline = clock_.Monotonic().value + timeout_ns;
  if (unfinished_ != identity) {
    answered_ = 0;
    answers_ = {};
  }
  unfinished_ = identity;
  const size_t begin = answered_;
  while (answered_ < count) {
    const int64_t left_ns = deadline - clock_.Monotonic().value;
    if (answered_ > begin && left_ns < kAnswerNs) {
      RecordResult later;
      later.status = absl::DeadlineExceededError("the receiver is too slow for all records of a batch");
      later.may_retry = true;
      return later;
    }
    otlp::RequestIdentity of_part = identity;
    of_part.first += answered_;
    otlp::RecordLogs logs(of_part, kVersion);
    size_t end = answered_;
    do {
      add(end, &logs);
    } while (++end < count && logs.bytes() < record_bytes_max_);
    otlp::SendResult result = logs_.SendLogs(*logs.Finish(), left_ns);
    if (!result.status.ok() && result.may_retry) {
      RecordResult unanswered;
      static_cast<otlp::SendResult&>(unanswered) = std::move(result);
      return unanswered;
    }
    if (!result.status.ok()) answers_.refused_records += end - answered_;
    const size_t begin_of_part = std::exchange(answered_, end);
    answers_.rejected_items += std::clamp<int64_t>(result.rejected_items, 0, static_cast<int64_t>(end - begin_of_part));
    if (!result.message.empty()) answers_.message = std::move(result.message);
    if (!result.status.ok()) answers_.message = result.status.ToString();
  }
  unfinished_ = {};
  return std::exchange(answers_, {});
}

}  // namespace tributary
