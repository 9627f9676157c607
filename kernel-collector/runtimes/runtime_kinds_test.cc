#include "kernel-collector/runtimes/runtime_kinds.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tributary {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr RuntimeSet kPython = 1 << TRIB_RUNTIME_PYTHON;

TEST(RuntimeKinds, AllRuntimesAreTheDefault) {
  EXPECT_EQ(ParseRuntimes("all")->runtimes, kPython);
  EXPECT_THAT(ParseRuntimes("all")->unsupported, IsEmpty());
  EXPECT_EQ(ParseRuntimes("none")->runtimes, 0u);
}

TEST(RuntimeKinds, NamesMayHaveSpacesAndUpperCase) {
  EXPECT_EQ(ParseRuntimes(" Python ,go")->runtimes, kPython);
  EXPECT_EQ(ParseRuntimes("cpython")->runtimes, kPython);
  EXPECT_EQ(ParseRuntimes("go,native")->runtimes, 0u);
}

TEST(RuntimeKinds, OtherRuntimesAreNotSupportedYet) {
  const RuntimeChoice choice = *ParseRuntimes("jvm,python,node,hotspot");
  EXPECT_EQ(choice.runtimes, kPython);
  EXPECT_THAT(choice.unsupported, ElementsAre("hotspot", "v8"));
  EXPECT_THAT(UnsupportedRuntimes(choice), HasSubstr("not supported yet: hotspot, v8"));
  EXPECT_EQ(UnsupportedRuntimes(*ParseRuntimes("all")), "");
}

TEST(RuntimeKinds, UnknownNamesAreErrors) {
  EXPECT_THAT(std::string(ParseRuntimes("pyton").status().message()), HasSubstr("did you mean python?"));
  EXPECT_THAT(std::string(ParseRuntimes("python,rubi").status().message()), HasSubstr("did you mean ruby?"));
  EXPECT_FALSE(ParseRuntimes("").ok());
  EXPECT_FALSE(ParseRuntimes("all,python").ok());
  EXPECT_FALSE(ParseRuntimes(std::string(1 << 20, 'x')).ok());
}

}  // namespace
}  // namespace tributary
