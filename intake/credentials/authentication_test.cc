#include "intake/credentials/authentication.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "base/certificates_testing.h"
#include "base/status.h"

namespace tributary::intake {
namespace {

using testing::HasSubstr;
using testing::Not;

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

TEST_F(TokenFileTest, ErrorsNameTheFileAndNeverAToken) {
  const std::string secret(20, 'S');
  for (const std::string& text : {std::string(), std::string("# none\n"), std::string("short\n"), secret + " a b\n",
                                  secret + "\n\x01" + secret, std::string(5000, 'S') + "\n"}) {
    absl::Status status = Load(text).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << text;
    EXPECT_THAT(Message(status), HasSubstr("tokens"));
    EXPECT_THAT(Message(status), Not(HasSubstr("SSSS")));
  }
  EXPECT_THAT(Message(Load(secret + "\nshort\n").status()), HasSubstr("tokens:2: a token must have 16"));
  EXPECT_THAT(Message(Load(secret, 0644).status()), HasSubstr("chmod"));
  std::string many;
  for (size_t i = 0; i <= TokenFile::kLinesMax; ++i) many += fmt::format("token-{:020}\n", i);
  EXPECT_THAT(Message(Load(many).status()), HasSubstr("more than 10000"));
}

TEST_F(TokenFileTest, IsReadAgainWhenItChangesAndOnlyThen) {
  auto tokens = Load(kAny);
  ASSERT_TRUE(tokens.ok());
  clock_.Advance(kNsPerSecond);
  EXPECT_TRUE((*tokens)->Check(kAny, "n").ok());
  files_.Write("tokens", kWeb);
  EXPECT_TRUE((*tokens)->Check(kAny, "n").ok()) << "not looked at yet";
  clock_.Advance(kNsPerSecond);
  EXPECT_FALSE((*tokens)->Check(kAny, "n").ok());
  EXPECT_TRUE((*tokens)->Check(kWeb, "n").ok());
  files_.Write("tokens", kAny, 0644);
  clock_.Advance(kNsPerSecond);
  EXPECT_TRUE((*tokens)->Check(kWeb, "n").ok()) << "the last good ones stay";
  files_.Write("tokens", kAny);
  clock_.Advance(kNsPerSecond);
  EXPECT_TRUE((*tokens)->Check(kAny, "n").ok());
}

TEST_F(TokenFileTest, ReadTokenTakesTheFirstToken) {
  EXPECT_EQ(*ReadToken(files_.Write("t", std::string("# mine\n") + kAny + "\n")), kAny);
  EXPECT_EQ(*ReadToken(files_.Write("t", std::string(kWeb) + " web-*\n" + kAny)), kWeb);
  EXPECT_TRUE(absl::IsInvalidArgument(ReadToken(files_.Write("t", "\n")).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(ReadToken(files_.Write("t", kAny, 0644)).status()));
  EXPECT_TRUE(absl::IsNotFound(ReadToken(files_.Path("none")).status()));
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
