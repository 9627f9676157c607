#include "kernel-collector/processes/resource_reader.h"

#include <gtest/gtest.h>

#include "kernel-collector/processes/fakes_testing.h"

namespace tributary {
namespace {

using std::string_literals::operator""s;

class ResourceReaderTest : public testing::Test {
 protected:
  void AddProcess(int pid, const std::string& environment) {
    proc.AddProcess(pid, {});
    FakeProc::Write(fmt::format("{}/{}/environ", proc.proc(), pid), environment);
  }
  void Exec(int pid) {
    table.OnComm({.time = clock.Monotonic(), .pid = Pid{pid}, .tid = Tid{pid}, .exec = true, .comm = "prog"});
    clock.Advance(1);
  }
  void Fork(int parent, int pid) {
    table.OnFork({clock.Monotonic(), Pid{pid}, Pid{parent}, Tid{pid}, Tid{parent}});
    clock.Advance(1);
  }
  void Exit(int pid) {
    table.OnExit({clock.Monotonic(), Pid{pid}, Tid{pid}});
    clock.Advance(1);
  }
  ProcessRunPtr RunPtr(int pid) { return table.Find(Pid{pid}); }
  ProcessRun& Run(int pid) { return *RunPtr(pid); }
  // Samples the process, runs the reading, settles, and returns the attributes.
  std::string ReadAttributes(int pid) {
    ProcessRunPtr run = table.Find(Pid{pid});
    resources.OnSample(run, clock.Monotonic(), table);
    executor.RunAll();
    clock.Advance(1);
    resources.Settle(table);
    return run->attributes == nullptr ? "" : *run->attributes;
  }
  uint64_t Unread() { return metrics.AddCounter("tributary_collector_environments_unread_total", "").value(); }

