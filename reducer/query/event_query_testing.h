#pragma once

#include <csignal>
#include <string>
#include <string_view>
#include <vector>

#include "reducer/query/resource_query_testing.h"

namespace tributary {

// A store with process events, which a test adds.
class EventQueryTest : public ResourceQueryTest {
 protected:
  using Event = store::FakeShard::Event;

  static constexpr Pid kSupervisor{7};

  static Event Of(ProcessEventKind kind, int64_t at_ns, int32_t pid, std::string_view path = "/bin/server") {
    return {.kind = kind,
            .time = At(at_ns),
            .pid = Pid{pid},
            .parent = kSupervisor,
            .start_time_ns = pid * 1000,
            .name = std::string(path.substr(path.rfind('/') + 1)),
            .executable_path = std::string(path),
            .cgroup_path = "/system.slice/server.service"};
  }
  static Event Exec(int64_t at_ns, int32_t pid, std::string_view path = "/bin/server") {
    return Of(ProcessEventKind::kExec, at_ns, pid, path);
  }
  static Event Exit(int64_t at_ns, int32_t pid, ProcessEnd end, std::string_view path = "/bin/server") {
    Event event = Of(ProcessEventKind::kExit, at_ns, pid, path);
    event.end = end;
    return event;
  }
  static ProcessEnd Killed(uint8_t signal, int64_t run_ns = 1) {
    return {.signal = signal, .run_ns = static_cast<uint64_t>(run_ns)};
  }
  // The process of the event runs in the container that ReportPod reports, or in one with another id.
  static Event InContainer(Event event, std::string_view id = kContainer) {
    event.container_id = id;
    event.cgroup_path = std::string("/kubepods/pod") + kPodUid + "/" + std::string(id);
    return event;
  }
  void Add(Event event, size_t shard = 0) { store_.shards[shard].events.push_back(std::move(event)); }

  EventList List(EventListRequest request = {}, std::string_view selector = "{}") {
    absl::StatusOr<EventList> list = engine_->QueryEvents(Request(selector), request);
    EXPECT_TRUE(list.ok()) << list.status();
    return list.ok() ? *std::move(list) : EventList();
  }
  std::vector<int32_t> Pids(std::string_view kinds, std::string_view selector = "{}") {
    EventListRequest request{.order = EventOrder::kOldestFirst};
    const absl::StatusOr<EventKinds> parsed = EventKinds::Parse(kinds);
    EXPECT_TRUE(parsed.ok()) << parsed.status();
    if (parsed.ok()) request.kinds = *parsed;
    std::vector<int32_t> pids;
    for (const EventList::Event& event : List(request, selector).events) pids.push_back(event.record.pid.value);
    return pids;
  }
};

}  // namespace tributary
