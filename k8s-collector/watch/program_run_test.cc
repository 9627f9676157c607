#include "k8s-collector/watch/program_run.h"

#include <gmock/gmock.h>
#include <sys/socket.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <optional>

#include "base/directory_testing.h"
#include "base/fd.h"
#include "base/loop_testing.h"
#include "base/status.h"

namespace tributary {
namespace {

using Ending = ProgramRun::Ending;

constexpr uint64_t kPatienceMs = 20'000;

class ProgramRunTest : public testing::Test {
 protected:
  void Start(const std::string& script, ProgramRun::Limits limits = {}) {
    auto run = ProgramRun::Start(
        loop_, {.path = "/bin/sh", .arguments = {"sh", "-c", script, "sh", "an argument"}, .environment = {"A=b"}},
        limits, [this](ProgramRun::Outcome outcome) { outcome_ = std::move(outcome); });
    ASSERT_TRUE(run.ok()) << run.status();
    run_ = *std::move(run);
  }
  ProgramRun::Outcome Run(const std::string& script, ProgramRun::Limits limits = {}) {
    Start(script, limits);
    EXPECT_TRUE(RunLoopUntil(loop_, [this] { return outcome_.has_value(); }, kPatienceMs));
    return outcome_.value_or(ProgramRun::Outcome{});
  }
  // Waits for a process id in the file, then for the end of this process.
  bool Ends(const std::string& file) {
    pid_t pid = 0;
    return RunLoopUntil(
        loop_,
        [&] {
          std::ifstream(file) >> pid;
          return pid > 0 && (kill(pid, 0) != 0 || IsZombie(pid));
        },
        kPatienceMs);
  }
  static bool IsZombie(pid_t pid) {
    std::ifstream status("/proc/" + std::to_string(pid) + "/stat");
    std::string text;
    std::getline(status, text);
    return text.find(") Z ") != std::string::npos;
  }

