#include "kernel-collector/uplink/symbol_maker.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <string>

#include "base/child_process_testing.h"
#include "base/socket_message.h"
#include "base/zstd.h"
#include "elf/elf_file.h"
#include "kernel-collector/uplink/symbol_maker_process.h"
#include "symbols/elf_symbols.h"
#include "symbols/symbol_codec.h"

namespace tributary {
namespace {

using testing::Fork;

ExecutableId SomeId() { return *ExecutableId::Make(ExecutableIdKind::kGnuBuildId, std::string_view("id")); }

absl::StatusOr<ChildProcess> ForkMaker() {
  return Fork([](int socket) { return RunSymbolMaker(socket); });
}

// A maker that sends this answer, followed by these bytes, and runs until its socket is closed.
SymbolMaker::Spawn Answering(SymbolMakerAnswer answer, std::string behind) {
  return [=] {
    return Fork([=](int socket) {
      SymbolMakerRequest request;
      Fd file;
      while (ReceiveWithFile(socket, &request, sizeof(request), &file, -1)) {
        WriteAll(socket, &answer, sizeof(answer), -1);
        WriteAll(socket, behind.data(), behind.size(), -1);
      }
      return 0;
    });
  };
}

class SymbolMakerTest : public ::testing::Test {
 protected:
  absl::StatusOr<PackedTable> Make(SymbolMaker& maker, const char* path = "/proc/self/exe") {
    return maker.Make({.id = SomeId()}, Fd(open(path, O_RDONLY | O_CLOEXEC)));
  }
  uint64_t deaths() { return metrics.AddCounter("tributary_collector_symbol_maker_deaths_total", "").value(); }

  Metrics metrics;
};

TEST_F(SymbolMakerTest, MakesTheSameTableAsThisProcess) {
  SymbolMaker maker(ForkMaker, metrics);
  for (const char* path : {"/proc/self/exe", "/lib/x86_64-linux-gnu/libc.so.6", "/proc/self/exe"}) {
    auto made = Make(maker, path);
    ASSERT_TRUE(made.ok()) << made.status();
    auto file = ElfFile::Open(Fd(open(path, O_RDONLY | O_CLOEXEC)));
    const std::string expected = EncodeSymbolTable(**ReadElfSymbols(**file, SomeId()));
    EXPECT_EQ(made->raw_bytes(), expected.size());
    auto stored = made->Read(0, made->stored_bytes());
    ASSERT_TRUE(stored.ok());
    EXPECT_TRUE(*ZstdDecompress(*stored, made->raw_bytes()) == expected) << path;
  }
  EXPECT_EQ(deaths(), 0u);
}

TEST_F(SymbolMakerTest, MakesFlatTablesOnRequest) {
  SymbolMaker maker(ForkMaker, metrics);
  const auto made = maker.Make({.flat = 1, .id = SomeId()}, Fd(open("/proc/self/exe", O_RDONLY | O_CLOEXEC)));
  ASSERT_TRUE(made.ok()) << made.status();
  const auto file = ElfFile::Open(Fd(open("/proc/self/exe", O_RDONLY | O_CLOEXEC)));
  const auto stored = made->Read(0, made->stored_bytes());
  ASSERT_TRUE(stored.ok());
  EXPECT_TRUE(*ZstdDecompress(*stored, made->raw_bytes()) == (*ReadElfSymbols(**file, SomeId()))->bytes());
}

TEST_F(SymbolMakerTest, StoresOnlyLargeTablesInFiles) {
  for (const size_t size : {size_t{0}, size_t{64} << 10, (size_t{64} << 10) + 1, size_t{1'000'000}}) {
    std::string bytes(size, 'x');
    for (size_t i = 0; i < size; i += 1000) bytes[i] = static_cast<char>(i / 1000);
    SymbolMaker maker(Answering({.made = 1, .stored_bytes = size, .raw_bytes = 7}, bytes), metrics);
    auto made = Make(maker);
    ASSERT_TRUE(made.ok()) << made.status();
    EXPECT_EQ(made->in_file(), size > 64u << 10);
    EXPECT_EQ(made->raw_bytes(), 7u);
    EXPECT_TRUE(*made->Read(0, size) == bytes);
  }
}

TEST_F(SymbolMakerTest, ReportsWhyThereIsNoTable) {
  SymbolMaker maker(ForkMaker, metrics);
  auto none = Make(maker, "/etc/passwd");
  EXPECT_EQ(none.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(none.status().message(), "");
  EXPECT_FALSE(maker.Make({.id = SomeId()}, Fd()).ok());
  EXPECT_TRUE(Make(maker).ok());
  EXPECT_EQ(deaths(), 0u);
}

TEST_F(SymbolMakerTest, ADyingMakerFailsOnlyItsFile) {
  int spawned = 0;
  auto spawn = [&] {
    if (++spawned > 1) return ForkMaker();
    return Fork([](int socket) {
      SymbolMakerRequest request;
      Fd file;
      ReceiveWithFile(socket, &request, sizeof(request), &file, -1);
      return 0;  // an exit during a request counts as a death too
    });
  };
  SymbolMaker maker(spawn, metrics);
  EXPECT_EQ(Make(maker).status().code(), absl::StatusCode::kInternal);
  EXPECT_EQ(deaths(), 1u);
  EXPECT_TRUE(Make(maker).ok());
  EXPECT_EQ(deaths(), 1u);
}

TEST_F(SymbolMakerTest, KillsAHangingMaker) {
  SymbolMaker maker([] { return Fork([](int) { return pause(); }); }, metrics, /*timeout_ms=*/50);
  EXPECT_EQ(Make(maker).status().code(), absl::StatusCode::kInternal);
  EXPECT_FALSE(maker.running());
  EXPECT_EQ(deaths(), 1u);
}

TEST_F(SymbolMakerTest, CountsAndReplacesAMakerKilledBetweenRequests) {
  pid_t pid = -1;
  auto spawn = [&] {
    auto child = ForkMaker();
    if (child.ok()) pid = child->pid();
    return child;
  };
  SymbolMaker maker(spawn, metrics);
  ASSERT_TRUE(Make(maker).ok());
  const pid_t first = pid;
  kill(first, SIGKILL);
  siginfo_t ended{};
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(first), &ended, WEXITED | WNOWAIT), 0);
  EXPECT_TRUE(Make(maker).ok());
  EXPECT_NE(pid, first);
  EXPECT_EQ(deaths(), 1u);
}

TEST_F(SymbolMakerTest, RefusesSizesOutOfBounds) {
  for (const SymbolMakerAnswer& answer : {SymbolMakerAnswer{.made = 1, .stored_bytes = kSymbolTableStoredBytesMax + 1},
                                          SymbolMakerAnswer{.made = 1, .stored_bytes = UINT64_MAX},
                                          SymbolMakerAnswer{.made = 1, .raw_bytes = kSymbolTableRawBytesMax + 1},
                                          SymbolMakerAnswer{.message_bytes = kSymbolMakerMessageMax + 1}}) {
    SymbolMaker maker(Answering(answer, ""), metrics);
    EXPECT_EQ(Make(maker).status().code(), absl::StatusCode::kInternal);
  }
  EXPECT_EQ(deaths(), 4u);
}

}  // namespace
}  // namespace tributary
