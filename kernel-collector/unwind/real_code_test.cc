// Rows of real files, and walks over real stacks of this process.
#include <execinfo.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <iterator>
#include <map>

#include "kernel-collector/probes/fake_unwind_maps_testing.h"
#include "kernel-collector/processes/code_file_reader.h"
#include "kernel-collector/processes/maps_parser.h"
#include "kernel-collector/processes/proc_files.h"
#include "kernel-collector/unwind/stack_walker.h"
#include "kernel-collector/unwind/unwind_testing.h"

namespace tributary {
namespace {

// This process's code mappings, and where its stack ends.
struct Self {
  MappingTable mappings;
  uint64_t stack_end = 0;
  std::map<std::string, CodeFilePtr> files;  // by path
};

Self ReadSelf() {
  Self self;
  auto maps = ReadSmallFile("/proc/self/maps", 16u << 20);
  uint64_t here = reinterpret_cast<uint64_t>(__builtin_frame_address(0));
  ParseMaps(maps.value(), [&](const MapsEntry& entry) {
    if (entry.start <= here && here < entry.end) self.stack_end = entry.end;
    if (!entry.executable || !entry.path.starts_with('/')) return;
    CodeFilePtr& file = self.files[entry.path];
    if (file == nullptr) {
      file = std::make_shared<CodeFile>();
      file->key = {{}, entry.device_major, entry.device_minor, entry.inode};
      file->locations = {{Pid{getpid()}, entry.start, entry.end, entry.path}};
      auto opened = OpenCodeFile("/proc", file->key, file->locations);
      ASSERT_TRUE(opened.ok()) << opened.status();
      file->id = opened->id;
      file->segments = opened->file->segments();
      file->state = CodeFile::State::kReady;
    }
    self.mappings.Insert({entry.start, entry.end, entry.file_offset, MonotonicNs{1}, file});
  });
  return self;
}

// The content of a sample record with a copy of the stack.
struct Capture {
  trib_sample sample{};
  uint64_t frame = 0;
  trib_resume resume{};
  std::vector<uint8_t> stack;
  size_t bytes_max = TRIB_COPY_BYTES_LARGE;
  std::vector<uint64_t> expected;  // from the second frame on, as the C library's unwinder finds them

  SampleRecord Record() const { return {.sample = &sample, .frames = {&frame, 1}, .resume = &resume, .stack = stack}; }
};

// Captures its own frame as the first one. The registers are of one instant; later calls do not change the part of the
// stack that a walk reads.
[[gnu::noinline, gnu::no_sanitize("address", "thread", "undefined")]] void TakeCapture(uint64_t stack_end,
                                                                                       Capture* out) {
  uint64_t pc, sp, fp, second;
#if defined(__aarch64__)
  asm volatile("adr %0, .\n mov %1, sp\n mov %2, x29\n mov %3, x30" : "=&r"(pc), "=&r"(sp), "=&r"(fp), "=&r"(second));
#else
  asm volatile("lea 0(%%rip), %0\n mov %%rsp, %1\n mov %%rbp, %2\n mov %%rbx, %3"
               : "=&r"(pc), "=&r"(sp), "=&r"(fp), "=&r"(second));
#endif
  out->resume = {pc, sp, fp, second, 0, 0};
  size_t bytes = std::min<uint64_t>(stack_end - out->resume.sp, out->bytes_max);
  out->stack.resize(bytes);
  const volatile uint8_t* from = reinterpret_cast<const uint8_t*>(out->resume.sp);
  for (size_t i = 0; i < bytes; ++i) out->stack[i] = from[i];
  void* addresses[TRIB_USER_FRAMES_MAX];
  int count = backtrace(addresses, TRIB_USER_FRAMES_MAX);
  // A sanitizer's backtrace() adds one frame.
  void** caller = std::find(addresses, addresses + count, __builtin_return_address(0));
  std::transform(caller, addresses + count, std::back_inserter(out->expected),
                 [](void* address) { return reinterpret_cast<uint64_t>(address); });
  out->sample.user_frames = 1;
  out->frame = out->resume.pc;
}

[[gnu::noinline, gnu::no_sanitize("address", "thread", "undefined")]] int Recurse(int depth, uint64_t stack_end,
                                                                                  Capture* out) {
  volatile char ballast[64];
  ballast[depth % 64] = static_cast<char>(depth);
  if (depth == 0) {
    TakeCapture(stack_end, out);
    return ballast[0];
  }
  return Recurse(depth - 1, stack_end, out) + ballast[depth % 64];
}

class RealCodeTest : public testing::Test {
 protected:
  // Walks again and again, as for a held sample, until no data is missing.
  void Walk(const SampleRecord& record) {
    for (int i = 0; i < 100; ++i) {
      walker.Continue(
          record, [&](uint64_t address) { return self.mappings.Find(address); }, [](const CodeFilePtr&) {}, &result);
      if (result.outcome != StackWalker::Outcome::kWantsRows) return;
      ++waits;
      do {
        tables.Tick();
      } while (executor.RunAll() > 0);
    }
  }
  static std::vector<uint64_t> Addresses(const StackWalker::Result& result) {
    std::vector<uint64_t> addresses = result.frames;
    for (uint64_t& address : addresses) address &= ~TRIB_FRAME_INTERRUPTED;
    return addresses;
  }

