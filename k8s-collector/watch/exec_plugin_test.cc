#include "k8s-collector/watch/exec_plugin.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "base/directory_testing.h"
#include "base/loop_testing.h"
#include "base/status.h"

namespace tributary {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

constexpr uint64_t kPatienceMs = 20'000;

class TestWaiter final : public ExecPlugin::Waiter {
 public:
  void OnCredential(const absl::StatusOr<const ExecPlugin::Credential*>& credential) override {
    answer = credential.ok() ? "token " + (*credential)->secrets.token : Message(credential.status());
    status = credential.status();
  }
  std::string answer;
  absl::Status status;
};

// The plug-in is a shell script. Each run adds a line to the file "runs".
class ExecPluginTest : public testing::Test {
 protected:
  void Write(const std::string& script) {
    const std::string path = directory_.path() + "/plugin";
    std::ofstream(path + ".new") << "#!/bin/sh\necho run >> " << directory_.path() << "/runs\n" << script;
    std::filesystem::permissions(path + ".new", std::filesystem::perms::owner_all);
    std::filesystem::rename(path + ".new", path);
  }
  // The plug-in's answer at 2023-11-14T22:13:20Z, the start of the FakeClock.
  static std::string Token(const std::string& token, const std::string& expires = "2023-11-14T23:00:00Z") {
    return fmt::format(R"(echo '{{"kind":"ExecCredential","apiVersion":"{}",)"
                       R"("status":{{"token":"'"{}"'","expirationTimestamp":"{}"}}}}')",
                       kExecV1, token, expires);
  }
  ExecPlugin& plugin() {
    if (plugin_ == nullptr) {
      plugin_ = std::make_unique<ExecPlugin>(loop_, access_, environment_, clock_, metrics_, limits_);
    }
    return *plugin_;
  }
  std::string Await() {
    TestWaiter waiter;
    plugin().Await(waiter);
    EXPECT_EQ(waiter.answer, "");
    EXPECT_TRUE(RunLoopUntil(loop_, [&] { return !waiter.answer.empty(); }, kPatienceMs));
    EXPECT_TRUE(waiter.status.ok() || absl::IsUnauthenticated(waiter.status)) << waiter.status;
    return waiter.answer;
  }
  int runs() {
    std::ifstream file(directory_.path() + "/runs");
    int count = 0;
    for (std::string line; std::getline(file, line);) ++count;
    return count;
  }

