#include "k8s-collector/watch/api_access.h"
#include "k8s-collector/watch/kubeconfig.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "base/directory_testing.h"
#include "base/status.h"

namespace tributary {
namespace {

using testing::HasSubstr;

class ApiAccessTest : public testing::Test {
 protected:
  std::string Write(const std::string& name, std::string_view text) {
    const std::string path = directory_.path() + "/" + name;
    std::filesystem::create_directories(std::filesystem::path(path).parent_path());
    std::ofstream(path) << text;
    return path;
  }
  absl::StatusOr<ApiAccess> Read(std::string_view cluster, std::string_view user, const std::string& context = "") {
    return ReadKubeconfig(
        Write("config",
              std::string("apiVersion: v1\nkind: Config\ncurrent-context: here\ncontexts:\n"
                          "- {name: there, context: {cluster: c, user: nobody}}\n"
                          "- {name: here, context: {cluster: c, user: u}}\nclusters:\n- {name: c, cluster: {") +
                  std::string(cluster) + "}}\nusers:\n- {name: u, user: {" + std::string(user) + "}}\n"),
        context);
  }
  TestDirectory directory_;
};

TEST_F(ApiAccessTest, KubeconfigNamesServerAndCredentials) {
  auto access = Read("server: 'https://10.0.0.1:6443/', certificate-authority: ca.crt",
                     "client-certificate: /abs/c.crt, client-key-data: aGVsbG8=, token: t, tokenFile: tok");
  ASSERT_TRUE(access.ok()) << access.status();
  EXPECT_EQ(access->server, "https://10.0.0.1:6443");
  EXPECT_EQ(access->ca_file, directory_.path() + "/ca.crt");
  EXPECT_EQ(access->cert_file, "/abs/c.crt");
  EXPECT_EQ(access->key_pem, "hello");
  EXPECT_EQ(access->token, "t");
  EXPECT_EQ(access->token_file, directory_.path() + "/tok");
  EXPECT_FALSE(access->insecure);
  EXPECT_TRUE(Read("server: 'http://h', insecure-skip-tls-verify: true", "token: t")->insecure);
}

TEST_F(ApiAccessTest, KubeconfigErrorsNameTheProblem) {
  const auto message = [](const absl::StatusOr<ApiAccess>& access) {
    return access.ok() ? "ok" : Message(access.status());
  };
  EXPECT_THAT(message(Read("server: 'https://h'", "username: u, password: p")), HasSubstr("username"));
  EXPECT_THAT(message(Read("server: 'https://h'", "client-certificate: c")), HasSubstr("one is missing"));
  EXPECT_THAT(message(Read("server: 'ftp://h'", "token: t")), HasSubstr("https://HOST:PORT"));
  EXPECT_THAT(message(Read("server: 'https://h', certificate-authority-data: '***'", "token: t")), HasSubstr("base64"));
  EXPECT_THAT(message(Read("server: 'https://h'", "token: t", "there")), HasSubstr("no user named \"nobody\""));
  EXPECT_THAT(message(Read("server: 'https://h'", "token: t", "where")), HasSubstr("no context named \"where\""));
  EXPECT_THAT(message(ReadKubeconfig(Write("list", "[1, 2]"), "")), HasSubstr("not a kubeconfig"));
  EXPECT_THAT(message(ReadKubeconfig(Write("bad", "{a: [}"), "")), HasSubstr("bad"));
  EXPECT_THAT(message(ReadKubeconfig(directory_.path() + "/none", "")), HasSubstr("ENOENT"));
}

TEST_F(ApiAccessTest, PodsHaveAServiceAccount) {
  EXPECT_TRUE(absl::IsNotFound(InClusterAccess({}, directory_.path()).status()));
  const std::map<std::string, std::string> environment = {{"KUBERNETES_SERVICE_HOST", "fd00::1"},
                                                          {"KUBERNETES_SERVICE_PORT", "443"}};
  EXPECT_TRUE(absl::IsFailedPrecondition(InClusterAccess(environment, directory_.path()).status()));
  Write("var/run/secrets/kubernetes.io/serviceaccount/token", "t");
  Write("var/run/secrets/kubernetes.io/serviceaccount/ca.crt", "c");
  auto access = InClusterAccess(environment, directory_.path());
  ASSERT_TRUE(access.ok()) << access.status();
  EXPECT_EQ(access->server, "https://[fd00::1]:443");
  EXPECT_THAT(access->token_file, HasSubstr("serviceaccount/token"));
}

TEST(CheckServerUrl, TakesHttpAddressesOnly) {
  for (const char* url : {"", "https://", "host:6443", "file:///etc", "https://u@h", "https://h?x", "https://h h"}) {
    EXPECT_FALSE(CheckServerUrl(url).ok()) << url;
  }
  EXPECT_EQ(*CheckServerUrl("http://127.0.0.1:8001//"), "http://127.0.0.1:8001");
}

}  // namespace
}  // namespace tributary