  Self self = ReadSelf();
  FakeUnwindMaps maps;
  FakeExecutor executor;
  FakeClock clock;
  Metrics metrics;
  UnwindTables tables{maps, executor, clock, metrics, {.compile_burst_ns = kNsPerMinute}};
  StackWalker walker{tables};
  StackWalker::Result result;
  int waits = 0;
};

TEST_F(RealCodeTest, WalksItsOwnStackAsTheCLibraryDoes) {
  Capture capture;
  Recurse(20, self.stack_end, &capture);
  ASSERT_GT(capture.expected.size(), 22u);
  Walk(capture.Record());
  EXPECT_EQ(result.outcome, StackWalker::Outcome::kDone);
  EXPECT_EQ(result.stop, TRIB_STOP_END);
  EXPECT_EQ(result.frames, capture.expected);
  EXPECT_GE(waits, 2) << "this program, and the C library";
  EXPECT_LE(waits, 8);
}

TEST_F(RealCodeTest, ACopyThatIsTooShortEndsTheWalk) {
  Capture capture;
  Recurse(20, self.stack_end, &capture);
  capture.stack.resize(5400);  // the first frame has 4 KiB
  Walk(capture.Record());
  EXPECT_EQ(result.outcome, StackWalker::Outcome::kDone);
  EXPECT_EQ(result.stop, TRIB_STOP_NO_PAGE);
  ASSERT_FALSE(result.frames.empty());
  ASSERT_LT(result.frames.size(), 20u);
  EXPECT_TRUE(std::equal(result.frames.begin(), result.frames.end(), capture.expected.begin()));
}

TEST_F(RealCodeTest, DepthIsLimited) {
  Capture capture;
  capture.bytes_max *= 8;
  Recurse(600, self.stack_end, &capture);
  Walk(capture.Record());
  EXPECT_EQ(result.stop, TRIB_STOP_DEPTH);
  EXPECT_EQ(result.frames.size(), size_t{TRIB_USER_FRAMES_MAX} - 1);
}

uint64_t handler_stack_end;
Capture* handler_capture;

[[gnu::noinline, gnu::no_sanitize("address", "thread", "undefined")]] void Handle(int) {
  TakeCapture(handler_stack_end, handler_capture);
}

TEST_F(RealCodeTest, WalksThroughASignalFrame) {
  Capture capture;
  handler_stack_end = self.stack_end;
  handler_capture = &capture;
  struct sigaction action{}, before{};
  action.sa_handler = Handle;
  ASSERT_EQ(sigaction(SIGUSR1, &action, &before), 0);
  raise(SIGUSR1);
  sigaction(SIGUSR1, &before, nullptr);
  Walk(capture.Record());
  EXPECT_EQ(result.stop, TRIB_STOP_END);
  EXPECT_EQ(Addresses(result), capture.expected);
  auto interrupted = [](uint64_t frame) { return (frame & TRIB_FRAME_INTERRUPTED) != 0; };
  EXPECT_EQ(std::count_if(result.frames.begin(), result.frames.end(), interrupted), 1);
}

TEST_F(RealCodeTest, ReportsMissingData) {
  Capture capture;
  Recurse(1, self.stack_end, &capture);
  CodeFilePtr file = self.mappings.Find(capture.resume.pc)->executable;
  int unread = 0;
  auto walk = [&] {
    walker.Continue(
        capture.Record(), [&](uint64_t address) { return self.mappings.Find(address); },
        [&](const CodeFilePtr&) { ++unread; }, &result);
    return result.outcome;
  };
  file->state = CodeFile::State::kUnread;
  EXPECT_EQ(walk(), StackWalker::Outcome::kWantsFile);
  EXPECT_EQ(unread, 1);
  file->state = CodeFile::State::kReading;
  EXPECT_EQ(walk(), StackWalker::Outcome::kWantsFile);
  EXPECT_EQ(unread, 1);
  file->state = CodeFile::State::kReady;
  EXPECT_EQ(walk(), StackWalker::Outcome::kWantsRows);
  self.mappings.Clear();
  EXPECT_EQ(walk(), StackWalker::Outcome::kWantsMapping);
  EXPECT_EQ(result.address, capture.resume.pc);
}

// Compares the rules at every address of two of this process's libraries with the compiler's own rows.
TEST_F(RealCodeTest, EveryAddressHasItsRule) {
  int files = 0;
  for (const auto& [path, file] : self.files) {
    bool wanted = path.find("/libc.") != std::string::npos || path.find("/libcrypto") != std::string::npos;
    if (!wanted) continue;
    SCOPED_TRACE(path);
    ++files;
    auto opened = OpenCodeFile("/proc", file->key, file->locations);
    ASSERT_TRUE(opened.ok());
    auto source = UnwindSource::Open(std::move(opened->file));
    ASSERT_TRUE(source.ok()) << source.status();
    AddressRange text = (*source)->text();
    for (uint64_t at = text.begin; at < text.end; at += 4096) tables.Request(file, at);
    do {
      tables.Tick();
    } while (executor.RunAll() > 0);
    std::vector<UnwindRow> rows;
    ASSERT_TRUE((*source)->Compile(text, &rows).ok());
    ASSERT_GT(rows.size(), 1000u);
    uint32_t first_page = *tables.FirstPage(file);
    uint64_t wrong = 0;
    for (size_t i = 0; i < rows.size(); ++i) {
      uint64_t end = i + 1 < rows.size() ? text.begin + rows[i + 1].offset : text.end;
      for (uint64_t at = text.begin + rows[i].offset; at < end; ++at) {
        uint64_t entry = maps.pages()[static_cast<uint32_t>(first_page + (at >> TRIB_PAGE_SHIFT))];
        wrong += tables.Find(*file, at) != rows[i].rule;
        if (at == text.begin + rows[i].offset || at + 1 == end) {
          wrong += (entry & TRIB_PAGE_LOADED) == 0 || maps.Rule(entry, at % TRIB_PAGE_BYTES) != rows[i].rule;
        }
      }
    }
    EXPECT_EQ(wrong, 0u);
  }
  EXPECT_EQ(files, 2);
}

}  // namespace
}  // namespace tributary
