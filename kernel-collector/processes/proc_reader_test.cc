#include "kernel-collector/processes/proc_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "kernel-collector/processes/fakes_testing.h"
#include "kernel-collector/processes/proc_files.h"

namespace tributary {
namespace {

const std::string kTail = " S 7 1 1 0 -1 4194304 0 0 0 0 0 0 0 0 20 0 1 0 12345 1 1 18446744073709551615\n";

TEST(ProcStat, ReadsTheFieldsWeNeed) {
  auto stat = ParseProcStat("42 (cat)" + kTail);
  ASSERT_TRUE(stat.ok());
  EXPECT_EQ(stat->comm, "cat");
  EXPECT_EQ(stat->parent, Pid{7});
  EXPECT_EQ(stat->start_ticks, 12345u);
  EXPECT_FALSE(stat->kernel_thread);
}

TEST(ProcStat, TakesAnyName) {
  for (std::string comm : {") S 1 1 (", "a b", "((", "))", "\n", "\x1b[2J", ""}) {
    auto stat = ParseProcStat("42 (" + comm + ")" + kTail);
    ASSERT_TRUE(stat.ok()) << comm;
    EXPECT_EQ(stat->comm, comm);
    EXPECT_EQ(stat->start_ticks, 12345u);
  }
}

TEST(ProcStat, RecognizesKernelThreads) {
  auto stat = ParseProcStat("2 (kthreadd) S 0 0 0 0 -1 2129984 0 0 0 0 0 0 0 0 20 0 1 0 3 0 0\n");
  ASSERT_TRUE(stat.ok());
  EXPECT_TRUE(stat->kernel_thread);
}

TEST(ProcStat, RejectsMalformedLines) {
  for (const char* text :
       {"", "42", "42 (cat", "42 cat) S", "42 (cat) S 7 1 1", ") (",
        "42 (cat)S 7 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 1", "42 (cat) S x 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 1",
        "42 (cat) S 7 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 -1", "42 (cat) S 7  1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 1"}) {
    EXPECT_EQ(ParseProcStat(text).status().code(), absl::StatusCode::kInvalidArgument) << text;
  }
}

TEST(ProcReader, ReadsAProcess) {
  FakeProc proc;
  FakeClock clock;
  proc.AddProcess(42, {.comm = "x (y)",
                       .parent = 7,
                       .start_ticks = 99,
                       .maps = "1000-2000 r--p 00000000 08:01 7 /bin/x\n2000-3000 r-xp 00001000 08:01 7 /bin/x\n",
                       .exe = "/bin/x (deleted)"});
  ProcReader reader(proc.proc(), clock);
  auto snapshot = reader.Read(Pid{42});
  ASSERT_TRUE(snapshot.ok()) << snapshot.status();
  EXPECT_EQ(snapshot->stat.comm, "x (y)");
  EXPECT_EQ(snapshot->executable_path, "/bin/x");
  EXPECT_EQ(snapshot->read_at, clock.Monotonic());
  ASSERT_EQ(snapshot->code.size(), 1u);  // code only
  EXPECT_EQ(snapshot->code[0].start, 0x2000u);
  EXPECT_EQ(reader.Read(Pid{43}).status().code(), absl::StatusCode::kNotFound);
}

TEST(ProcReader, ListsNumbersOnly) {
  FakeProc proc;
  FakeClock clock;
  proc.AddProcess(42, {});
  proc.AddProcess(7, {});
  for (const char* name : {"self", "0", "-1", "12x", "99999999999"}) {
    std::filesystem::create_directory(proc.proc() + "/" + name);
  }
  EXPECT_THAT(ProcReader(proc.proc(), clock).ListProcesses(), testing::UnorderedElementsAre(Pid{7}, Pid{42}));
}

TEST(ProcFiles, RefusesFilesThatAreNotRegular) {
  FakeProc proc;
  std::string fifo = proc.files() + "/fifo";
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  // Neither call may block, although the FIFO has no writer.
  EXPECT_EQ(OpenRegularFile(fifo).status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(OpenRegularFileIn(proc.files(), "/fifo").status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(OpenRegularFile(proc.files()).status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(OpenRegularFile("/dev/null").status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(OpenRegularFile(proc.files() + "/none").status().code(), absl::StatusCode::kNotFound);
}

TEST(ProcFiles, SymbolicLinksStayInsideTheRoot) {
  FakeProc proc;
  proc.AddFile("/secret", "inside");
  std::filesystem::create_directory(proc.files() + "/sub");
  FakeProc::Write(proc.proc() + "/secret", "outside");
  std::filesystem::create_symlink("/secret", proc.files() + "/absolute");
  std::filesystem::create_symlink("../../../../proc/secret", proc.files() + "/sub/relative");
  auto fd = OpenRegularFileIn(proc.files(), "/absolute");
  ASSERT_TRUE(fd.ok()) << fd.status();
  char bytes[16] = {};
  ASSERT_EQ(read(fd->get(), bytes, sizeof bytes), 6);
  EXPECT_STREQ(bytes, "inside");
  EXPECT_FALSE(OpenRegularFileIn(proc.files(), "/sub/relative").ok());
}

TEST(ProcFiles, ReadsNoMoreThanAllowed) {
  FakeProc proc;
  std::string path = proc.AddFile("/f", std::string(100, 'x'));
  EXPECT_EQ(ReadSmallFile(path, 100)->size(), 100u);
  EXPECT_EQ(ReadSmallFile(path, 99).status().code(), absl::StatusCode::kOutOfRange);
}

}  // namespace
}  // namespace tributary
