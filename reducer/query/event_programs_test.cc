#include "reducer/query/event_programs.h"

#include <gmock/gmock.h>

#include "reducer/query/event_query_testing.h"

namespace tributary {
namespace {

constexpr uint64_t kS = kNsPerSecond;

class EventProgramsTest : public EventQueryTest {
 protected:
  EventPrograms Programs(EventProgramsRequest request = {}, std::string_view selector = "{}") {
    absl::StatusOr<EventPrograms> programs = engine_->QueryEventPrograms(Request(selector), request);
    EXPECT_TRUE(programs.ok()) << programs.status();
    return programs.ok() ? *std::move(programs) : EventPrograms();
  }
  static Event Sum(uint32_t processes, ProcessEnd end, std::string_view path) {
    Event event = Exit(1, 0, end, path);
    event.kind = ProcessEventKind::kSum;
    event.processes = processes;
    event.events = processes * 3;
    return event;
  }
};

TEST_F(EventProgramsTest, AddsExitsAndSumsOfShortProcesses) {
  Add(Exit(1, 1, {.exit_code = 1, .run_ns = kS, .user_ns = 10, .system_ns = 5, .peak_rss_bytes = 100}, "/bin/sh"));
  Add(Sum(9, {.run_ns = 9 * kS, .user_ns = 20, .system_ns = 5, .peak_rss_bytes = 50}, "/bin/sh"));
  Add(Exit(1, 2, {.run_ns = 10 * kS, .user_ns = 60}, "/bin/sh"));  // not short
  Add(Exit(1, 3, {.run_ns = 0, .user_ns = 0}, "/bin/sh"));         // unknown
  Add(Exec(1, 4, "/bin/sh"));
  const EventPrograms found = Programs();
  ASSERT_EQ(found.programs.size(), 1u);
  EXPECT_EQ(found.programs[0].executable_path, "/bin/sh");
  const EventPrograms::Use& use = found.programs[0].use;
  EXPECT_EQ(use.processes, 10u);
  EXPECT_EQ(use.failed, 1u);
  EXPECT_EQ(use.cpu_ns, 40u);
  EXPECT_EQ(use.run_ns, 10 * kS);
  EXPECT_EQ(use.peak_rss_bytes, 100u);
  EXPECT_EQ(found.ended_cpu_ns, 100u);
  EXPECT_EQ(found.ended_processes, 12u);
  EXPECT_EQ(found.total.processes, 10u);
  EXPECT_EQ(found.others.processes, 0u);
}

TEST_F(EventProgramsTest, GroupsByProgramAndContainer) {
  ReportPod("1", At(0));
  Add(Exit(1, 1, {.run_ns = 1}, "/bin/sh"));
  Add(InContainer(Exit(1, 2, {.run_ns = 1}, "/bin/sh")));
  Event named = Exit(1, 3, {.run_ns = 1}, "");
  named.name = "kworker";
  Add(named);
  const EventPrograms found = Programs();
  ASSERT_EQ(found.programs.size(), 3u);
  EXPECT_EQ(found.programs[0].name, "kworker");
  EXPECT_EQ(found.programs[1].container, "");
  EXPECT_EQ(found.programs[2].container, "nginx");
  EXPECT_EQ(Programs({}, R"({k8s_container_name="nginx"})").programs.size(), 1u);
}

TEST_F(EventProgramsTest, SortsAndLimits) {
  Add(Sum(3, {.run_ns = 3, .user_ns = 1}, "/bin/a"));
  Add(Sum(2, {.run_ns = 3, .user_ns = 9}, "/bin/b"));
  Add(Sum(1, {.run_ns = 3, .user_ns = 5}, "/bin/c"));
  EXPECT_EQ(Programs({.limit = 1}).programs.at(0).executable_path, "/bin/a");
  const EventPrograms found = Programs({.sort = EventProgramsRequest::Sort::kCpu, .limit = 1});
  EXPECT_EQ(found.programs.at(0).executable_path, "/bin/b");
  EXPECT_EQ(found.other_programs, 2u);
  EXPECT_EQ(found.others.processes, 4u);
  EXPECT_EQ(found.others.cpu_ns, 6u);
  EXPECT_EQ(Programs({.run_max_ns = 2}).programs.size(), 2u) << "a and b ran for 1 ns on average";
}

TEST_F(EventProgramsTest, CountsWhatItCannotGroup) {
  for (size_t i = 0; i < kEventProgramsMax + 5; ++i) Add(Exit(1, 1, {.run_ns = 1}, "/bin/" + std::to_string(i)));
  const EventPrograms found = Programs({.limit = 10});
  EXPECT_EQ(found.programs.size(), 10u);
  EXPECT_EQ(found.ungrouped, 5u);
  EXPECT_EQ(found.others.processes, kEventProgramsMax - 5);
  EXPECT_EQ(found.total.processes, kEventProgramsMax + 5);
}

TEST_F(EventProgramsTest, ImpossibleNumbersDoNotOverflow) {
  const ProcessEnd huge{.run_ns = 1, .user_ns = UINT64_MAX, .system_ns = UINT64_MAX, .peak_rss_bytes = UINT64_MAX};
  Add(Sum(0, huge, "/bin/sh"));
  Add(Sum(UINT32_MAX, huge, "/bin/sh"));
  const EventPrograms found = Programs();
  EXPECT_EQ(found.total.cpu_ns, UINT64_MAX);
  EXPECT_EQ(found.total.processes, UINT32_MAX);
}

}  // namespace
}  // namespace tributary
