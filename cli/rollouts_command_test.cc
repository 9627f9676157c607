#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "cli/commands.h"
#include "cli/json_reader.h"

namespace tributary::cli {
namespace {

using testing::HasSubstr;

constexpr std::string_view kAnswer = R"({"from":0,"to":9,"truncated":true,"rollouts":[
  {"at":1763700131000,"cluster":"cluster/c","kind":"deployment","namespace":"shop","name":"web",
   "hash":"7c5d","images":"web:2.1","version":"2.1","previous":{"hash":"6b4c","images":"web:2.0","version":"2.0"},
   "before":{"from":1000,"to":3000,"cpu_ns":1000000000,"count":1},"after":{"from":3000,"to":4000,"cpu_ns":1000000000,"count":1}},
  {"at":1763700000000,"kind":"statefulset","namespace":"shop","name":"db","hash":"b","images":"db:1","version":"",
   "previous":{"hash":"a","images":"db:1","version":""},
   "before":{"from":1000,"to":3000,"cpu_ns":0,"count":0},"after":{"from":3000,"to":3000,"cpu_ns":0,"count":0}}]})";

TEST(RolloutsCommand, ShowsTheChangeAndTheCoresOnBothSides) {
  setenv("TZ", "UTC", 1);
  const auto answer = ParseRollouts(kAnswer);
  ASSERT_TRUE(answer.ok()) << answer.status();
  const std::string text = WriteRollouts(*answer);
  EXPECT_THAT(text, HasSubstr("2025-11-21 04:42:11  shop deployment web  web:2.0 → web:2.1  2.0 → 2.1"));
  EXPECT_THAT(text, testing::ContainsRegex("2[.]1 +0[.]5 +1 +[+]100[.]0%"));
  EXPECT_THAT(text, testing::ContainsRegex("shop statefulset db +db:1 [(]a → b[)] +0 +- +-"));
  EXPECT_THAT(text, HasSubstr("not all rollouts are shown"));
}

TEST(RolloutsCommand, ShowsOtherTypesInTheirUnit) {
  std::string json(kAnswer);
  json.insert(1, R"("type":"alloc_space","unit":"bytes",)");
  const auto answer = ParseRollouts(json);
  ASSERT_TRUE(answer.ok()) << answer.status();
  const std::string text = WriteRollouts(*answer);
  EXPECT_THAT(text, testing::ContainsRegex("VERSION +BEFORE +AFTER"));
  EXPECT_THAT(text, testing::ContainsRegex("2[.]1 +476[.]8 MiB/s +953[.]7 MiB/s +[+]100[.]0%"));
}

TEST(RolloutsCommand, ShowsServices) {
  const auto answer = ParseRollouts(R"({"truncated":false,"rollouts":[
    {"at":1,"kind":"service","namespace":"","name":"nginx","environment":"prod","executable":"nginx","hash":"77aa","images":"",
     "version":"","previous":{"hash":"9f3c","images":"","version":""}},
    {"at":1,"kind":"service","namespace":"shop","name":"pay","environment":"","executable":"java","hash":"","images":"",
     "version":"2","previous":{"hash":"","images":"","version":"1"}}]})");
  ASSERT_TRUE(answer.ok()) << answer.status();
  const std::string text = WriteRollouts(*answer);
  EXPECT_THAT(text, testing::ContainsRegex("  service nginx [(]prod[)]  nginx [(]9f3c → 77aa[)] "));
  EXPECT_THAT(text, testing::ContainsRegex("  shop service pay  +java +1 → 2 "));
}

TEST(RolloutsCommand, ExplainsRolloutsWhenThereAreNone) {
  const auto answer = ParseRollouts(R"({"rollouts":[],"truncated":false})");
  ASSERT_TRUE(answer.ok());
  EXPECT_THAT(WriteRollouts(*answer), HasSubstr("docs/rollouts.md"));
}

TEST(RolloutsCommand, ControlBytesDoNotReachTheTerminal) {
  const auto answer = ParseRollouts(
      R"({"truncated":false,"rollouts":[{"at":1,"kind":"job","namespace":"\u001b[2J","name":"x","images":"\u0007","previous":{"images":"\u009b"}}]})");
  ASSERT_TRUE(answer.ok());
  const std::string text = WriteRollouts(*answer);
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
  EXPECT_EQ(text.find('\x07'), std::string::npos);
}

TEST(RolloutsCommand, RefusesInvalidAnswers) {
  for (const char* json : {"", "[]", "{}", R"({"rollouts":3,"truncated":false})"})
    EXPECT_FALSE(ParseRollouts(json).ok());
}

}  // namespace
}  // namespace tributary::cli
