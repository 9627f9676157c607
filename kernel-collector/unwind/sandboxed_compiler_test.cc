#include "kernel-collector/unwind/sandboxed_compiler.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "base/child_process_testing.h"
#include "base/sandbox.h"
#include "base/socket_message.h"
#include "base/status.h"
#include "kernel-collector/processes/code_file_reader.h"
#include "kernel-collector/unwind/parser_process.h"
#include "kernel-collector/unwind/parser_protocol.h"

namespace tributary {
namespace {

using testing::Fork;

absl::StatusOr<ChildProcess> ForkParser() {
  return Fork([](int socket) { return RunUnwindParser(socket); });
}

uint64_t Deaths(Metrics& metrics) {
  return metrics.AddCounter("tributary_collector_unwind_parser_deaths_total", "").value();
}

// Returns a request for the library of that name that this process has mapped.
UnwindCompiler::Request Mapped(std::string_view name) {
  UnwindCompiler::Request request;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    if (line.find(name) == std::string::npos || line.find(" r-xp ") == std::string::npos) continue;
    uint64_t start = std::stoull(line, nullptr, 16), end = std::stoull(line.substr(line.find('-') + 1), nullptr, 16);
    request.locations.push_back(FileLocation{Pid{getpid()}, start, end, line.substr(line.find('/'))});
    break;
  }
  auto file = ElfFile::Open(Fd(open(request.locations.at(0).path.c_str(), O_RDONLY | O_CLOEXEC)));
  request.id = *(*file)->Identity();
  request.key.build_id = request.id;
  for (const ElfSegment& segment : (*file)->segments()) {
    if (segment.executable) request.range = {segment.address, segment.address + segment.memory_size};
  }
  return request;
}

TEST(SandboxedCompiler, GivesTheSameRowsAsInThisProcess) {
  Metrics metrics;
  SandboxedCompiler sandboxed("/proc", ForkParser, metrics);
  auto plain = UnwindCompiler::InProcess("/proc");
  for (std::string_view name : {"libc.so", "libstdc++", "libc.so"}) {
    UnwindCompiler::Request request = Mapped(name);
    auto expected = plain->Compile(request), got = sandboxed.Compile(request);
    ASSERT_TRUE(got.status.ok()) << got.status;
    EXPECT_EQ(got.rows, expected.rows);
    EXPECT_GT(got.rows.size(), 1000u);
    EXPECT_EQ(got.starts, expected.starts);
    EXPECT_EQ(got.kind, expected.kind);
  }
  EXPECT_EQ(Deaths(metrics), 0u);
}

TEST(SandboxedCompiler, ParsesFilesInMemory) {
  Metrics metrics;
  SandboxedCompiler sandboxed("/proc", ForkParser, metrics);
  auto vdso = ReadOwnVdso();
  ASSERT_TRUE(vdso.ok());
  UnwindCompiler::Request request;
  request.id = vdso->id;
  request.memory = vdso->bytes;
  request.range = {0, 4096};
  auto result = sandboxed.Compile(request);
  ASSERT_TRUE(result.status.ok()) << result.status;
  EXPECT_GT(result.rows.size(), 1u);
}

TEST(SandboxedCompiler, ADyingParserFailsOnlyItsFile) {
  int spawned = 0;
  auto spawn = [&] {
    if (++spawned > 1) return ForkParser();
    return Fork([](int socket) {
      ParserRequest request;
      Fd file;
      ReceiveWithFile(socket, &request, sizeof(request), &file, -1);
      return 1;
    });
  };
  Metrics metrics;
  SandboxedCompiler sandboxed("/proc", spawn, metrics);
  EXPECT_EQ(sandboxed.Compile(Mapped("libc.so")).status.code(), absl::StatusCode::kInternal);
  EXPECT_EQ(Deaths(metrics), 1u);
  EXPECT_TRUE(sandboxed.Compile(Mapped("libc.so")).status.ok());
  EXPECT_EQ(Deaths(metrics), 1u);
}

TEST(SandboxedCompiler, KillsAHangingParser) {
  Metrics metrics;
  SandboxedCompiler sandboxed("/proc", [] { return Fork([](int) { return pause(); }); }, metrics, /*timeout_ms=*/50);
  EXPECT_EQ(sandboxed.Compile(Mapped("libc.so")).status.code(), absl::StatusCode::kInternal);
  EXPECT_EQ(Deaths(metrics), 1u);
}

TEST(SandboxedCompiler, AnIdleParserMayEndWithoutHarm) {
  int spawned = 0;
  auto spawn = [&] {
    ++spawned;
    return Fork([](int socket) { return RunUnwindParser(socket, /*idle_ms=*/1); });
  };
  Metrics metrics;
  SandboxedCompiler sandboxed("/proc", spawn, metrics);
  UnwindCompiler::Request request = Mapped("libc.so");
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(sandboxed.Compile(request).status.ok());
    usleep(50'000);
  }
  EXPECT_EQ(spawned, 3);
  EXPECT_EQ(Deaths(metrics), 0u);
}

TEST(SandboxedCompiler, TidyLeavesNoZombieOfAnIdleParser) {
  pid_t pid = -1;
  auto spawn = [&] {
    auto child = Fork([](int socket) { return RunUnwindParser(socket, /*idle_ms=*/1); });
    if (child.ok()) pid = child->pid();
    return child;
  };
  Metrics metrics;
  SandboxedCompiler sandboxed("/proc", spawn, metrics);
  ASSERT_TRUE(sandboxed.Compile(Mapped("libc.so")).status.ok());
  siginfo_t ended{};
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(pid), &ended, WEXITED | WNOWAIT), 0);
  sandboxed.Tidy();
  EXPECT_EQ(kill(pid, 0), -1);
  EXPECT_EQ(Deaths(metrics), 0u);
  EXPECT_TRUE(sandboxed.Compile(Mapped("libc.so")).status.ok());
}

