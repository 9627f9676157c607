#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/commands.h"
#include "cli/json_reader.h"

namespace tributary::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

SymbolsAnswer Answer() {
  const auto answer = ParseSymbols(
      R"({"total":{"ns":10,"count":1},"executables":[)"
      R"({"build_id":"aabbcc0011","name":"libc.so.6","symbols":)"
      R"({"source":"symtab","origin":"nodes","functions":3,"contested":true,"nodes":["a","b"]}},)"
      R"({"build_id":"aabbcc0022","name":"old","symbols":{"source":"symtab","origin":"node","functions":3}},)"
      R"({"build_id":"ddeeff0033","name":"none","symbols":null}],"truncated":0,"notices":[]})");
  EXPECT_TRUE(answer.ok()) << answer.status();
  return *answer;
}

TEST(SymbolsCommand, ShowsTheOriginOfEachTable) {
  const std::string text = WriteSymbols(Answer());
  EXPECT_THAT(text, HasSubstr("2 nodes (contested)"));
  EXPECT_THAT(text, HasSubstr("node  "));
}

TEST(SymbolsCommand, FindsATableByTheBeginningOfItsBuildId) {
  const SymbolsAnswer answer = Answer();
  EXPECT_EQ(*FindTable(answer, "aabbcc0011"), "aabbcc0011");
  EXPECT_EQ(*FindTable(answer, "aabbcc002"), "aabbcc0022");
  EXPECT_TRUE(absl::IsInvalidArgument(FindTable(answer, "aabbcc").status())) << "two of them";
  EXPECT_TRUE(absl::IsInvalidArgument(FindTable(answer, "aabb").status())) << "too short";
  EXPECT_TRUE(absl::IsNotFound(FindTable(answer, "ddeeff0033").status())) << "it has no table";
  EXPECT_TRUE(absl::IsNotFound(FindTable(answer, "\x1b[2J000000").status()));
  EXPECT_THAT(std::string(FindTable(answer, "\x1b[2J000000").status().message()), Not(HasSubstr("\x1b")));
}

}  // namespace
}  // namespace tributary::cli