  TestDirectory directory_;
  Loop loop_;
  FakeClock clock_;
  Metrics metrics_;
  ProgramRun::Limits limits_ = {.run_ms_max = 10'000, .held_ms_max = 200};
  std::map<std::string, std::string> environment_ = {{"PATH", "/usr/bin:/bin"}, {"INHERITED", "yes"}};
  ApiAccess access_{.server = "https://h",
                    .exec = ExecConfig{.api_version = kExecV1, .command = directory_.path() + "/plugin"}};
  std::unique_ptr<ExecPlugin> plugin_;
};

TEST_F(ExecPluginTest, KeepsCredentialsUntilTheyExpire) {
  Write(Token("t$(wc -l < " + directory_.path() + "/runs)"));
  EXPECT_EQ(plugin().current(), nullptr);
  EXPECT_EQ(Await(), "token t1");
  ASSERT_NE(plugin().current(), nullptr);
  clock_.Advance(45 * kNsPerMinute);
  EXPECT_EQ(Await(), "token t1");
  EXPECT_EQ(runs(), 1);
  Write(Token("t$(wc -l < " + directory_.path() + "/runs)", "2023-11-15T00:00:00Z"));
  clock_.Advance(5 * kNsPerMinute);
  EXPECT_EQ(plugin().current(), nullptr);
  EXPECT_EQ(Await(), "token t2");
}

TEST_F(ExecPluginTest, PassesArgumentsAndEnvironment) {
  access_.exec->arguments = {"a b", "$HOME"};
  access_.exec->environment = {{"OWN", "1"}, {"INHERITED", "no"}};
  Write(Token("$1|$2|$OWN|$INHERITED|$#"));
  EXPECT_THAT(Await(), HasSubstr("has spaces"));
  access_.exec->arguments[0] = "ab";
  plugin_.reset();
  EXPECT_EQ(Await(), "token ab|$HOME|1|no|2");
}

TEST_F(ExecPluginTest, PassesTheExecInfo) {
  Write("echo \"$KUBERNETES_EXEC_INFO\" > " + directory_.path() + "/info\n" + Token("t"));
  EXPECT_EQ(Await(), "token t");
  std::string info;
  std::getline(std::ifstream(directory_.path() + "/info"), info);
  EXPECT_EQ(info, *EncodeExecInfo(access_));
}

TEST_F(ExecPluginTest, OneRunAnswersAllWaiters) {
  Write(Token("t"));
  TestWaiter first, second, forgotten;
  plugin().Await(first);
  plugin().Await(forgotten);
  plugin().Await(second);
  plugin().Forget(forgotten);
  EXPECT_TRUE(RunLoopUntil(loop_, [&] { return !first.answer.empty() && !second.answer.empty(); }, kPatienceMs));
  EXPECT_EQ(forgotten.answer, "");
  EXPECT_EQ(runs(), 1);
}

TEST_F(ExecPluginTest, WaitsAfterAFailureAndAnswersWithTheSameError) {
  Write("echo 'log in first' >&2; exit 3");
  EXPECT_THAT(Await(), HasSubstr("it ended with exit code 3: log in first"));
  EXPECT_TRUE(plugin().has_failed());
  Write(Token("t"));
  EXPECT_THAT(Await(), HasSubstr("it ended with exit code 3: log in first"));
  EXPECT_EQ(runs(), 1);
  clock_.Advance(kNsPerSecond);
  EXPECT_EQ(Await(), "token t");
  EXPECT_FALSE(plugin().has_failed());
}

TEST_F(ExecPluginTest, RefusedCredentialsThatHaveWorkedAreReplacedAtOnce) {
  Write(Token("t$(wc -l < " + directory_.path() + "/runs)"));
  EXPECT_EQ(Await(), "token t1");
  plugin().OnAccepted(1);
  plugin().OnRefused(1);
  plugin().OnRefused(1);  // of a request at the same time
  EXPECT_EQ(plugin().current(), nullptr);
  EXPECT_FALSE(plugin().has_failed());
  EXPECT_EQ(Await(), "token t2");
  plugin().OnRefused(1);  // late
  EXPECT_NE(plugin().current(), nullptr);
}

TEST_F(ExecPluginTest, RefusedNewCredentialsAreAFailure) {
  Write(Token("t"));
  EXPECT_EQ(Await(), "token t");
  plugin().OnRefused(1);
  EXPECT_TRUE(plugin().has_failed());
  EXPECT_THAT(Await(), HasSubstr("does not accept its credentials"));
  EXPECT_EQ(runs(), 1);
  clock_.Advance(kNsPerSecond);
  EXPECT_EQ(Await(), "token t");
  plugin().OnRefused(2);
  clock_.Advance(kNsPerSecond - 1);  // now it waits longer
  EXPECT_THAT(Await(), HasSubstr("does not accept its credentials"));
  EXPECT_EQ(runs(), 2);
}

TEST_F(ExecPluginTest, CredentialsThatAreAcceptedAndRefusedInTurnAreReplacedMoreAndMoreSlowly) {
  Write(Token("t"));
  testing::internal::CaptureStderr();
  constexpr int kSeconds = 300;
  for (int second = 0; second < kSeconds; ++second) {
    Await();
    if (const ExecPlugin::Credential* current = plugin().current(); current != nullptr) {
      const uint64_t serial = current->serial;
      plugin().OnAccepted(serial);
      plugin().OnRefused(serial);
    }
    clock_.Advance(kNsPerSecond);
  }
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_GE(runs(), kSeconds / 30);  // at least every 30 s
  EXPECT_LE(runs(), 8 + kSeconds / 15);
  EXPECT_LE(std::count(log.begin(), log.end(), '\n'), 3) << log;

  // After a minute without a refusal, a refusal is replaced at once again.
  clock_.Advance(kNsPerMinute);
  EXPECT_EQ(Await(), "token t");
  plugin().OnAccepted(plugin().current()->serial);
  clock_.Advance(kNsPerMinute);
  plugin().OnRefused(plugin().current()->serial);
  EXPECT_FALSE(plugin().has_failed());
  EXPECT_EQ(Await(), "token t");
}

TEST_F(ExecPluginTest, ErrorsDoNotContainTokens) {
  const std::string jwt = "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJzM2NyZXQifQ.c2lnbmF0dXJlc2lnbmF0dXJl";
  Write("echo 'login failed with token=" + jwt + " at https://login.example.com/oauth2' >&2; exit 1");
  EXPECT_THAT(Await(), HasSubstr("login failed with token=(68 characters are hidden) at https://login.example.com/"));
}

TEST_F(ExecPluginTest, EachBadPluginHasAClearError) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"kill -9 $$", "it was ended by signal 9"},
      {"echo not json", "its output is not an ExecCredential in JSON"},
      {"exit 0", "its output is not an ExecCredential in JSON"},
      {Token("t", "2023-11-14T22:13:20Z"), "its credentials expire at once, at 2023-11-14T22:13:20Z: check the clock"},
      {"yes", "it wrote more than 1048576 bytes"},
      {"sleep 1000 & " + Token("t"), "a process that it started keeps its standard output open"},
  };
  for (const auto& [script, error] : cases) {
    Write(script);
    plugin_.reset();
    EXPECT_THAT(Await(), AllOf(StartsWith("no credentials from the exec plug-in " + directory_.path() + "/plugin: "),
                               HasSubstr(error)))
        << script;
  }
}

TEST_F(ExecPluginTest, APluginThatHangsIsKilled) {
  Write("sleep 1000");
  limits_.run_ms_max = 1000;
  EXPECT_THAT(Await(), HasSubstr("it did not end within 1 s, and was killed"));
}

TEST_F(ExecPluginTest, AMissingPluginIsReportedWithItsHint) {
  access_.exec->install_hint = "\napt install\n\t  the-plugin\n";
  EXPECT_THAT(Await(), HasSubstr("/plugin is not an executable file: apt install the-plugin"));
  plugin_.reset();
  access_.exec->command = "no-such-plugin";
  EXPECT_THAT(Await(), HasSubstr("there is no program no-such-plugin in the directories of PATH: apt install"));
}

TEST(FindProgram, LooksInAbsoluteDirectoriesOfThePath) {
  EXPECT_EQ(*FindProgram("sh", "relative::/nowhere:/bin"), "/bin/sh");
  EXPECT_EQ(*FindProgram("/bin/sh", ""), "/bin/sh");
  EXPECT_FALSE(FindProgram("sh", "").ok());
  EXPECT_FALSE(FindProgram("sh", "bin").ok());
  EXPECT_FALSE(FindProgram("/bin", "/").ok());
  EXPECT_FALSE(FindProgram("bin", "/").ok());  // a directory
}

}  // namespace
}  // namespace tributary
