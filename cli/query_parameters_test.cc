#include "cli/query_parameters.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "base/http_server_testing.h"
#include "base/status.h"
#include "cli/cli_data_testing.h"
#include "cli/commands.h"

namespace tributary::cli {
namespace {

using ::testing::HasSubstr;

TEST(CheckFrameOptions, NamesTheOptionThatTheReducerIgnores) {
  EXPECT_TRUE(CheckFrameOptions({}, false).ok());
  EXPECT_TRUE(CheckFrameOptions({.language = "python", .lines = true}, true).ok());
  EXPECT_THAT(Message(CheckFrameOptions({.language = "python", .lines = true}, false)),
              HasSubstr("ignores --language"));
  EXPECT_THAT(Message(CheckFrameOptions({.lines = true}, false)), HasSubstr("ignores --lines"));
}

// The reducer would answer with all stacks, as if they were those of the language.
TEST(CheckFrameOptions, CommandsRefuseAnswersOfEarlierReleases) {
  const FrameOptions python{.language = "python"};
  const TestHttpServer top({.status = 200, .body = R"({"total": {}, "functions": []})"});
  EXPECT_EQ(RunTop({.query = {.server = {.url = top.Url()}}, .frames = python}).status().code(),
            absl::StatusCode::kUnimplemented);
  const TestHttpServer graph({.status = 200, .body = std::string(testing::kFlameGraphJson)});
  EXPECT_EQ(RunFlameGraph({.query = {.server = {.url = graph.Url()}}, .frames = python}).status().code(),
            absl::StatusCode::kUnimplemented);
}

}  // namespace
}  // namespace tributary::cli
