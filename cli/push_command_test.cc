#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/certificates_testing.h"
#include "base/http_server_testing.h"
#include "cli/commands.h"

namespace tributary::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

class PushCommandTest : public ::testing::Test {
 protected:
  // Pushes two files. Returns what the command prints, and its exit code.
  std::pair<std::string, int> Push(const TestHttpServer& server) {
    ::testing::internal::CaptureStdout();
    ::testing::internal::CaptureStderr();
    const absl::StatusOr<int> exit_code =
        RunPush({.server = {.url = server.Url()}, .paths = {files_.Write("a", "a"), files_.Write("b", "b")}});
    std::string printed = ::testing::internal::GetCapturedStdout() + ::testing::internal::GetCapturedStderr();
    return {std::move(printed), exit_code.value_or(-1)};
  }

  const TestFiles files_;
};

TEST_F(PushCommandTest, SendsNoMoreFilesIfTheCallerMayNotUpload) {
  for (const int status : {401, 403}) {
    const TestHttpServer server({.status = status, .body = R"({"error":"no"})"});
    const auto [printed, exit_code] = Push(server);
    EXPECT_THAT(server.Heads(), SizeIs(1));
    EXPECT_THAT(printed, HasSubstr(status == 401 ? "--token-file FILE" : "ask the operator"));
    EXPECT_EQ(exit_code, kExitFailure);
  }
}

TEST_F(PushCommandTest, SendsTheNextFileIfOneIsRefused) {
  const TestHttpServer server({.status = 400, .body = R"({"error":"not an ELF file"})"});
  const auto [printed, exit_code] = Push(server);
  EXPECT_THAT(server.Heads(), SizeIs(2));
  EXPECT_THAT(printed, HasSubstr("2 failed"));
  EXPECT_EQ(exit_code, kExitFailure);
}

}  // namespace
}  // namespace tributary::cli
