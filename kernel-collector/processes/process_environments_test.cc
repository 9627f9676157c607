#include "kernel-collector/processes/process_environments.h"

#include <gtest/gtest.h>

#include "kernel-collector/processes/fakes_for_test.h"

namespace tributary {
namespace {

using std::string_literals::operator""s;

class ProcessEnvironmentsTest : public testing::Test {
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
  ProcessRun& Run(int pid) { return *table.Find(Pid{pid}); }
  // Asked for, read, settled.
  std::string Told(int pid) {
    ProcessRunPtr run = table.Find(Pid{pid});
    if (run->environment == ProcessRun::Environment::kUnread) environments.Want(*run, table);
    executor.RunAll();
    clock.Advance(1);
    environments.Settle(table);
    return run->attributes == nullptr ? "" : *run->attributes;
  }
  uint64_t Unread() { return metrics.AddCounter("tributary_collector_environments_unread_total", "").value(); }

  FakeProc proc;
  FakeClock clock{MonotonicNs{100 * kNsPerSecond}};
  Metrics metrics;
  FakeExecutor executor;
  CodeFileTable files{metrics};
  ProcessTable table{files, metrics};
  ProcessEnvironments environments{{.proc_root = proc.proc(), .names = {"POD"}}, executor, clock, metrics};
};

TEST_F(ProcessEnvironmentsTest, ReadOnceAndToldOnce) {
  AddProcess(5, "OTEL_SERVICE_NAME=shop\0POD=web\0"s);
  Exec(5);
  environments.Want(Run(5), table);
  EXPECT_EQ(Run(5).environment, ProcessRun::Environment::kReading);
  EXPECT_EQ(executor.RunAll(), 1u);
  auto learned = environments.Settle(table);
  ASSERT_EQ(learned.size(), 1u);
  EXPECT_EQ(*learned[0]->attributes, "service.name=shop,process.environment_variable.POD=web");
  EXPECT_EQ(Run(5).environment, ProcessRun::Environment::kKnown);
  EXPECT_TRUE(environments.Settle(table).empty());
}

TEST_F(ProcessEnvironmentsTest, NothingToSayIsNothingToTell) {
  AddProcess(5, "PATH=/bin\0"s);
  Exec(5);
  environments.Want(Run(5), table);
  executor.RunAll();
  EXPECT_TRUE(environments.Settle(table).empty());
  EXPECT_EQ(Unread(), 0u);
}

TEST_F(ProcessEnvironmentsTest, AForkSharesItsParentsUntilItExecs) {
  AddProcess(5, "OTEL_SERVICE_NAME=shop\0"s);
  Exec(5);
  EXPECT_EQ(Told(5), "service.name=shop");
  Fork(5, 6);  // nothing in /proc: it is not looked at
  EXPECT_EQ(Told(6), "service.name=shop");
  AddProcess(6, "OTEL_SERVICE_NAME=other\0"s);
  Exec(6);
  EXPECT_EQ(Run(6).attributes, nullptr);
  EXPECT_EQ(Told(6), "service.name=other");
  EXPECT_EQ(Unread(), 0u);
}

TEST_F(ProcessEnvironmentsTest, AForkOfAParentThatIsNotKnownIsRead) {
  Exec(5);
  AddProcess(6, "OTEL_SERVICE_NAME=shop\0"s);
  Fork(5, 6);
  EXPECT_EQ(Told(6), "service.name=shop");
}

TEST_F(ProcessEnvironmentsTest, WhatIsGoneHasNoneAndIsCounted) {
  Exec(5);
  EXPECT_EQ(Told(5), "");  // not in /proc any more
  EXPECT_EQ(Unread(), 1u);
  AddProcess(6, "OTEL_SERVICE_NAME=shop\0"s);
  Exec(6);
  Exit(6);
  EXPECT_EQ(Told(6), "");  // its exit is known, and so the pid may be another's
  EXPECT_EQ(Unread(), 2u);
}

TEST_F(ProcessEnvironmentsTest, AnotherProgramsIsNotTaken) {
  AddProcess(5, "OTEL_SERVICE_NAME=next\0"s);
  Exec(5);
  ProcessRunPtr before = table.Find(Pid{5});
  environments.Want(*before, table);
  Exec(5);  // happened before the reading, is only learned now
  executor.RunAll();
  EXPECT_TRUE(environments.Settle(table).empty());
  EXPECT_EQ(before->attributes, nullptr);
  EXPECT_EQ(Unread(), 1u);
  EXPECT_EQ(Told(5), "service.name=next");
}

TEST_F(ProcessEnvironmentsTest, AnEndAfterTheReadingDoesNotSpoilIt) {
  AddProcess(5, "OTEL_SERVICE_NAME=shop\0"s);
  AddProcess(6, "OTEL_SERVICE_NAME=short\0"s);
  Exec(5);
  Exec(6);
  ProcessRunPtr before = table.Find(Pid{5});
  environments.Want(*before, table);
  environments.Want(Run(6), table);
  executor.RunAll();
  clock.Advance(1);
  Exec(5);
  Exit(6);
  EXPECT_EQ(environments.Settle(table).size(), 2u);
  EXPECT_EQ(*before->attributes, "service.name=shop");
  EXPECT_EQ(*Run(6).attributes, "service.name=short");
}

TEST_F(ProcessEnvironmentsTest, AFullWorkerIsAskedAgain) {
  AddProcess(5, "OTEL_SERVICE_NAME=shop\0"s);
  Exec(5);
  executor.capacity = 0;
  EXPECT_EQ(Told(5), "");
  executor.capacity = 1;
  EXPECT_EQ(Told(5), "service.name=shop");
}

}  // namespace
}  // namespace tributary
