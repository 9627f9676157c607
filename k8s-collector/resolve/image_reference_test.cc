#include "k8s-collector/resolve/image_reference.h"

#include <gtest/gtest.h>

namespace tributary {
namespace {

constexpr char kDigest[] = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

TEST(ImageReference, IsTakenApart) {
  const std::string digest = kDigest;
  const struct {
    std::string text, name, tag, digest;
  } kCases[] = {
      {"nginx", "nginx", "latest", ""},
      {"nginx:1.27", "nginx", "1.27", ""},
      {"library/nginx", "library/nginx", "latest", ""},
      {"docker.io/library/nginx:1.27-alpine", "docker.io/library/nginx", "1.27-alpine", ""},
      {"registry.example:5000/shop/web", "registry.example:5000/shop/web", "latest", ""},
      {"registry.example:5000/shop/web:v1", "registry.example:5000/shop/web", "v1", ""},
      {"localhost:5000/web@" + digest, "localhost:5000/web", "latest", digest},
      {"gcr.io/p/web:v1@" + digest, "gcr.io/p/web", "v1", digest},
      {"Registry.Example/web", "Registry.Example/web", "latest", ""},
      {"[fd00::1]:5000/web:x", "[fd00::1]:5000/web", "x", ""},
      {"a/b/c/d__e-f.g", "a/b/c/d__e-f.g", "latest", ""},
  };
  for (const auto& each : kCases) {
    const ImageReference got = ParseImageReference(each.text);
    EXPECT_EQ(got.name, each.name) << each.text;
    EXPECT_EQ(got.tag, each.tag) << each.text;
    EXPECT_EQ(got.digest, each.digest) << each.text;
  }
  for (const std::string& text : {std::string(), std::string("Nginx"), std::string("nginx:"), std::string("nginx:a b"),
                                  std::string("/web"), std::string("web/"), std::string("a//b"),
                                  std::string("web@sha256:12"), std::string("web\n"), std::string(600, 'a')}) {
    EXPECT_EQ(ParseImageReference(text).name, "") << text;
  }
}

TEST(RepoDigest, NamesTheRegistryInFull) {
  const std::string digest = kDigest;
  EXPECT_EQ(RepoDigest("nginx@" + digest), "docker.io/library/nginx@" + digest);
  EXPECT_EQ(RepoDigest("docker-pullable://shop/web@" + digest), "docker.io/shop/web@" + digest);
  EXPECT_EQ(RepoDigest("localhost/web@" + digest), "localhost/web@" + digest);
  EXPECT_EQ(RepoDigest("r.example:5000/web:v1@" + digest), "r.example:5000/web:v1@" + digest);
  EXPECT_EQ(RepoDigest(digest), "");
  EXPECT_EQ(RepoDigest("docker://" + digest), "");
  EXPECT_EQ(RepoDigest("nginx:1"), "");
}

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
