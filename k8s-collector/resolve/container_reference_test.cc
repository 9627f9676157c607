#include "k8s-collector/resolve/container_reference.h"

#include <gtest/gtest.h>

namespace tributary {
namespace {

TEST(ContainerId, HasARuntimeBeforeIt) {
  EXPECT_EQ(ParseContainerId("containerd://0ab1").id, "0ab1");
  EXPECT_EQ(ParseContainerId("cri-o://0ab1").runtime, "cri-o");
  EXPECT_EQ(ParseContainerId("0ab1").runtime, "");
  for (const char* text : {"containerd://", "containerd://a/b", "containerd://a b", "x\ny://ab", "docker://../../x"}) {
    EXPECT_EQ(ParseContainerId(text).id, "") << text;
  }
  EXPECT_EQ(ParseContainerId(std::string(500, 'a')).id, "");
}

}  // namespace
}  // namespace tributary
