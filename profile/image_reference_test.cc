#include "profile/image_reference.h"

#include <gtest/gtest.h>

namespace tributary {
namespace {

constexpr char kDigest[] = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

TEST(ImageReference, ParsesNameTagAndDigest) {
  const std::string digest = kDigest;
  const struct {
    std::string text, name, tag, digest;
  } kCases[] = {
      {"nginx", "nginx", "", ""},
      {"nginx:1.27", "nginx", "1.27", ""},
      {"library/nginx", "library/nginx", "", ""},
      {"docker.io/library/nginx:1.27-alpine", "docker.io/library/nginx", "1.27-alpine", ""},
      {"registry.example:5000/shop/web", "registry.example:5000/shop/web", "", ""},
      {"registry.example:5000/shop/web:v1", "registry.example:5000/shop/web", "v1", ""},
      {"localhost:5000/web@" + digest, "localhost:5000/web", "", digest},
      {"gcr.io/p/web:v1@" + digest, "gcr.io/p/web", "v1", digest},
      {"Registry.Example/web", "Registry.Example/web", "", ""},
      {"[fd00::1]:5000/web:x", "[fd00::1]:5000/web", "x", ""},
      {"host:5000", "host", "5000", ""},  // a name and a tag: no path follows, so "host" is not a registry
      {"a_b/web---x", "a_b/web---x", "", ""},
      {"[fd00::1]/web", "[fd00::1]/web", "", ""},
      {"web@sha512:" + std::string(128, 'a'), "web", "", "sha512:" + std::string(128, 'a')},
      {"r.example/" + std::string(255, 'a'), "r.example/" + std::string(255, 'a'), "", ""},
      {"a/b/c/d__e-f.g", "a/b/c/d__e-f.g", "", ""},
  };
  for (const auto& each : kCases) {
    const ImageReference got = ParseImageReference(each.text);
    EXPECT_EQ(got.name, each.name) << each.text;
    EXPECT_EQ(got.tag, each.tag) << each.text;
    EXPECT_EQ(got.digest, each.digest) << each.text;
  }
  const std::string kBad[] = {"",
                              "Nginx",
                              "nginx:",
                              "nginx:a b",
                              "/web",
                              "web/",
                              "a//b",
                              "web@sha256:12",
                              "web\n",
                              "web@",
                              "-web",
                              "web-",
                              "web.",
                              "a..b",
                              "a___b",
                              "a._b",
                              "a:b:c",
                              "[]/web",
                              "[::1]x/web",
                              "[::1]:/web",
                              "r.example:/web",
                              "r.example:http/web",
                              "-r.example/Web",
                              "r..example:5000/web",
                              std::string(256, 'a'),
                              "web:" + std::string(129, 'a'),
                              "web@md5:0123456789abcdef0123456789abcdef",
                              "web@sha256:" + std::string(64, 'A')};
  for (const std::string& text : kBad) EXPECT_EQ(ParseImageReference(text).name, "") << text;
}

TEST(ImageReference, TagAndVersion) {
  const std::string digest = kDigest;
  const struct {
    std::string text, tag, version;
  } kCases[] = {
      {"nginx", "latest", ""},
      {"nginx:latest", "latest", "latest"},
      {"r.example:5000/nginx:1.27", "1.27", "1.27"},
      {"nginx@" + digest, "latest", digest},
      {"nginx:1.27@" + digest, "1.27", "1.27@" + digest},
  };
  for (const auto& each : kCases) {
    EXPECT_EQ(ImageTag(ParseImageReference(each.text)), each.tag) << each.text;
    EXPECT_EQ(ImageVersion(ParseImageReference(each.text)), each.version) << each.text;
  }
}

TEST(RepoDigest, NamesTheRegistryInFull) {
  const std::string digest = kDigest;
  EXPECT_EQ(RepoDigest("nginx@" + digest), "docker.io/library/nginx@" + digest);
  EXPECT_EQ(RepoDigest("docker-pullable://shop/web@" + digest), "docker.io/shop/web@" + digest);
  EXPECT_EQ(RepoDigest("localhost/web@" + digest), "localhost/web@" + digest);
  EXPECT_EQ(RepoDigest("r.example:5000/web:v1@" + digest), "r.example:5000/web:v1@" + digest);
  EXPECT_EQ(RepoDigest("docker.io/nginx@" + digest), "docker.io/library/nginx@" + digest);
  EXPECT_EQ(RepoDigest("index.docker.io/shop/web@" + digest), "docker.io/shop/web@" + digest);
  EXPECT_EQ(RepoDigest("Host/web@" + digest), "Host/web@" + digest);
  EXPECT_EQ(RepoDigest("shop/Web@" + digest), "");
  EXPECT_EQ(RepoDigest(""), "");
  EXPECT_EQ(RepoDigest(digest), "");
  EXPECT_EQ(RepoDigest("docker://" + digest), "");
  EXPECT_EQ(RepoDigest("nginx:1"), "");
}

}  // namespace
}  // namespace tributary
