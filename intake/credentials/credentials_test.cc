#include "intake/credentials/credentials.h"

#include <gmock/gmock.h>

#include "base/certificates_testing.h"
#include "base/status.h"
#include "base/stream_testing.h"

namespace tributary {
namespace {

using testing::HasSubstr;

class NoConnector : public Connector {
 public:
  std::unique_ptr<Stream> Connect(const std::string&, uint16_t, std::function<void(absl::Status)>) override {
    return nullptr;
  }
};

class IntakeCredentialsTest : public testing::Test {
 protected:
  auto Load(IntakeCredentialOptions options) {
    return IntakeCredentials::Load(std::move(options), tcp_, alarms_, clock_, metrics_);
  }
  // NoConnector has no stream; TLS wraps its own stream around it.
  static bool UsesTls(IntakeCredentials& credentials) {
    return credentials.connector().Connect("h", 1, [](const absl::Status&) {}) != nullptr;
  }
  TestFiles files_;
  NoConnector tcp_;
  ManualAlarms alarms_;
  FakeClock clock_;
  Metrics metrics_;
};

TEST_F(IntakeCredentialsTest, DefaultsToPlainTcp) {
  auto credentials = Load({});
  ASSERT_TRUE(credentials.ok());
  EXPECT_FALSE(UsesTls(**credentials));
  EXPECT_EQ((*credentials)->Token(), "");
}

TEST_F(IntakeCredentialsTest, TlsWrapsTheConnector) {
  TestAuthority authority("ca");
  const PemPair own = authority.Issue({.common_name = "web-1"});
  auto credentials = Load({.tls = true,
                           .tls_ca = files_.Write("ca.pem", authority.pem()),
                           .tls_cert = files_.Write("own.pem", own.cert),
                           .tls_key = files_.Write("own.key", own.key)});
  ASSERT_TRUE(credentials.ok()) << credentials.status();
  EXPECT_TRUE(UsesTls(**credentials));
  EXPECT_THAT(Message(Load({.tls = true, .tls_ca = files_.Path("none")}).status()), HasSubstr("--tls-ca: "));
}

TEST_F(IntakeCredentialsTest, ReadsTheTokenAtEachConnection) {
  const std::string path = files_.Write("token", "first-token-of-all\n");
  auto credentials = Load({.token_file = path});
  ASSERT_TRUE(credentials.ok()) << credentials.status();
  EXPECT_EQ((*credentials)->Token(), "first-token-of-all");
  files_.Write("token", "second-token-of-all\n");
  EXPECT_EQ((*credentials)->Token(), "second-token-of-all");
  files_.Write("token", "third-token-of-all\n", 0644);
  EXPECT_EQ((*credentials)->Token(), "second-token-of-all");
  EXPECT_THAT(Message(Load({.token_file = path}).status()), HasSubstr("--intake-token-file: "));
}

TEST_F(IntakeCredentialsTest, ChangeAppliesToTheNextConnectionOrNotAtAll) {
  TestAuthority authority("ca");
  const std::string ca = files_.Write("ca.pem", authority.pem()), token = files_.Write("token", "first-token-of-all\n");
  auto credentials = Load({.token_file = token});
  ASSERT_TRUE(credentials.ok()) << credentials.status();
  EXPECT_FALSE(UsesTls(**credentials));
  const std::string other = files_.Write("other", "second-token-of-all\n");
  EXPECT_THAT(Message((*credentials)->Change({.tls = true, .tls_ca = files_.Path("none"), .token_file = other})),
              HasSubstr("--tls-ca: "));
  EXPECT_THAT(Message((*credentials)->Change({.tls = true, .tls_ca = ca, .token_file = files_.Path("none")})),
              HasSubstr("--intake-token-file: "));
  EXPECT_FALSE(UsesTls(**credentials));
  EXPECT_EQ((*credentials)->Token(), "first-token-of-all");
  ASSERT_TRUE((*credentials)->Change({.tls = true, .tls_ca = ca, .token_file = other}).ok());
  EXPECT_TRUE(UsesTls(**credentials));
  EXPECT_EQ((*credentials)->Token(), "second-token-of-all");
  ASSERT_TRUE((*credentials)->Change({}).ok());
  EXPECT_FALSE(UsesTls(**credentials));
  EXPECT_EQ((*credentials)->Token(), "");
}

}  // namespace
}  // namespace tributary
