#include "kernel-collector/runtimes/jit/process_files.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "kernel-collector/runtimes/jit/jit_testing.h"

namespace tributary {
namespace {

constexpr Pid kPid{JitProc::kPid};

absl::StatusCode OpenMap(const JitProc& proc) {
  auto files = ProcessFiles::Open(proc.proc(), kPid);
  EXPECT_TRUE(files.ok()) << files.status();
  return files->OpenOwned("tmp/perf-7.map").status().code();
}

TEST(ProcessFiles, KnowsTheProcessAsItSeesItself) {
  JitProc proc;
  auto files = ProcessFiles::Open(proc.proc(), kPid);
  ASSERT_TRUE(files.ok()) << files.status();
  EXPECT_EQ(files->user(), geteuid());
  EXPECT_EQ(files->inner_pid().value, 7);
  EXPECT_EQ(files->start_ticks(), JitProc::kStartTicks);
  EXPECT_EQ(ProcessFiles::Open(proc.proc(), Pid{1}).status().code(), absl::StatusCode::kNotFound);
}

TEST(ProcessFiles, OpensAFileOfTheProcess) {
  JitProc proc;
  EXPECT_EQ(OpenMap(proc), absl::StatusCode::kNotFound);
  proc.WriteMap("10 1 a\n");
  EXPECT_EQ(OpenMap(proc), absl::StatusCode::kOk);
}

TEST(ProcessFiles, RefusesFilesOfOthers) {
  JitProc proc;
  proc.WriteMap("10 1 a\n");
  const bool is_root = geteuid() == 0;
  ASSERT_EQ(is_root ? chown(proc.map_path().c_str(), 4242, 4242) : 0, 0);
  proc.AddJitProcess(JitProc::kPid, 7, 4243);
  EXPECT_EQ(OpenMap(proc), absl::StatusCode::kPermissionDenied);
  proc.AddJitProcess(JitProc::kPid, 7, is_root ? 4242 : geteuid());
  EXPECT_EQ(OpenMap(proc), absl::StatusCode::kOk);
}

TEST(ProcessFiles, RefusesAllButRegularFiles) {
  JitProc proc;
  const std::string other = proc.AddFile("/tmp/other", "10 1 a\n");
  ASSERT_EQ(symlink(other.c_str(), proc.map_path().c_str()), 0);
  EXPECT_EQ(OpenMap(proc), absl::StatusCode::kFailedPrecondition);
  ASSERT_EQ(unlink(proc.map_path().c_str()), 0);
  ASSERT_EQ(link(other.c_str(), proc.map_path().c_str()), 0);
  EXPECT_EQ(OpenMap(proc), absl::StatusCode::kFailedPrecondition);
  ASSERT_EQ(unlink(proc.map_path().c_str()), 0);
  ASSERT_EQ(mkfifo(proc.map_path().c_str(), 0600), 0);
  EXPECT_EQ(OpenMap(proc), absl::StatusCode::kFailedPrecondition);  // and does not block
  ASSERT_EQ(unlink(proc.map_path().c_str()), 0);
  ASSERT_EQ(mkdir(proc.map_path().c_str(), 0700), 0);
  EXPECT_EQ(OpenMap(proc), absl::StatusCode::kFailedPrecondition);
}

TEST(ProcessFiles, LinksCannotLeadOutOfTheRoot) {
  JitProc proc;
  // A folder of the node that has such a file.
  char outside[] = "/var/tmp/tributary-outside-XXXXXX";
  ASSERT_NE(mkdtemp(outside), nullptr);
  FakeProc::Write(std::string(outside) + "/perf-7.map", "10 1 a\n");
  std::filesystem::remove_all(proc.files() + "/tmp");
  ASSERT_EQ(symlink(outside, (proc.files() + "/tmp").c_str()), 0);
  EXPECT_EQ(OpenMap(proc), absl::StatusCode::kNotFound);
  // The same link inside the root is followed.
  proc.AddFile(std::string(outside) + "/perf-7.map", "10 1 a\n");
  EXPECT_EQ(OpenMap(proc), absl::StatusCode::kOk);
  std::filesystem::remove_all(outside);
}

TEST(ProcessFiles, ParsesStatus) {
  EXPECT_FALSE(ParseProcStatus(""));
  EXPECT_FALSE(ParseProcStatus("Name:\tx\nUid:\t1\n"));
  EXPECT_FALSE(ParseProcStatus("Uid:\t1\tx\t1\t1\n"));
  EXPECT_FALSE(ParseProcStatus("Uid:\t1\t2\t1\t1\nNSpid:\tx\n"));
  const auto status = ParseProcStatus("Uid:\t1\t2\t3\t4");
  ASSERT_TRUE(status);
  EXPECT_EQ(status->effective_user, 2u);
  EXPECT_FALSE(status->inner_pid);
}

}  // namespace
}  // namespace tributary