  FakeProc proc;
  FakeClock clock{MonotonicNs{100 * kNsPerSecond}};
  Metrics metrics;
  FakeExecutor executor;
  CodeFileTable files{metrics};
  ProcessTable table{files, metrics};
  ResourceReader resources{{.proc_root = proc.proc(), .names = {"POD"}}, executor, clock, metrics};
};

TEST_F(ResourceReaderTest, ReadsOnceAndReportsOnce) {
  AddProcess(5, "OTEL_SERVICE_NAME=shop\0POD=web\0"s);
  Exec(5);
  resources.OnSample(RunPtr(5), clock.Monotonic(), table);
  EXPECT_EQ(Run(5).environment, ProcessRun::Environment::kReading);
  EXPECT_EQ(executor.RunAll(), 1u);
  auto learned = resources.Settle(table);
  ASSERT_EQ(learned.size(), 1u);
  EXPECT_EQ(*learned[0]->attributes, "service.name=shop,process.environment_variable.POD=web");
  EXPECT_EQ(Run(5).environment, ProcessRun::Environment::kKnown);
  EXPECT_TRUE(resources.Settle(table).empty());
}

TEST_F(ResourceReaderTest, AProcessIsReadOnceAtATime) {
  AddProcess(5, "OTEL_SERVICE_NAME=shop\0"s);
  Exec(5);
  resources.OnSample(RunPtr(5), clock.Monotonic(), table);
  clock.Advance(ResourceReader::kContextPeriodMaxNs);  // the context becomes due repeatedly while the reading hangs
  for (int i = 0; i < 3; ++i) resources.OnSample(RunPtr(5), clock.Monotonic(), table);
  EXPECT_EQ(executor.RunAll(), 1u);
  EXPECT_EQ(resources.Settle(table).size(), 1u);
  resources.OnSample(RunPtr(5), clock.Monotonic(), table);
  EXPECT_EQ(executor.RunAll(), 1u) << "then it is looked for";
}

TEST_F(ResourceReaderTest, ReportsNothingWithoutAttributes) {
  AddProcess(5, "PATH=/bin\0"s);
  Exec(5);
  resources.OnSample(RunPtr(5), clock.Monotonic(), table);
  executor.RunAll();
  EXPECT_TRUE(resources.Settle(table).empty());
  EXPECT_EQ(Unread(), 0u);
}

TEST_F(ResourceReaderTest, AForkSharesItsParentsAttributesUntilItExecs) {
  AddProcess(5, "OTEL_SERVICE_NAME=shop\0"s);
  Exec(5);
  EXPECT_EQ(ReadAttributes(5), "service.name=shop");
  Fork(5, 6);  // not in /proc: it is not read
  EXPECT_EQ(ReadAttributes(6), "service.name=shop");
  AddProcess(6, "OTEL_SERVICE_NAME=other\0"s);
  Exec(6);
  EXPECT_EQ(Run(6).attributes, nullptr);
  EXPECT_EQ(ReadAttributes(6), "service.name=other");
  EXPECT_EQ(Unread(), 0u);
}

TEST_F(ResourceReaderTest, ReadsAForkOfAnUnknownParent) {
  Exec(5);
  AddProcess(6, "OTEL_SERVICE_NAME=shop\0"s);
  Fork(5, 6);
  EXPECT_EQ(ReadAttributes(6), "service.name=shop");
}

// Short-lived children of a parent that only waits. The parent is read because of them, and they get its attributes.
TEST_F(ResourceReaderTest, AGoneChildGetsItsParentsAttributesLater) {
  AddProcess(5, "OTEL_SERVICE_NAME=shop\0"s);
  Exec(5);
  Fork(5, 6);
  Fork(6, 7);
  const ProcessRunPtr child = RunPtr(6), grandchild = RunPtr(7);
  Exit(7);
  Exit(6);
  resources.OnSample(grandchild, clock.Monotonic(), table);  // its samples are processed after its end
  for (int i = 0; i < 3; ++i) {
    executor.RunAll();
    clock.Advance(1);
    for (const ProcessRunPtr& run : resources.Settle(table)) EXPECT_EQ(*run->attributes, "service.name=shop");
  }
  ASSERT_NE(grandchild->attributes, nullptr);
  EXPECT_EQ(*grandchild->attributes, "service.name=shop");
  EXPECT_EQ(Unread(), 0u);
  resources.OnSample(child, clock.Monotonic(), table);
  EXPECT_EQ(*child->attributes, "service.name=shop");
}

// The child's run before its exec has a sample, and no other component keeps this run.
TEST_F(ResourceReaderTest, AChildReplacedByExecGetsItsParentsAttributes) {
  AddProcess(5, "OTEL_SERVICE_NAME=shop\0"s);
  Exec(5);
  Fork(5, 6);
  ProcessRunPtr before = RunPtr(6);
  Exec(6);
  resources.OnSample(before, clock.Monotonic(), table);
  before.reset();
  executor.RunAll();
  clock.Advance(1);
  std::vector<Pid> settled;
  for (const ProcessRunPtr& run : resources.Settle(table)) settled.push_back(run->pid);
  EXPECT_EQ(settled, (std::vector<Pid>{Pid{5}, Pid{6}}));
}

// A process's memory is released before the event of its end, and appears after the event of its exec.
TEST_F(ResourceReaderTest, AnEmptyChildGetsItsParentsAttributes) {
  AddProcess(5, "OTEL_SERVICE_NAME=shop\0"s);
  Exec(5);
  AddProcess(6, "");
  Fork(5, 6);
  ReadAttributes(6);
  EXPECT_EQ(ReadAttributes(6), "service.name=shop");
  EXPECT_EQ(Unread(), 0u);
}

TEST_F(ResourceReaderTest, CountsParentAndChildWhenBothAreGone) {
  Exec(5);
  Fork(5, 6);
  const ProcessRunPtr parent = RunPtr(5), child = RunPtr(6);
  Exit(6);
  Exit(5);
  resources.OnSample(child, clock.Monotonic(), table);
  executor.RunAll();
  clock.Advance(1);
  EXPECT_TRUE(resources.Settle(table).empty());
  EXPECT_EQ(child->attributes, nullptr);
  EXPECT_EQ(child->environment, ProcessRun::Environment::kKnown);
  EXPECT_EQ(Unread(), 2u) << "parent and child";
  resources.OnSample(parent, clock.Monotonic(), table);
  resources.OnSample(child, clock.Monotonic(), table);
  EXPECT_EQ(executor.RunAll(), 0u);
}

TEST_F(ResourceReaderTest, CountsGoneProcessesWithoutAttributes) {
  Exec(5);
  EXPECT_EQ(ReadAttributes(5), "");  // not in /proc any more
  EXPECT_EQ(Unread(), 1u);
  AddProcess(6, "OTEL_SERVICE_NAME=shop\0"s);
  Exec(6);
  Exit(6);
  EXPECT_EQ(ReadAttributes(6), "");  // its exit is known, so the pid may belong to another process
  EXPECT_EQ(Unread(), 2u);
}

TEST_F(ResourceReaderTest, IgnoresTheAttributesOfAnotherProgram) {
  AddProcess(5, "OTEL_SERVICE_NAME=next\0"s);
  Exec(5);
  ProcessRunPtr before = table.Find(Pid{5});
  resources.OnSample(before, clock.Monotonic(), table);
  Exec(5);  // happened before the reading, but is known only now
  executor.RunAll();
  EXPECT_TRUE(resources.Settle(table).empty());
  EXPECT_EQ(before->attributes, nullptr);
  EXPECT_EQ(Unread(), 1u);
  EXPECT_EQ(ReadAttributes(5), "service.name=next");
}

TEST_F(ResourceReaderTest, AnEndAfterTheReadingKeepsTheResult) {
  AddProcess(5, "OTEL_SERVICE_NAME=shop\0"s);
  AddProcess(6, "OTEL_SERVICE_NAME=short\0"s);
  Exec(5);
  Exec(6);
  ProcessRunPtr before = table.Find(Pid{5});
  resources.OnSample(before, clock.Monotonic(), table);
  resources.OnSample(RunPtr(6), clock.Monotonic(), table);
  executor.RunAll();
  clock.Advance(1);
  Exec(5);
  Exit(6);
  EXPECT_EQ(resources.Settle(table).size(), 2u);
  EXPECT_EQ(*before->attributes, "service.name=shop");
  EXPECT_EQ(*Run(6).attributes, "service.name=short");
}

// Publishes a process's `service.name` as an SDK does.
class ResourceReaderContextTest : public ResourceReaderTest {
 protected:
  void Publish(int pid, const std::string& name) {
    proc.AddProcess(pid, {.maps = "1000-2000 rw-p 00000000 00:01 9   /memfd:OTEL_CTX (deleted)\n"});
    const std::string value = Field(1, name), attribute = Field(1, "service.name") + Field(2, value);
    const std::string message = Field(1, Field(1, attribute));
    std::string memory(0x1000, '\0');
    memory += "OTEL_CTX\2\0\0\0"s + static_cast<char>(message.size()) + "\0\0\0\7\0\0\0\0\0\0\0\x20\x10\0\0\0\0\0\0"s +
              message;
    FakeProc::Write(fmt::format("{}/{}/mem", proc.proc(), pid), memory);
  }
  static std::string Field(int number, const std::string& bytes) {
    return std::string{static_cast<char>((number << 3) | 2), static_cast<char>(bytes.size())} + bytes;
  }
};

TEST_F(ResourceReaderContextTest, TheContextTakesPrecedence) {
  Publish(5, "shop");
  FakeProc::Write(proc.proc() + "/5/environ", "OTEL_SERVICE_NAME=env\0POD=web\0"s);
  Exec(5);
  EXPECT_EQ(ReadAttributes(5), "service.name=env,process.environment_variable.POD=web");  // it has only just started
  clock.Advance(ResourceReader::kFirstContextNs);
  EXPECT_EQ(ReadAttributes(5), "service.name=shop,process.environment_variable.POD=web");
  // The context is read again, at growing intervals.
  Publish(5, "renamed");
  clock.Advance(10 * ResourceReader::kFirstContextNs - 2);
  EXPECT_EQ(ReadAttributes(5), "service.name=shop,process.environment_variable.POD=web");
  clock.Advance(2);
  EXPECT_EQ(ReadAttributes(5), "service.name=renamed,process.environment_variable.POD=web");
  proc.AddProcess(5, {});
  clock.Advance(100 * ResourceReader::kFirstContextNs);
  EXPECT_EQ(ReadAttributes(5),
            "service.name=env,process.environment_variable.POD=web");  // the process has withdrawn its context
}

TEST_F(ResourceReaderContextTest, DoesNotReportTheSameContextAgain) {
  Publish(5, "shop");
  FakeProc::Write(proc.proc() + "/5/environ", "");
  Exec(5);
  ReadAttributes(5);
  clock.Advance(ResourceReader::kFirstContextNs);
  EXPECT_EQ(ReadAttributes(5), "service.name=shop");
  clock.Advance(10 * ResourceReader::kFirstContextNs);
  resources.OnSample(RunPtr(5), clock.Monotonic(), table);
  EXPECT_EQ(executor.RunAll(), 1u);
  EXPECT_TRUE(resources.Settle(table).empty());
}

TEST_F(ResourceReaderContextTest, AChildHasOnlyItsOwnContext) {
  Publish(5, "shop");
  FakeProc::Write(proc.proc() + "/5/environ", "POD=web\0"s);
  Exec(5);
  ReadAttributes(5);
  clock.Advance(ResourceReader::kFirstContextNs);
  EXPECT_EQ(ReadAttributes(5), "service.name=shop,process.environment_variable.POD=web");
  Fork(5, 6);
  EXPECT_EQ(ReadAttributes(6), "process.environment_variable.POD=web");
  Publish(6, "child");
  clock.Advance(ResourceReader::kFirstContextNs);
  EXPECT_EQ(ReadAttributes(6), "service.name=child,process.environment_variable.POD=web");
}

TEST_F(ResourceReaderContextTest, AMalformedContextIsCountedAndChangesNothing) {
  proc.AddProcess(5, {.maps = "1000-2000 rw-p 00000000 00:01 9   /memfd:OTEL_CTX\n"});
  FakeProc::Write(proc.proc() + "/5/environ", "OTEL_SERVICE_NAME=env\0"s);
  FakeProc::Write(proc.proc() + "/5/mem", std::string(0x2000, 'x'));
  Exec(5);
  ReadAttributes(5);
  clock.Advance(ResourceReader::kFirstContextNs);
  EXPECT_EQ(ReadAttributes(5), "service.name=env");
  EXPECT_EQ(metrics.AddCounter("tributary_collector_process_contexts_refused_total", "").value(), 1u);
}

TEST_F(ResourceReaderTest, AsksAFullWorkerAgain) {
  AddProcess(5, "OTEL_SERVICE_NAME=shop\0"s);
  Exec(5);
  executor.capacity = 0;
  EXPECT_EQ(ReadAttributes(5), "");
  executor.capacity = 1;
  EXPECT_EQ(ReadAttributes(5), "service.name=shop");
}

}  // namespace
}  // namespace tributary
