#include "reducer/web/status_answer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tributary {
namespace {

using ::testing::HasSubstr;

TEST(StatusAnswer, ListsTheDamageOfTheStore) {
  ReducerStatus reducer;
  EXPECT_THAT(StatusJson({}, {}, reducer), HasSubstr(R"("damage":[])"));
  reducer.damage = {{3, "samples", 2, "stored samples are \"corrupt\""}, {4, "maintenance: merge_tries", 1, "why"}};
  EXPECT_THAT(StatusJson({}, {}, reducer),
              HasSubstr(R"("damage":[{"shard":3,"kind":"samples","count":2,"reason":"stored samples are \"corrupt\""},)"
                        R"({"shard":4,"kind":"maintenance: merge_tries","count":1,"reason":"why"}])"));
}

TEST(StatusAnswer, DescribesACaller) {
  EXPECT_EQ(CallerJson({.sign_in = SignIn::kToken, .name = "ann", .rights = Rights::Parse("upload,read").value()}),
            R"({"name":"ann","signed_in_by":"token","rights":["read","upload"]})");
  EXPECT_EQ(CallerJson({.rights = Rights::Of(Right::kAdmin)}),
            R"({"name":"","signed_in_by":"none","rights":["read","send","upload","admin"]})");
}

}  // namespace
}  // namespace tributary
