#include "kernel-collector/runtimes/jit/jit_reader.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kernel-collector/runtimes/jit/jit_dump_testing.h"
#include "kernel-collector/runtimes/jit/jit_testing.h"

namespace tributary {
namespace {

class JitReaderTest : public testing::Test {
 protected:
  JitReader::Result Read() {
    clock.Advance(kNsPerSecond);
    last = reader.Read(request, clock);
    names.map = last.map_names;
    names.dump = last.dump_names;
    return last;
  }
  std::string NameAt(uint64_t address, int64_t time = INT64_MAX) {
    CodeName name;
    return names.Find(address, MonotonicNs{time}, &name) ? std::string(name.name) : "-";
  }

  JitProc proc;
  FakeClock clock{MonotonicNs{100 * kNsPerSecond}};
  JitReader reader;
  JitReader::Request request{.proc_root = proc.proc(), .pid = Pid{JitProc::kPid}};
  JitReader::Result last;
  JitNames names;
};

TEST_F(JitReaderTest, ReadsOnlyWhatWasAppended) {
  EXPECT_TRUE(absl::IsNotFound(Read().map));
  EXPECT_TRUE(absl::IsNotFound(last.dump));
  proc.WriteMap("1000 10 a\n2000 10 b\n3000 10 hal");
  EXPECT_TRUE(Read().grew);
  EXPECT_EQ(last.bytes, 31u);
  EXPECT_EQ(NameAt(0x1000), "a");
  EXPECT_EQ(NameAt(0x200f), "b");
  EXPECT_EQ(NameAt(0x3000), "-");
  proc.AppendMap("f\n4000 10 c\nbroken\n");
  EXPECT_TRUE(Read().grew);
  EXPECT_EQ(last.bytes, 19u);
  EXPECT_EQ(last.malformed, 1u);
  EXPECT_EQ(NameAt(0x3000), "half");
  EXPECT_EQ(NameAt(0x4000), "c");
  EXPECT_FALSE(Read().grew);
  EXPECT_EQ(last.bytes, 0u);
  EXPECT_TRUE(last.is_complete);
}

TEST_F(JitReaderTest, AFinishedFileMayEndWithoutANewline) {
  proc.WriteMap("1000 10 last");
  EXPECT_FALSE(Read().grew);
  EXPECT_TRUE(Read().grew);
  EXPECT_EQ(NameAt(0x1000), "last");
  EXPECT_FALSE(Read().grew);
}

TEST_F(JitReaderTest, ALineThatSeemedToBeTheLastMayGoOn) {
  proc.WriteMap("1000 10 std::vec");
  Read();
  Read();
  EXPECT_EQ(NameAt(0x1000), "std::vec");
  proc.AppendMap("tor<int>::push_back\n2000 10 b\n");
  Read();
  EXPECT_EQ(NameAt(0x1000), "std::vector<int>::push_back");
  EXPECT_EQ(NameAt(0x2000), "b");
}

TEST_F(JitReaderTest, AReplacedOrTruncatedFileIsReadAgain) {
  proc.WriteMap("1000 10 a\n2000 10 b\n");
  Read();
  // Another file.
  ASSERT_EQ(unlink(proc.map_path().c_str()), 0);
  proc.WriteMap("1000 10 c\n2000 10 b\n3000 10 d\n");
  Read();
  EXPECT_EQ(NameAt(0x1000), "c");
  EXPECT_EQ(NameAt(0x3000), "d");
  // The same file is shorter now.
  ASSERT_EQ(truncate(proc.map_path().c_str(), 10), 0);
  Read();
  EXPECT_EQ(NameAt(0x1000), "c");
  EXPECT_EQ(NameAt(0x3000), "-");
  // The same file with other lines, and longer.
  proc.WriteMap("1000 10 e\n2000 10 f\n");
  Read();
  EXPECT_EQ(NameAt(0x1000), "e");
  EXPECT_EQ(NameAt(0x2000), "f");
  // Lines of the new file do not name samples from before the last reading of the old file.
  EXPECT_EQ(NameAt(0x1000, clock.Monotonic().value - 2 * kNsPerSecond), "-");
}

TEST_F(JitReaderTest, ReadsAtMostTheFirstBytesOfAHugeFile) {
  proc.WriteMap("1000 10 a\n");
  ASSERT_EQ(truncate(proc.map_path().c_str(), 1 << 30), 0);  // sparse
  uint64_t bytes = 0;
  for (int i = 0; i < 8; ++i) {
    bytes += Read().bytes;
    EXPECT_LE(last.bytes, JitReader::kReadBytesMax);
  }
  EXPECT_EQ(bytes, JitReader::kFileBytesMax);
  EXPECT_TRUE(absl::IsResourceExhausted(last.map));
  EXPECT_TRUE(last.is_complete);
  EXPECT_EQ(NameAt(0x1000), "a");
}

TEST_F(JitReaderTest, TheMemoryForNamesIsBounded) {
  std::string text;
  for (int i = 1; i <= 10'000; ++i) text += fmt::format("{:x} 10 function number {}\n", i * 0x10, i);
  proc.WriteMap(text);
  request.memory_bytes_max = 100'000;
  Read();
  EXPECT_GT(last.refused, 5000u);
  EXPECT_LE(names.own_bytes(), 100'000u);
  EXPECT_EQ(NameAt(0x10), "function number 1");
  EXPECT_EQ(NameAt(10'000 * 0x10), "-");
}

TEST_F(JitReaderTest, TheLimitOfACallIsForBothFiles) {
  proc.WriteMap("1000 10 a\n2000 10 b\n");
  const std::string dump = JitDumpText().Load(10, 0x3000, 0x10, "c").bytes;
  proc.AddFile("/work/jit-7.dump", dump);
  request.dump_path = "/work/jit-7.dump";
  request.bytes_max = 15;
  Read();
  EXPECT_EQ(last.bytes, 15u);
  EXPECT_FALSE(last.is_complete);
  EXPECT_EQ(NameAt(0x2000), "-");
  request.bytes_max = 15 + dump.size();
  uint64_t calls = 0;
  for (; !last.is_complete && calls < 5; ++calls) {
    Read();
    EXPECT_LE(last.bytes, request.bytes_max);
  }
  EXPECT_TRUE(last.is_complete);
  EXPECT_EQ(NameAt(0x1000), "a");
  EXPECT_EQ(NameAt(0x2000), "b");
  EXPECT_EQ(NameAt(0x3000), "c");
}

TEST_F(JitReaderTest, AllReadersShareTheMemoryForNames) {
  std::string text;
  for (int i = 1; i <= 10'000; ++i) text += fmt::format("{:x} 10 function number {}\n", i * 0x10, i);
  proc.WriteMap(text);
  constexpr size_t kBytesMax = 2'000'000;
  const auto memory = std::make_shared<NamesMemory>(kBytesMax);
  std::vector<std::unique_ptr<JitReader>> readers;
  for (int i = 0; i < 4; ++i) {
    readers.push_back(std::make_unique<JitReader>(memory));
    last = readers.back()->Read(request, clock);
    EXPECT_EQ(last.refused > 0, i >= 2) << i;
    EXPECT_LE(memory->used(), kBytesMax);
  }
  // The result of the last reading still owns names.
  EXPECT_EQ(last.map_names.functions() > 0, memory->used() > 0);
  readers.clear();
  EXPECT_EQ(memory->used(), last.map_names.bytes());
  last = {};
  EXPECT_EQ(memory->used(), 0u);
}

TEST_F(JitReaderTest, AnotherProcessWithThePidIsNotRead) {
  proc.WriteMap("1000 10 a\n");
  request.start_ticks = JitProc::kStartTicks + 1;
  EXPECT_TRUE(absl::IsNotFound(Read().process));
  EXPECT_EQ(NameAt(0x1000), "-");
  request.start_ticks = JitProc::kStartTicks;
  EXPECT_TRUE(Read().process.ok());
  EXPECT_EQ(NameAt(0x1000), "a");
}

TEST_F(JitReaderTest, ReadsAJitdumpByItsOwnTimes) {
  JitDumpText dump;
  dump.Load(10, 0x1000, 0x100, "first").Load(20, 0x1000, 0x100, "second").Load(30, 0x8000, 1 << 20, "big");
  dump.Move(40, 0x1000, 0x9000, 0x100);
  // Samples as old as these times are still looked up.
  clock = FakeClock(MonotonicNs{50});
  clock.Advance(-kNsPerSecond);
  proc.AddFile("/work/jit-7.dump", dump.bytes);
  request.dump_path = "/work/jit-7.dump";
  ASSERT_TRUE(Read().dump.ok()) << last.dump;
  EXPECT_LT(last.bytes, 2u << 20);
  EXPECT_EQ(NameAt(0x1000, 9), "-");
  EXPECT_EQ(NameAt(0x1000, 10), "first");
  EXPECT_EQ(NameAt(0x1000, 25), "second");
  EXPECT_EQ(NameAt(0x1000, 40), "-");
  EXPECT_EQ(NameAt(0x9000, 40), "second");
  EXPECT_EQ(NameAt(0x8010, 40), "big");
  EXPECT_FALSE(Read().grew);
}

TEST_F(JitReaderTest, AJitdumpOfAnotherProcessIsNotRead) {
  proc.AddFile("/work/jit-8.dump", JitDumpText().Load(1, 0x1000, 0x10, "a").bytes);
  request.dump_path = "/work/jit-8.dump";
  EXPECT_TRUE(absl::IsNotFound(Read().dump));
}

TEST_F(JitReaderTest, ABrokenJitdumpIsReadOnce) {
  JitDumpText dump;
  dump.Load(1, 0x1000, 0x10, "a").Record(0, 1, 1);
  dump.bytes.append(1 << 20, 'x');
  proc.AddFile("/work/jit-7.dump", dump.bytes);
  request.dump_path = "/work/jit-7.dump";
  EXPECT_TRUE(absl::IsInvalidArgument(Read().dump));
  EXPECT_EQ(NameAt(0x1000), "a");
  EXPECT_TRUE(absl::IsInvalidArgument(Read().dump));
  EXPECT_EQ(last.bytes, 0u);
}

}  // namespace
}  // namespace tributary
