#include "otlp/tls_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/certificates_testing.h"
#include "base/status.h"

namespace tributary::otlp {
namespace {

using ::testing::HasSubstr;

class TlsFilesTest : public ::testing::Test {
 protected:
  const TestAuthority authority_{"test"};
  const PemPair pair_ = authority_.Issue({.common_name = "reducer"});
  const TestFiles files_;
  const std::string ca_ = files_.Write("ca.pem", authority_.pem());
  const std::string cert_ = files_.Write("c.pem", pair_.cert), key_ = files_.Write("c.key", pair_.key);
};

TEST_F(TlsFilesTest, ReadsAllFiles) {
  const std::string both =
      files_.Write("both.pem", "# two authorities\n" + authority_.pem() + TestAuthority("b").pem());
  const absl::StatusOr<TlsPem> pem = ReadTlsFiles({.ca = both, .cert = cert_, .key = key_});
  ASSERT_TRUE(pem.ok()) << pem.status();
  EXPECT_THAT(pem->ca, HasSubstr(authority_.pem()));
  EXPECT_EQ(pem->cert, pair_.cert);
  EXPECT_EQ(pem->key, pair_.key);
}

TEST_F(TlsFilesTest, TakesTheAuthoritiesOfTheSystem) {
  setenv("SSL_CERT_FILE", ca_.c_str(), 1);
  const absl::StatusOr<TlsPem> pem = ReadTlsFiles({});
  unsetenv("SSL_CERT_FILE");
  ASSERT_TRUE(pem.ok()) << pem.status();
  EXPECT_EQ(pem->ca, authority_.pem());
  EXPECT_EQ(pem->cert, "");
}

// A named pipe must not block the start of the program, and an encrypted key must not make it ask for a passphrase.
TEST_F(TlsFilesTest, RefusesUnusableFiles) {
  const std::string pipe = files_.Path("pipe");
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  const std::string text = files_.Write("text", "no PEM");
  const std::string garbage = files_.Write("garbage", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n");
  const std::string half = files_.Write("half", authority_.pem() + authority_.pem().substr(0, 200));
  const struct {
    TlsFiles files;
    const char* message;
  } cases[] = {
      {{.ca = files_.Path("missing")}, "ENOENT"},
      {{.ca = pipe}, "pipe: is not a regular file"},
      {{.ca = files_.Path(".")}, "is not a regular file"},
      {{.ca = text}, "text: has no certificate"},
      {{.ca = key_}, "c.key: has no certificate"},
      {{.ca = garbage}, "garbage: has a malformed certificate"},
      {{.ca = half}, "half: has a malformed certificate"},
      {{.ca = ca_, .cert = cert_}, "needs both"},
      {{.ca = ca_, .key = key_}, "needs both"},
      {{.ca = ca_, .cert = pipe, .key = key_}, "pipe: is not a regular file"},
      {{.ca = ca_, .cert = text, .key = key_}, "text: has no certificate"},
      {{.ca = ca_, .cert = garbage, .key = key_}, "garbage: has a malformed certificate"},
      {{.ca = ca_, .cert = cert_, .key = text}, "text: has no private key"},
      {{.ca = ca_, .cert = cert_, .key = cert_}, "c.pem: has no private key"},
      {{.ca = ca_, .cert = cert_, .key = files_.Write("e.key", EncryptedKey(pair_.key, "secret"))},
       "e.key: has no private key in PEM form without a passphrase"},
      {{.ca = ca_, .cert = cert_, .key = files_.Write("other.key", authority_.Issue({.common_name = "o"}).key)},
       "other.key: does not belong to the certificate"},
      {{.ca = ca_, .cert = cert_, .key = files_.Write("open.key", pair_.key, 0644)}, "chmod o-rwx"},
  };
  for (const auto& c : cases) {
    const absl::Status status = ReadTlsFiles(c.files).status();
    EXPECT_FALSE(status.ok()) << c.message;
    EXPECT_THAT(Message(status), HasSubstr(c.message));
  }
}

}  // namespace
}  // namespace tributary::otlp
