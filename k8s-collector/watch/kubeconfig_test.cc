#include "k8s-collector/watch/kubeconfig.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "base/directory_testing.h"
#include "base/status.h"

namespace tributary {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::Pair;

class KubeconfigTest : public testing::Test {
 protected:
  std::string Write(const std::string& name, std::string_view text) {
    const std::string path = directory_.path() + "/" + name;
    std::filesystem::create_directories(std::filesystem::path(path).parent_path());
    std::ofstream(path) << text;
    return path;
  }
  absl::StatusOr<ApiAccess> Read(std::string_view cluster, std::string_view user) {
    return ReadKubeconfig(Write("config", fmt::format("current-context: here\ncontexts:\n"
                                                      "- {{name: here, context: {{cluster: c, user: u}}}}\n"
                                                      "clusters:\n- {{name: c, cluster: {{{}}}}}\n"
                                                      "users:\n- {{name: u, user: {{{}}}}}\n",
                                                      cluster, user)),
                          "");
  }
  absl::StatusOr<ApiAccess> ReadExec(std::string_view exec, std::string_view cluster = "server: 'https://h'") {
    return Read(cluster, fmt::format("exec: {{apiVersion: client.authentication.k8s.io/v1, {}}}", exec));
  }
  static std::string MessageOf(const absl::StatusOr<ApiAccess>& access) {
    return access.ok() ? "ok" : Message(access.status());
  }

  TestDirectory directory_;
};

TEST_F(KubeconfigTest, ReadsAnExecPlugin) {
  auto access = ReadExec(
      "command: aws, args: [eks, get-token], env: [{name: AWS_PROFILE, value: ops}], installHint: 'apt install "
      "awscli', "
      "interactiveMode: IfAvailable");
  ASSERT_TRUE(access.ok()) << access.status();
  ASSERT_TRUE(access->exec);
  EXPECT_EQ(access->exec->api_version, "client.authentication.k8s.io/v1");
  EXPECT_EQ(access->exec->command, "aws");
  EXPECT_THAT(access->exec->arguments, ElementsAre("eks", "get-token"));
  EXPECT_THAT(access->exec->environment, ElementsAre(Pair("AWS_PROFILE", "ops")));
  EXPECT_EQ(access->exec->install_hint, "apt install awscli");
  EXPECT_FALSE(access->exec->wants_cluster);
}

TEST_F(KubeconfigTest, APathOfAPluginIsRelativeToTheFile) {
  EXPECT_EQ(ReadExec("command: ./bin/get")->exec->command, directory_.path() + "/./bin/get");
  EXPECT_EQ(ReadExec("command: bin/get")->exec->command, directory_.path() + "/bin/get");
  EXPECT_EQ(ReadExec("command: /bin/get")->exec->command, "/bin/get");
}

TEST_F(KubeconfigTest, NullListsOfAPluginAreEmpty) {
  auto access = ReadExec("command: aws, args: null, env: null, installHint: null, provideClusterInfo: false");
  ASSERT_TRUE(access.ok()) << access.status();
  EXPECT_THAT(access->exec->arguments, IsEmpty());
}

TEST_F(KubeconfigTest, ATokenReplacesThePlugin) {
  auto access =
      Read("server: 'https://h'", "token: t, exec: {apiVersion: client.authentication.k8s.io/v1, command: aws}");
  ASSERT_TRUE(access.ok()) << access.status();
  EXPECT_FALSE(access->exec);
}

TEST_F(KubeconfigTest, ANullPluginIsNone) {
  auto access = Read("server: 'https://h'", "exec: null, auth-provider: null, client-certificate: c, client-key: k");
  ASSERT_TRUE(access.ok()) << access.status();
  EXPECT_FALSE(access->exec);
}

TEST_F(KubeconfigTest, ConvertsTheClustersExtensionToJson) {
  auto access = ReadExec("command: aws, provideClusterInfo: true",
                         "server: 'https://h', extensions: [{name: other, extension: {a: b}}, {name: "
                         "client.authentication.k8s.io/exec, extension: {audience: \"12\", n: 12, f: 1.5, ok: true, "
                         "none: null, list: [a, {b: c}]}}]");
  ASSERT_TRUE(access.ok()) << access.status();
  EXPECT_TRUE(access->exec->wants_cluster);
  EXPECT_EQ(access->exec->cluster_config,
            R"({"audience":"12","n":12,"f":1.5,"ok":true,"none":null,"list":["a",{"b":"c"}]})");
}

TEST_F(KubeconfigTest, RefusesAnEndlessExtension) {
  EXPECT_THAT(MessageOf(ReadExec("command: aws, provideClusterInfo: true",
                                 "server: 'https://h', extensions: [{name: client.authentication.k8s.io/exec, "
                                 "extension: &a [*a, *a]}]")),
              HasSubstr("too large"));
}

TEST_F(KubeconfigTest, PluginErrorsNameTheProblem) {
  EXPECT_THAT(MessageOf(ReadExec("command: aws, interactiveMode: Always")), HasSubstr("needs a terminal"));
  EXPECT_THAT(MessageOf(ReadExec("command: aws, interactiveMode: Often")), HasSubstr("\"Often\" is unknown"));
  EXPECT_THAT(MessageOf(ReadExec("args: [a]")), HasSubstr("no command"));
  EXPECT_THAT(MessageOf(ReadExec("command: aws, args: a")), HasSubstr("not a list"));
  EXPECT_THAT(MessageOf(ReadExec("command: aws, env: [{value: a}]")), HasSubstr("valid name"));
  EXPECT_THAT(MessageOf(ReadExec("command: aws, args: [\"a\\0b\"]")), HasSubstr("NUL"));
  EXPECT_THAT(MessageOf(Read("server: 'https://h'", "exec: aws")), HasSubstr("not a mapping"));
  EXPECT_THAT(
      MessageOf(Read("server: 'https://h'", "exec: {apiVersion: client.authentication.k8s.io/v1alpha1, command: aws}")),
      HasSubstr("v1alpha1\", but only client.authentication.k8s.io/v1 and"));
}

TEST_F(KubeconfigTest, AnAuthProviderErrorNamesExec) {
  EXPECT_THAT(MessageOf(Read("server: 'https://h'", "auth-provider: {name: gcp, config: {secret: s3}}")),
              AllOf(HasSubstr("auth-provider \"gcp\""), HasSubstr("use an exec plug-in"), Not(HasSubstr("s3"))));
}

TEST_F(KubeconfigTest, ReadsProxyAndServerName) {
  auto access = Read("server: 'https://h', proxy-url: 'socks5://u:p@proxy:1080', tls-server-name: api.internal", "");
  ASSERT_TRUE(access.ok()) << access.status();
  EXPECT_EQ(access->proxy_url, "socks5://u:p@proxy:1080");
  EXPECT_EQ(access->tls_server_name, "api.internal");
  EXPECT_EQ(Read("server: 'https://h', tls-server-name: 'fd00::1'", "")->tls_server_name, "fd00::1");
  EXPECT_THAT(MessageOf(Read("server: 'https://h', tls-server-name: 'a/b'", "")), HasSubstr("tls-server-name"));
  EXPECT_THAT(MessageOf(Read("server: 'https://h', proxy-url: 'ftp://u:s3cret@proxy'", "")),
              AllOf(HasSubstr("proxy-url"), Not(HasSubstr("s3cret"))));
}

constexpr char kFirst[] = R"(
clusters: [{name: red, cluster: {server: 'https://first', certificate-authority: ca.crt}}]
contexts: [{name: one, context: {cluster: red, user: red-user}}]
)";
constexpr char kSecond[] = R"(
current-context: two
clusters: [{name: red, cluster: {server: 'https://second', tls-server-name: second}}]
contexts: [{name: two, context: {cluster: red, user: red-user}}]
users: [{name: red-user, user: {tokenFile: token}}]
)";

