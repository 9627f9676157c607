#include "intake/credentials.h"

#include <gmock/gmock.h>

#include "base/status.h"
#include "base/test_certificates.h"
#include "base/test_stream.h"

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
  TestFiles files_;
  NoConnector tcp_;
  ManualAlarms alarms_;
  FakeClock clock_;
  Metrics metrics_;
};

TEST_F(IntakeCredentialsTest, NothingAskedForIsPlainTcp) {
  auto credentials = Load({});
  ASSERT_TRUE(credentials.ok());
  EXPECT_EQ(&(*credentials)->connector(), &tcp_);
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
  EXPECT_NE(&(*credentials)->connector(), &tcp_);
  EXPECT_THAT(Message(Load({.tls = true, .tls_ca = files_.Path("none")}).status()), HasSubstr("--tls-ca: "));
}

TEST_F(IntakeCredentialsTest, TheTokenIsReadAtEachConnection) {
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

}  // namespace
}  // namespace tributary
