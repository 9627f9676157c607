#include "cli/program.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "cli/signal_inbox.h"

namespace tributary::cli {
namespace {

int RunToEnd(Program& child, SignalInbox& signals) {
  while (child.running()) signals.Wait(1000);
  return child.exit_code();
}

TEST(Program, PassesOnExitCodesAndSignals) {
  SignalInbox signals;
  auto start = [&](std::vector<std::string> arguments) {
    return *Program::Start({.arguments = std::move(arguments), .signal_mask = signals.old_mask()});
  };
  Program child = start({"sh", "-c", "exit 7"});
  EXPECT_EQ(RunToEnd(child, signals), 7);
  EXPECT_EQ(child.term_signal(), 0);
  child = start({"sleep", "1000"});
  EXPECT_TRUE(child.running());
  child.Signal(SIGTERM);
  EXPECT_EQ(RunToEnd(child, signals), 128 + SIGTERM);
  EXPECT_EQ(child.term_signal(), SIGTERM);
}

TEST(Program, ReportsWhenAProgramCannotRun) {
  SignalInbox signals;
  EXPECT_EQ(Program::Start({.arguments = {"/no/such/program"}}).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(Program::Start({.arguments = {"/etc/passwd"}}).status().code(), absl::StatusCode::kPermissionDenied);
}

TEST(Program, KillsALeftoverProgram) {
  SignalInbox signals;
  pid_t pid = 0;
  {
    Program child = *Program::Start({.arguments = {"sleep", "1000"}, .helper = true});
    pid = child.pid();
    EXPECT_EQ(kill(pid, 0), 0);
  }
  EXPECT_NE(kill(pid, 0), 0);
}

TEST(SignalInbox, TakesSignalsAsMessages) {
  SignalInbox signals;
  EXPECT_FALSE(signals.Wait(0));
  kill(getpid(), SIGINT);
  auto signal = signals.Wait(1000);
  ASSERT_TRUE(signal);
  EXPECT_EQ(signal->number, SIGINT);
  EXPECT_FALSE(signal->from_terminal);
}

TEST(FindProgram, LooksNextToItselfThenInPath) {
  EXPECT_TRUE(FindProgram("cli_test").ok());
  EXPECT_EQ(FindProgram("sh")->substr(0, 1), "/");
  auto missing = FindProgram("no-such-program");
  EXPECT_EQ(missing.status().code(), absl::StatusCode::kNotFound);
  EXPECT_NE(missing.status().message().find("PATH"), absl::string_view::npos);
}

}  // namespace
}  // namespace tributary::cli