TEST_F(KubeconfigTest, MergesFilesAsKubectlDoes) {
  const std::string first = Write("1/config", kFirst), second = Write("2/config", kSecond);
  auto access = ReadKubeconfig(first + "::" + directory_.path() + "/none:" + second, "");
  ASSERT_TRUE(access.ok()) << access.status();
  EXPECT_EQ(access->server, "https://first");
  EXPECT_EQ(access->tls_server_name, "");  // nothing of the second file's entry
  EXPECT_EQ(access->ca_file, directory_.path() + "/1/ca.crt");
  EXPECT_EQ(access->token_file, directory_.path() + "/2/token");
  EXPECT_EQ(ReadKubeconfig(second + ":" + first, "one")->server, "https://second");
}

TEST_F(KubeconfigTest, IgnoresEmptyFiles) {
  EXPECT_TRUE(ReadKubeconfig(Write("empty", "") + ":" + Write("2/config", kSecond), "").ok());
  EXPECT_THAT(MessageOf(ReadKubeconfig(Write("empty", ""), "")), HasSubstr("no current-context"));
}

TEST_F(KubeconfigTest, OneInvalidFileIsAnError) {
  EXPECT_THAT(MessageOf(ReadKubeconfig(Write("bad", "{a: [}") + ":" + Write("2/config", kSecond), "")),
              HasSubstr("bad"));
  EXPECT_THAT(MessageOf(ReadKubeconfig(directory_.path() + "/none:" + directory_.path() + "/no2", "")),
              AllOf(HasSubstr("/none"), HasSubstr("ENOENT")));
}

TEST_F(KubeconfigTest, AFileNameMayHaveAColon) { EXPECT_TRUE(ReadKubeconfig(Write("a:b", kSecond), "").ok()); }

}  // namespace
}  // namespace tributary