TEST(SandboxedCompiler, AParserKilledBetweenRequestsIsCountedAndReplaced) {
  pid_t pid = -1;
  auto spawn = [&] {
    auto child = ForkParser();
    if (child.ok()) pid = child->pid();
    return child;
  };
  Metrics metrics;
  SandboxedCompiler sandboxed("/proc", spawn, metrics);
  UnwindCompiler::Request request = Mapped("libc.so");
  ASSERT_TRUE(sandboxed.Compile(request).status.ok());
  pid_t first = pid;
  kill(first, SIGKILL);
  siginfo_t ended{};
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(first), &ended, WEXITED | WNOWAIT), 0);
  EXPECT_TRUE(sandboxed.Compile(request).status.ok());
  EXPECT_NE(pid, first);
  EXPECT_EQ(Deaths(metrics), 1u);
}

TEST(SandboxedCompiler, RefusesInvalidAnswers) {
  auto lie = [](ParserAnswer answer, std::vector<UnwindRow> rows) {
    auto spawn = [=] {
      return Fork([=](int socket) {
        ParserRequest request;
        Fd file;
        ReceiveWithFile(socket, &request, sizeof(request), &file, -1);
        WriteAll(socket, &answer, sizeof(answer), -1);
        WriteAll(socket, rows.data(), rows.size() * sizeof(UnwindRow), -1);
        return 0;
      });
    };
    Metrics metrics;
    SandboxedCompiler sandboxed("/proc", spawn, metrics);
    return sandboxed.Compile(Mapped("libc.so")).status;
  };
  ParserAnswer honest{.code = ParserAnswer::kOk, .kind = 1, .row_count = 2};
  EXPECT_TRUE(lie(honest, {{0, 1}, {4, 2}}).ok());
  EXPECT_FALSE(lie(honest, {{1, 1}, {4, 2}}).ok());           // does not begin at 0
  EXPECT_FALSE(lie(honest, {{0, 1}, {0, 2}}).ok());           // does not ascend
  EXPECT_FALSE(lie(honest, {{0, 1}, {0xffffffff, 2}}).ok());  // outside the range
  EXPECT_FALSE(lie(honest, {{0, 1}, {4, 15}}).ok());          // no such rule
  ParserAnswer huge = honest;
  huge.row_count = kParserRowsMax + 1;
  EXPECT_FALSE(lie(huge, {}).ok());
  ParserAnswer unknown = honest;
  unknown.kind = 9;
  EXPECT_FALSE(lie(unknown, {}).ok());
}

}  // namespace
}  // namespace tributary
