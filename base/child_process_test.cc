#include "base/child_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <string>
#include <string_view>

#include "base/child_process_testing.h"
#include "base/memory_file.h"
#include "base/sandbox.h"
#include "base/socket_message.h"

namespace tributary {
namespace {

using testing::Fork;

// Waits until the process has ended. Does not reap the process.
siginfo_t AwaitEnd(const ChildProcess& child) {
  siginfo_t ended{};
  EXPECT_EQ(waitid(P_PID, static_cast<id_t>(child.pid()), &ended, WEXITED | WNOWAIT), 0);
  return ended;
}

TEST(ChildProcess, ReportsHowItEnded) {
  for (const int code : {0, 1}) {
    auto child = Fork([code](int) { return code; });
    ASSERT_TRUE(child.ok());
    AwaitEnd(*child);
    EXPECT_EQ(child->Reap(), code == 0);
    EXPECT_FALSE(child->running());
    EXPECT_EQ(child->Reap(), std::nullopt);
    EXPECT_FALSE(child->Stop());
  }
  auto hangs = Fork([](int) { return pause(); });
  ASSERT_TRUE(hangs.ok());
  EXPECT_EQ(hangs->Reap(), std::nullopt);
  EXPECT_TRUE(hangs->Stop());
}

TEST(ChildProcess, EndsWithItsOwner) {
  pid_t pid = -1;
  {
    auto child = Fork([](int) { return pause(); });
    ASSERT_TRUE(child.ok());
    pid = child->pid();
    EXPECT_EQ(kill(pid, 0), 0);
  }
  EXPECT_EQ(kill(pid, 0), -1);
}

// The socket of the child is closed by then, so the child answers on a pipe.
TEST(ChildProcess, WithoutWorkEndsByItself) {
  int pipe_ends[2];
  ASSERT_EQ(pipe2(pipe_ends, O_CLOEXEC), 0);
  const Fd answer(pipe_ends[0]);
  Fd theirs(pipe_ends[1]);
  {
    auto child = Fork([&](int socket) {
      char byte;
      const bool is_closed = read(socket, &byte, 1) == 0;
      return write(theirs.get(), is_closed ? "y" : "n", 1) == 1 ? 0 : 1;
    });
    ASSERT_TRUE(child.ok());
  }
  theirs.Reset();
  char byte = 0;
  EXPECT_EQ(read(answer.get(), &byte, 1), 1) << "the child was killed";
  EXPECT_EQ(byte, 'y');
}

TEST(ChildProcess, ReportsTheWaitStatus) {
  auto exits = Fork([](int) { return 7; });
  ASSERT_TRUE(exits.ok());
  AwaitEnd(*exits);
  const int exited = exits->End();
  EXPECT_TRUE(WIFEXITED(exited)) << "the kill came too late to change it";
  EXPECT_EQ(WEXITSTATUS(exited), 7);
  EXPECT_FALSE(exits->running());
  auto hangs = Fork([](int) { return pause(); });
  ASSERT_TRUE(hangs.ok());
  const int killed = hangs->End();
  EXPECT_TRUE(WIFSIGNALED(killed));
  EXPECT_EQ(WTERMSIG(killed), SIGKILL);
}

// Spawns this test's binary, which writes its tests' names to descriptor 1.
TEST(ChildProcess, SpawnsItselfWithArgumentsAndDescriptors) {
  auto memory = MemoryFile::Create("output");
  ASSERT_TRUE(memory.ok());
  const Fd output = std::move(*memory).TakeDescriptor();
  auto child = ChildProcess::SpawnSelf({.description = "a test",
                                        .arguments = {"test", "--gtest_list_tests", "--gtest_filter=ChildProcess.*"},
                                        .descriptors = {{output.get(), STDOUT_FILENO}, {-1, STDERR_FILENO}}});
  ASSERT_TRUE(child.ok()) << child.status();
  EXPECT_EQ(child->socket(), -1);
  AwaitEnd(*child);
  EXPECT_EQ(child->Reap(), true);
  char text[4096];
  const ssize_t n = pread(output.get(), text, sizeof(text), 0);
  ASSERT_GT(n, 0);
  const std::string_view names(text, static_cast<size_t>(n));
  EXPECT_NE(names.find("  EndsWithItsOwner\n"), std::string_view::npos);
  EXPECT_EQ(names.find("SocketMessage"), std::string_view::npos);
}

TEST(ChildProcess, ReportsADescriptorThatCannotBePassed) {
  const auto child =
      ChildProcess::SpawnSelf({.description = "a test", .arguments = {"test"}, .descriptors = {{1 << 20, 3}}});
  EXPECT_EQ(Message(child.status()), "dup a file for a test: EBADF (Bad file descriptor)");
}

TEST(SocketMessage, CarriesBytesAndAFile) {
  auto child = Fork([](int socket) {
    char message[8];
    Fd file;
    if (!ReceiveWithFile(socket, message, sizeof(message), &file, -1) || !file.valid()) return 2;
    const std::string answer(300'000, message[7]);
    return WriteAll(socket, answer.data(), answer.size(), -1) ? 0 : 3;
  });
  ASSERT_TRUE(child.ok());
  ASSERT_TRUE(SendWithFile(child->socket(), "message", 8, STDERR_FILENO, 10'000));
  std::string answer(300'000, '?');
  ASSERT_TRUE(ReadAll(child->socket(), answer.data(), answer.size(), 10'000));
  EXPECT_EQ(answer, std::string(300'000, '\0'));
  EXPECT_FALSE(ReadAll(child->socket(), answer.data(), 1, 10'000)) << "the other end is closed";
}

TEST(SocketMessage, ASlowPeerGainsNoTime) {
  auto child = Fork([](int socket) {
    for (char c = 'x'; WriteAll(socket, &c, 1, -1);) usleep(1000);
    return 0;
  });
  ASSERT_TRUE(child.ok());
  char bytes[1 << 20];
  EXPECT_FALSE(ReadAll(child->socket(), bytes, sizeof(bytes), 50));
}

TEST(Sandbox, OpeningAFileKills) {
  auto child = Fork([](int) {
    if (!EnterSandbox({.memory_bytes_max = 1 << 30}).ok()) return 2;
    return open("/etc/passwd", O_RDONLY) >= 0 ? 3 : 4;
  });
  ASSERT_TRUE(child.ok());
  const siginfo_t ended = AwaitEnd(*child);
  EXPECT_EQ(ended.si_code, CLD_KILLED);
  EXPECT_EQ(ended.si_status, SIGSYS);
}

TEST(Sandbox, ProcessListsShowItsName) {
  auto child = Fork([](int socket) {
    char c = 'x';
    if (!EnterSandbox({.name = "reader", .memory_bytes_max = 1 << 30}).ok()) return 2;
    return WriteAll(socket, &c, 1, -1) && ReadAll(socket, &c, 1, -1) ? 3 : 4;
  });
  ASSERT_TRUE(child.ok());
  char c = 0;
  ASSERT_TRUE(ReadAll(child->socket(), &c, 1, 10'000));
  std::string comm;
  std::getline(std::ifstream(fmt::format("/proc/{}/comm", child->pid())), comm);
  EXPECT_EQ(comm, "reader");
}

}  // namespace
}  // namespace tributary
