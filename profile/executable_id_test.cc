#include "profile/executable_id.h"

#include <gtest/gtest.h>

namespace tributary {
namespace {

TEST(ExecutableId, KeepsKindAndBytes) {
  auto id = ExecutableId::Make(ExecutableIdKind::kGnuBuildId, std::string_view("\x01\xab", 2));
  ASSERT_TRUE(id.has_value());
  EXPECT_EQ(id->ToString(), "01ab");
  EXPECT_TRUE(id->known());
  EXPECT_NE(*id, *ExecutableId::Make(ExecutableIdKind::kContentHash, std::string_view("\x01\xab", 2)));
}

TEST(ExecutableId, RefusesEmptyLongAndUnknownKinds) {
  EXPECT_FALSE(ExecutableId::Make(ExecutableIdKind::kGnuBuildId, std::string_view()));
  EXPECT_FALSE(ExecutableId::Make(ExecutableIdKind::kGnuBuildId, std::string(21, 'x')));
  EXPECT_FALSE(ExecutableId::Make(ExecutableIdKind::kNone, "x"));
  EXPECT_FALSE(ExecutableId::Make(static_cast<ExecutableIdKind>(9), "x"));
  EXPECT_TRUE(ExecutableId::Make(ExecutableIdKind::kNone, std::string_view()));
}

TEST(ExecutableId, TextReadsBack) {
  for (auto kind : {ExecutableIdKind::kGnuBuildId, ExecutableIdKind::kGoBuildId, ExecutableIdKind::kContentHash}) {
    auto id = *ExecutableId::Make(kind, std::string(16, '\x7e'));
    EXPECT_EQ(ExecutableId::FromString(id.ToString()), id);
  }
  EXPECT_EQ(ExecutableId::FromString("unknown"), ExecutableId());
  EXPECT_FALSE(ExecutableId::FromString("xyz"));
  EXPECT_FALSE(ExecutableId::FromString("go:"));
}

}  // namespace
}  // namespace tributary
