#include "reducer/access/rights.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/status.h"

namespace tributary {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

TEST(Rights, AreParsedFromNames) {
  const Rights rights = Rights::Parse("read, upload").value();
  EXPECT_TRUE(rights.Has(Right::kRead));
  EXPECT_TRUE(rights.Has(Right::kUpload));
  EXPECT_FALSE(rights.Has(Right::kSend));
  EXPECT_FALSE(rights.Has(Right::kAdmin));
  for (const Right right : {Right::kRead, Right::kSend, Right::kUpload, Right::kAdmin}) {
    EXPECT_EQ(Rights::Parse(NameOf(right)).value(), Rights::Of(right));
    EXPECT_FALSE(Rights::None().Has(right));
  }
}

TEST(Rights, AdminContainsAllOthers) {
  const Rights rights = Rights::Parse("admin").value();
  EXPECT_THAT(NamesOf(rights), ElementsAre("read", "send", "upload", "admin"));
  EXPECT_THAT(NamesOf(Rights::Parse("upload,read").value()), ElementsAre("read", "upload"));
  EXPECT_THAT(NamesOf(Rights::None()), IsEmpty());
  for (const Right right : {Right::kRead, Right::kSend, Right::kUpload, Right::kAdmin}) EXPECT_TRUE(rights.Has(right));
}

TEST(Rights, OtherTextsAreRefused) {
  for (const std::string_view text : {"", ",", "read,", "Read", "read write", "read;send", "reads"}) {
    EXPECT_THAT(Message(Rights::Parse(text).status()), HasSubstr("give read, send, upload or admin")) << text;
  }
  EXPECT_THAT(Message(Rights::Parse("read,a-secret-token").status()), Not(HasSubstr("secret")));
}

}  // namespace
}  // namespace tributary
