#include "intake/credentials/authentication.h"

#include <gmock/gmock.h>

#include "base/certificates_testing.h"
#include "base/status.h"

namespace tributary::intake {
namespace {

using testing::HasSubstr;

constexpr char kAny[] = "any-node-token-1234";
constexpr char kWeb[] = "web-node-token-1234";

class TokenFileTest : public testing::Test {
 protected:
  absl::StatusOr<std::unique_ptr<TokenFile>> Load(const std::string& text, mode_t mode = 0600) {
    return TokenFile::Load(files_.Write("tokens", text, mode), clock_, kNsPerSecond);
  }
  TestFiles files_;
  FakeClock clock_;
};

TEST_F(TokenFileTest, ChecksTokensAndTheirNodes) {
  auto tokens = Load(std::string("# of the fleet\n\n") + kAny + "\r\n  " + kWeb + "\tweb-*\n" + kWeb + " edge-?\n");
  ASSERT_TRUE(tokens.ok()) << tokens.status();
  EXPECT_TRUE((*tokens)->Check(kAny, "anybody").ok());
  EXPECT_TRUE((*tokens)->Check(kWeb, "web-12").ok());
  EXPECT_TRUE((*tokens)->Check(kWeb, "edge-1").ok());
  EXPECT_TRUE(absl::IsPermissionDenied((*tokens)->Check(kWeb, "db-1")));
  EXPECT_TRUE(absl::IsUnauthenticated((*tokens)->Check("", "web-1")));
  EXPECT_TRUE(absl::IsUnauthenticated((*tokens)->Check(std::string(kAny) + "5", "web-1")));
  EXPECT_TRUE(absl::IsUnauthenticated((*tokens)->Check(std::string(kAny).substr(0, 18), "web-1")));
  EXPECT_TRUE(absl::IsUnauthenticated((*tokens)->Check(std::string(kAny) + " ", "web-1")));
}

TEST_F(TokenFileTest, LinesHaveAtMostOnePattern) {
  EXPECT_THAT(Message(Load(std::string(kAny) + " a b\n").status()),
              HasSubstr("tokens:1: a line must be TOKEN or TOKEN NODE-ID-PATTERN"));
}

TEST(Security, CertificatesNameNodes) {
  EXPECT_TRUE(Security::CheckNames({"web-1.example", "node:web-1", "web-1"}, "web-1").ok());
  EXPECT_TRUE(Security::CheckNames({"*.example"}, "web-1.example").ok());
  absl::Status status = Security::CheckNames({"web-1", "a", "b", "c", "d"}, "web-2");
  EXPECT_TRUE(absl::IsPermissionDenied(status));
  EXPECT_THAT(Message(status), HasSubstr("for web-1, a, b, c, …, not for this node"));
  EXPECT_THAT(Message(Security::CheckNames({}, "web-2")), HasSubstr("no name"));
}

}  // namespace
}  // namespace tributary::intake
