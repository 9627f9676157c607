#include "reducer/query/event_marks.h"

#include <gmock/gmock.h>

#include "reducer/query/event_query_testing.h"
#include "reducer/query/restart_finder.h"

namespace tributary {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr int64_t kS = kNsPerSecond;
constexpr char kOtherContainer[] = "5d01db0b339c0d5a1fc8d5c8c4d4c4a8c2a4a3c9b7b6a5f4e3d2c1b0a9f8e7d6";

class EventMarksTest : public EventQueryTest {
 protected:
  EventMarks Marks(size_t limit = 100, std::string_view selector = "{}") {
    absl::StatusOr<EventMarks> marks = engine_->QueryEventMarks(Request(selector), limit);
    EXPECT_TRUE(marks.ok()) << marks.status();
    return marks.ok() ? *std::move(marks) : EventMarks();
  }
  // Returns "restart 2", the kind and the pid of each mark.
  std::vector<std::string> Shown(size_t limit = 100, std::string_view selector = "{}") {
    std::vector<std::string> shown;
    for (const EventMarks::Mark& mark : Marks(limit, selector).marks) {
      const char* kind = mark.kind == EventMarks::Kind::kCrash ? "crash"
                         : mark.kind == EventMarks::Kind::kOom ? "oom"
                                                               : "restart";
      shown.push_back(std::string(kind) + " " + std::to_string(mark.record.pid.value));
    }
    return shown;
  }
  void ReportOtherContainer() {
    metadata_->Take(kCluster,
                    {.entities = {{.kind = EntityKind::kContainer,
                                   .id = kOtherContainer,
                                   .attributes = {{"k8s.container.name", "nginx"}, {"k8s.pod.uid", kPodUid}}}}});
  }
};

TEST_F(EventMarksTest, ShowsCrashesAndOomKills) {
  Add(Exit(1, 1, Killed(SIGSEGV)));
  Add(Exit(2, 2, {.signal = SIGKILL, .oom_killed = true}));
  Add(Exit(3, 3, Killed(SIGTERM)));
  Add(Exit(4, 4, {.exit_code = 1}));
  Event sum = Exit(5, 0, Killed(SIGABRT));
  sum.kind = ProcessEventKind::kSum;
  sum.processes = 12;
  Add(sum);
  EXPECT_THAT(Shown(), ElementsAre("crash 0", "oom 2", "crash 1"));
  EXPECT_EQ(Marks().marks[0].count, 12u);
  EXPECT_THAT(Shown(100, R"({process_pid="1"})"), ElementsAre("crash 1"));
}

TEST_F(EventMarksTest, AProgramThatItsSupervisorStartsAgainIsARestart) {
  Add(Exit(10 * kS, 1, Killed(SIGTERM)));
  Add(Exec(11 * kS, 2));
  Add(Exec(12 * kS, 3));  // one end is one restart
  const EventMarks marks = Marks();
  EXPECT_THAT(Shown(), ElementsAre("restart 2"));
  EXPECT_EQ(marks.marks[0].end.signal, SIGTERM);
  EXPECT_EQ(marks.marks[0].record.time, At(11 * kS));
  EXPECT_THAT(Pids("restart"), ElementsAre(2));
  EXPECT_THAT(Pids("restart,exit"), ElementsAre(1, 2));
  EXPECT_THAT(Pids("restart,exec"), ElementsAre(2, 3)) << "no event occurs twice";
}

TEST_F(EventMarksTest, AnEndBeforeTheRangeCounts) {
  Add(Exit(-20 * kS, 1, Killed(SIGTERM)));
  Add(Exec(30 * kS, 2));
  EXPECT_THAT(Shown(), ElementsAre("restart 2"));
  EXPECT_THAT(Pids("restart"), ElementsAre(2));
  store_.shards[0].events[0].time = At(-31 * kS);
  EXPECT_THAT(Shown(), IsEmpty()) << "more than a minute";
}

TEST_F(EventMarksTest, AnUnknownEndCounts) {
  Add(Of(ProcessEventKind::kEndUnknown, 10 * kS, 1));
  Add(Of(ProcessEventKind::kStart, 11 * kS, 2));
  EXPECT_THAT(Shown(), ElementsAre("restart 2"));
}

TEST_F(EventMarksTest, OtherProgramsPlacesAndParentsAreNoRestarts) {
  Add(Exit(10 * kS, 1, Killed(SIGTERM)));
  Add(Exec(11 * kS, 2, "/bin/other"));
  Event other = Exec(12 * kS, 3);
  other.parent = Pid{8};
  Add(other);
  other = Exec(13 * kS, 4);
  other.cgroup_path = "/system.slice/other.service";
  Add(other);
  other = Exec(14 * kS, 5);
  other.node_id = "node-2";
  Add(other);
  Add(InContainer(Exec(15 * kS, 6)));
  Event no_path = Exit(16 * kS, 7, Killed(SIGTERM), "");
  Add(no_path);
  Add(Exec(17 * kS, 8, ""));
  EXPECT_THAT(Shown(), IsEmpty());
}

// A shell that runs `sleep 1` again and again, a pipe that ends early, a test that fails.
TEST_F(EventMarksTest, ShortCommandsAreNoRestarts) {
  struct Case {
    ProcessEnd end;
    bool is_restart;
  };
  const Case cases[] = {
      {{.run_ns = 5 * kS}, false}, {{.exit_code = 1, .run_ns = kS / 2}, false}, {Killed(SIGPIPE, 5 * kS), false},
      {{.run_ns = 10 * kS}, true}, {{.exit_code = 1, .run_ns = kS}, true},      {Killed(SIGPIPE, 10 * kS), true},
      {Killed(SIGSEGV, 1), true}};
  for (const Case& c : cases) {
    store_.shards[0].events = {Exit(10 * kS, 1, c.end), Exec(11 * kS, 2)};
    EXPECT_EQ(Pids("restart").size(), c.is_restart ? 1u : 0u) << c.end.run_ns << " " << int{c.end.signal};
  }
}

TEST_F(EventMarksTest, ARestartedContainerIsOneRestart) {
  ReportPod("1", At(0));
  ReportOtherContainer();
  for (int32_t pid : {1, 2, 3}) Add(InContainer(Exit(10 * kS, pid, Killed(SIGKILL))));
  for (int32_t pid : {11, 12, 13}) {
    Event begin = InContainer(Exec((20 + pid) * kS, pid), kOtherContainer);
    begin.parent = Pid{100 + pid};
    Add(begin);
  }
  Add(InContainer(Exit(34 * kS, 14, Killed(SIGKILL)), kOtherContainer));
  Add(InContainer(Exec(35 * kS, 15), kOtherContainer));
  EXPECT_THAT(Shown(), ElementsAre("restart 15", "restart 11")) << "pid 15: the same container, the same parent";
  EXPECT_EQ(Marks().marks[1].place.container, "nginx");
}

TEST_F(EventMarksTest, ContainersWithoutANameAreRecognisedByTheirId) {
  Add(InContainer(Exit(10 * kS, 1, Killed(SIGKILL))));
  Add(InContainer(Exec(11 * kS, 2), kOtherContainer));
  EXPECT_THAT(Shown(), IsEmpty());
  Add(InContainer(Exec(12 * kS, 3)));
  EXPECT_THAT(Shown(), ElementsAre("restart 3"));
}

TEST_F(EventMarksTest, KeepsTheMostImportantMarks) {
  for (int32_t i = 1; i <= 5; ++i) Add(Exit(i, i, Killed(SIGSEGV), "/bin/" + std::to_string(i)));
  Add(Exit(20 * kS, 6, Killed(SIGTERM)));
  Add(Exec(21 * kS, 7));
  EXPECT_THAT(Shown(4), ElementsAre("crash 5", "crash 4", "crash 3", "crash 2"));
  EXPECT_TRUE(Marks(5).truncated);
  EXPECT_FALSE(Marks(6).truncated);
  EXPECT_THAT(Shown(6), ElementsAre("restart 7", "crash 5", "crash 4", "crash 3", "crash 2", "crash 1"));
}

TEST_F(EventMarksTest, BeginsLongAfterAnEndDoNotCount) {
  Add(Exit(10 * kS, 1, Killed(SIGTERM)));
  const auto many = static_cast<int32_t>(RestartFinder::kBeginsMax + 10);
  for (int32_t i = 0; i < many; ++i) Add(Exec(75 * kS + i, 10 + i));
  Add(Exit(-5 * kS, 2, Killed(SIGTERM), "/bin/other"));
  Add(Exec(2 * kS, 3, "/bin/other"));
  EXPECT_THAT(Shown(), ElementsAre("restart 3"));
  EXPECT_FALSE(Marks().truncated);
}

// A hostile node sends many ends with long texts.
TEST_F(EventMarksTest, TheTextsOfEndsAreLimited) {
  for (int i = 0; i < 5000; ++i) {
    Event event = Exit(10 * kS + i, i + 1, Killed(SIGTERM), "/" + std::string(4095, 'x'));
    event.cgroup_path = "/" + std::string(4095, 'y');
    Add(event);
  }
  EXPECT_TRUE(Marks().truncated);
}

TEST_F(EventMarksTest, LongTextsLeaveOutTheOldestMarks) {
  for (int i = 1; i <= 2000; ++i) {
    Event event = Exit((i * 7) % 2001, (i * 7) % 2001, Killed(SIGSEGV), "/" + std::string(4095, 'x'));
    event.cgroup_path = "/" + std::string(4095, 'y');
    Add(event);
  }
  const EventMarks marks = Marks(2000);
  EXPECT_TRUE(marks.truncated);
  ASSERT_GT(marks.marks.size(), 500u);
  ASSERT_LT(marks.marks.size(), 1000u);
  for (size_t i = 0; i < marks.marks.size(); ++i) {
    EXPECT_EQ(marks.marks[i].record.pid.value, 2000 - static_cast<int32_t>(i));
  }
}

}  // namespace
}  // namespace tributary