  TestDirectory directory_;
  Loop loop_;
  std::optional<ProgramRun::Outcome> outcome_;
  std::unique_ptr<ProgramRun> run_;
};

TEST_F(ProgramRunTest, KeepsOutputAndTheLastLineOfErrors) {
  const auto outcome = Run("echo \"$A $1\"; cat; echo first >&2; echo 'last one' > /dev/stderr; exit 3");
  EXPECT_EQ(outcome.ending, Ending::kExited);
  EXPECT_EQ(outcome.code, 3);
  EXPECT_EQ(outcome.output, "b an argument\n");
  EXPECT_EQ(outcome.last_error_line, "last one");
  EXPECT_TRUE(run_->has_ended());
}

TEST_F(ProgramRunTest, ReportsASignal) {
  const auto outcome = Run("kill -TERM $$");
  EXPECT_EQ(outcome.ending, Ending::kSignaled);
  EXPECT_EQ(outcome.code, SIGTERM);
}

TEST_F(ProgramRunTest, ProgramsGetDefaultSignalHandlers) {
  std::signal(SIGPIPE, SIG_IGN);
  const auto outcome = Run("kill -PIPE $$; echo survived");
  EXPECT_EQ(outcome.ending, Ending::kSignaled);
  EXPECT_EQ(outcome.code, SIGPIPE);
}

TEST_F(ProgramRunTest, ProgramsGetNoOtherDescriptors) {
  const Fd socket(::socket(AF_INET, SOCK_STREAM, 0));  // as libcurl opens them
  const Fd file(dup(STDERR_FILENO));
  EXPECT_EQ(Run("ls /proc/self/fd | tr '\\n' ' '").output, "0 1 2 3 ");  // 3: the directory that ls reads
}

TEST_F(ProgramRunTest, LimitsTheErrorLine) {
  EXPECT_EQ(Run("head -c 100000 /dev/zero | tr '\\0' ! >&2; exit 1").last_error_line.size(),
            ProgramRun::kErrorLineBytesMax);
}

TEST_F(ProgramRunTest, KillsAProgramThatHangsAndItsChildren) {
  const std::string file = directory_.path() + "/pid";
  const auto outcome = Run("sleep 1000 & echo $! > " + file + "; wait", {.run_ms_max = 2'000});
  EXPECT_EQ(outcome.ending, Ending::kTimedOut);
  EXPECT_TRUE(Ends(file));
  EXPECT_TRUE(RunLoopUntil(loop_, [this] { return run_->has_ended(); }, kPatienceMs));
}

TEST_F(ProgramRunTest, KillsAProgramThatWritesTooMuch) {
  const auto outcome = Run("yes");
  EXPECT_EQ(outcome.ending, Ending::kWroteTooMuch);
  EXPECT_LT(outcome.output.size(), 2u << 20);
  EXPECT_TRUE(RunLoopUntil(loop_, [this] { return run_->has_ended(); }, kPatienceMs));
}

TEST_F(ProgramRunTest, DoesNotWaitForAnOutputThatAChildHolds) {
  const std::string file = directory_.path() + "/pid";
  const auto outcome = Run("sleep 1000 & echo $! > " + file + "; echo done", {.held_ms_max = 100});
  EXPECT_EQ(outcome.ending, Ending::kOutputHeld);
  EXPECT_TRUE(Ends(file));
}

TEST_F(ProgramRunTest, AChildMayHoldTheErrorOutput) {
  const std::string file = directory_.path() + "/pid";
  const auto outcome = Run("sleep 1000 >/dev/null & echo $! > " + file + "; echo done", {.held_ms_max = 100});
  EXPECT_EQ(outcome.ending, Ending::kExited);
  EXPECT_EQ(outcome.output, "done\n");
  pid_t pid = 0;
  std::ifstream(file) >> pid;
  ASSERT_GT(pid, 0);
  EXPECT_EQ(kill(pid, SIGKILL), 0);  // it still ran
}

TEST_F(ProgramRunTest, TheDestructorKillsTheProcessGroup) {
  const std::string file = directory_.path() + "/pid";
  Start("sleep 1000 & echo $! > " + file + ".new; mv " + file + ".new " + file + "; wait");
  EXPECT_TRUE(RunLoopUntil(loop_, [&] { return std::filesystem::exists(file); }, kPatienceMs));
  run_.reset();
  EXPECT_TRUE(Ends(file));
  EXPECT_FALSE(outcome_);
}

TEST_F(ProgramRunTest, TheDestructorKillsAChildThatHoldsTheOutput) {
  const std::string file = directory_.path() + "/pid";
  Start("sleep 1000 & echo $! > " + file, {.held_ms_max = 1'000'000});
  EXPECT_TRUE(RunLoopUntil(loop_, [&] { return run_->has_ended(); }, kPatienceMs));
  run_.reset();
  EXPECT_TRUE(Ends(file));
  EXPECT_FALSE(outcome_);
}

TEST_F(ProgramRunTest, TheCallbackMayDestroyTheRun) {
  bool is_called = false;
  auto run = ProgramRun::Start(loop_, {.path = "/bin/true", .arguments = {"true"}, .environment = {}}, {},
                               [&](ProgramRun::Outcome) {
                                 run_.reset();
                                 is_called = true;
                               });
  ASSERT_TRUE(run.ok());
  run_ = *std::move(run);
  EXPECT_TRUE(RunLoopUntil(loop_, [&] { return is_called; }, kPatienceMs));
}

TEST_F(ProgramRunTest, ATextFileIsNotGivenToAShell) {
  const std::string path = directory_.path() + "/text", ran = directory_.path() + "/ran";
  for (const std::string& text : {"echo > " + ran + "\n", std::string(), std::string("#")}) {
    std::ofstream(path) << text;
    std::filesystem::permissions(path, std::filesystem::perms::owner_all);
    auto run = ProgramRun::Start(loop_, {.path = path, .arguments = {path}, .environment = {}}, {},
                                 [](ProgramRun::Outcome) { FAIL(); });
    EXPECT_TRUE(absl::IsInvalidArgument(run.status())) << run.status();
    EXPECT_THAT(Message(run.status()), testing::HasSubstr(path + ": exec format error"));
  }
  EXPECT_FALSE(std::filesystem::exists(ran));
}

TEST_F(ProgramRunTest, AMissingProgramIsAnError) {
  auto run = ProgramRun::Start(loop_, {.path = "/nowhere/program", .arguments = {"program"}, .environment = {}}, {},
                               [](ProgramRun::Outcome) { FAIL(); });
  EXPECT_TRUE(absl::IsNotFound(run.status())) << run.status();
  EXPECT_THAT(Message(run.status()), testing::HasSubstr("/nowhere/program"));
}

}  // namespace
}  // namespace tributary
