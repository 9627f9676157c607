#include "k8s-collector/watch/exec_credential.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "base/certificates_testing.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/status.h"

namespace tributary {
namespace {

using testing::HasSubstr;
using testing::Not;

std::string Answer(std::string_view status, std::string_view version = kExecV1) {
  return fmt::format(R"({{"kind":"ExecCredential","apiVersion":"{}","spec":{{"interactive":false}},"status":{}}})",
                     version, status);
}

std::string ErrorOf(std::string_view answer) {
  const auto credential = DecodeExecCredential(answer, kExecV1);
  return credential.ok() ? "ok" : Message(credential.status());
}

std::string Quoted(std::string_view text) {
  JsonWriter json;
  json.String(text);
  return std::move(json).Take();
}

TEST(ExecCredential, ReadsAToken) {
  const auto credential = DecodeExecCredential(
      Answer(R"({"token":"abc","expirationTimestamp":"1970-01-02T00:00:00+01:00"})") + "\n", kExecV1);
  ASSERT_TRUE(credential.ok()) << credential.status();
  EXPECT_EQ(credential->token, "abc");
  EXPECT_EQ(credential->expires->value, 23 * 3600 * kNsPerSecond);
  EXPECT_FALSE(DecodeExecCredential(Answer(R"({"token":"abc","expirationTimestamp":null})"), kExecV1)->expires);
  EXPECT_TRUE(DecodeExecCredential(Answer(R"({"token":"abc"})", kExecV1Beta1), kExecV1Beta1).ok());
}

TEST(ExecCredential, ReadsIndentedJsonAndYaml) {
  EXPECT_EQ(ErrorOf("{\n\t\"kind\": \"ExecCredential\",\n\t\"apiVersion\": \"client.authentication.k8s.io\\/v1\",\n"
                    "\t\"status\": {\n\t\t\"token\": \"\\u0061bc\"\n\t}\n}\n"),
            "ok");
  EXPECT_EQ(ErrorOf("apiVersion: client.authentication.k8s.io/v1\nkind: ExecCredential\nstatus:\n  token: abc\n"),
            "ok");
  EXPECT_EQ(ErrorOf(Answer(fmt::format("{{\"token\":\"{}\"}}", std::string(100'000, 'x')))), "ok");
}

TEST(ExecCredential, ReadsJsonThatIsNotYaml) {
  const std::string pairs = R"({"token":"abc","user":"\ud83d\ude00"})";
  EXPECT_EQ(ErrorOf(Answer(pairs)), "ok");
  EXPECT_EQ(ErrorOf("\n " + Answer(pairs)), "ok");
  EXPECT_EQ(ErrorOf(Answer(R"({"token":"abc\/d","note":"a\tb"})")), "ok");
  EXPECT_THAT(ErrorOf(Answer(R"({"token":["s3cret"]})")), HasSubstr("no credentials"));
  EXPECT_EQ(ErrorOf("{kind: ExecCredential, apiVersion: client.authentication.k8s.io/v1, status: {token: abc}}"), "ok");
}

TEST(ExecCredential, ReadsACertificate) {
  const TestAuthority authority("cluster");
  const PemPair pair = authority.Issue({.common_name = "user", .alternatives = ""});
  const PemPair other = authority.Issue({.common_name = "other", .alternatives = ""});
  const auto answer = [](const std::string& cert, const std::string& key) {
    return Answer(fmt::format(R"({{"clientCertificateData":{},"clientKeyData":{}}})", Quoted(cert), Quoted(key)));
  };
  const auto credential = DecodeExecCredential(answer(pair.cert, pair.key), kExecV1);
  ASSERT_TRUE(credential.ok()) << credential.status();
  EXPECT_EQ(credential->cert_pem, pair.cert);
  EXPECT_EQ(credential->key_pem, pair.key);
  ASSERT_TRUE(credential->expires);  // with the certificate
  EXPECT_GT(credential->expires->value, Clock::Real().Unix().value + 23 * 3600 * kNsPerSecond);
  EXPECT_LT(credential->expires->value, Clock::Real().Unix().value + 25 * 3600 * kNsPerSecond);
  EXPECT_THAT(ErrorOf(answer(pair.cert, other.key)), HasSubstr("not the key of the certificate"));
  EXPECT_THAT(ErrorOf(answer("cert", pair.key)), HasSubstr("clientCertificateData is not"));
  EXPECT_THAT(ErrorOf(answer(pair.cert, "key")), HasSubstr("clientKeyData is not"));
  EXPECT_THAT(ErrorOf(answer(pair.cert, EncryptedKey(pair.key, "secret"))), HasSubstr("clientKeyData is not"));
  EXPECT_THAT(ErrorOf(answer(pair.cert, "")), HasSubstr("only one of"));
}

TEST(ExecCredential, ErrorsNameTheProblemAndNoSecret) {
  EXPECT_THAT(ErrorOf(""), HasSubstr("not an ExecCredential"));
  EXPECT_THAT(ErrorOf("s3cret: [}"), AllOf(HasSubstr("not an ExecCredential"), Not(HasSubstr("s3cret"))));
  EXPECT_THAT(ErrorOf("[]"), HasSubstr("not an ExecCredential"));
  EXPECT_THAT(ErrorOf(R"({"kind":"Status"})"), HasSubstr("not an ExecCredential"));
  EXPECT_THAT(ErrorOf(Answer(R"({"token":"a"})", kExecV1Beta1)),
              HasSubstr("v1beta1\", but the kubeconfig asks for \"client.authentication.k8s.io/v1\""));
  EXPECT_THAT(ErrorOf(Answer("null")), HasSubstr("no status"));
  EXPECT_THAT(ErrorOf(Answer("{}")), HasSubstr("no credentials"));
  EXPECT_THAT(ErrorOf(Answer(R"({"token":"s3cret\nX-Header: 1"})")),
              AllOf(HasSubstr("token"), Not(HasSubstr("s3cret"))));
  EXPECT_THAT(ErrorOf(Answer(R"({"token":"a","expirationTimestamp":"tomorrow"})")),
              HasSubstr("\"tomorrow\" is not a time"));
}

TEST(ExecInfo, ContainsTheClusterIfThePluginWantsIt) {
  ApiAccess access{.server = "https://h", .exec = ExecConfig{.api_version = kExecV1, .command = "aws"}};
  EXPECT_EQ(*EncodeExecInfo(access),
            R"({"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1","spec":{"interactive":false}})");
  access.ca_pem = "pem";
  access.tls_server_name = "api";
  access.proxy_url = "http://p";
  access.exec->wants_cluster = true;
  access.exec->cluster_config = R"({"a":1})";
  EXPECT_EQ(
      *EncodeExecInfo(access),
      R"({"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1","spec":{"cluster":{)"
      R"("server":"https://h","tls-server-name":"api","certificate-authority-data":"cGVt","proxy-url":"http://p",)"
      R"("config":{"a":1}},"interactive":false}})");
  access.ca_file = "/nowhere/ca";
  EXPECT_THAT(Message(EncodeExecInfo(access).status()), HasSubstr("/nowhere/ca"));
}

}  // namespace
}  // namespace tributary
