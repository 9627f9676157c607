#include "intake/metadata/packed_attributes.h"

#include <gtest/gtest.h>

namespace tributary::intake {
namespace {

TEST(AttributePacker, UnpacksToTheSameAttributes) {
  AttributePacker packer;
  const Attributes some = {
      {"", ""}, {"k8s.pod.name", "web"}, {"long", std::string(5000, 'x')}, {"z", std::string("\0\xff", 2)}};
  const std::string packed = packer.Pack(some);
  EXPECT_EQ(packer.Unpack(packed), some);
  EXPECT_EQ(packer.Pack(some), packed);
  EXPECT_EQ(packer.Unpack(packer.Pack({})), Attributes{});
  EXPECT_LT(packer.Pack({{"k8s.pod.name", "web"}}).size(), 8u);
}

TEST(AttributePacker, PacksKeysBeyondTheLimitAsText) {
  AttributePacker packer;
  for (size_t i = 0; i < AttributePacker::kKeysMax + 10; ++i) {
    const Attributes one = {{"key" + std::to_string(i), "v"}};
    ASSERT_EQ(packer.Unpack(packer.Pack(one)), one);
  }
}

}  // namespace
}  // namespace tributary::intake
