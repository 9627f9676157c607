#include "reducer/access/access_control.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/certificates_testing.h"
#include "base/status.h"

namespace tributary {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::string_view kReader = "reader-token-123456", kAdmin = "admin-token-1234567";

class AccessControlTest : public testing::Test {
 protected:
  AccessControlTest() { options_.is_loopback = false; }
  void UseTokens() {
    options_.token_file = files_.Write(
        "tokens", std::string(kReader) + " read,upload Grafana of team A\n" + std::string(kAdmin) + " admin\n", 0600);
  }
  void UseProxy(std::string_view range = "10.0.0.0/8") {
    options_.proxies = {IpRange::Parse(range).value()};
    options_.proxy_user_header = "X-User";
  }
  absl::StatusOr<Caller> Identify(const SignInRequest& request) {
    absl::StatusOr<std::unique_ptr<AccessControl>> access = AccessControl::Create(options_, clock_);
    EXPECT_TRUE(access.ok()) << access.status();
    return (*access)->Identify(request);
  }
  absl::StatusOr<Caller> WithToken(std::string_view authorization) {
    return Identify({.peer_address = "192.0.2.1", .authorizations = {authorization}});
  }

  TestFiles files_;
  FakeClock clock_;
  AccessControl::Options options_;
};

TEST_F(AccessControlTest, LoopbackNeedsNoSignIn) {
  options_.is_loopback = true;
  const Caller caller = Identify({.peer_address = "127.0.0.1"}).value();
  EXPECT_EQ(caller.sign_in, SignIn::kNone);
  EXPECT_EQ(caller.rights, Rights::All());
  EXPECT_TRUE(Identify({.peer_address = "127.0.0.1", .authorizations = {"Bearer whatever"}}).ok())
      << "no file says which tokens are valid";
  UseTokens();
  EXPECT_TRUE(Identify({.peer_address = "127.0.0.1"}).ok());
  EXPECT_TRUE(
      absl::IsUnauthenticated(Identify({.peer_address = "127.0.0.1", .authorizations = {"Bearer wrong"}}).status()));
}

TEST_F(AccessControlTest, OtherAddressesNeedOneOfTheConfiguredWays) {
  UseTokens();
  EXPECT_EQ(Message(Identify({.peer_address = "192.0.2.1"}).status()),
            "sign in: send a token in the header 'Authorization: Bearer TOKEN'");
  UseProxy();
  options_.certificates = true;
  const absl::Status status = Identify({.peer_address = "192.0.2.1"}).status();
  EXPECT_TRUE(absl::IsUnauthenticated(status));
  EXPECT_THAT(Message(status), HasSubstr(", or present a TLS client certificate, or come through the sign-in proxy"));
}

TEST_F(AccessControlTest, AnonymousCallersMayOnlyReadIfThereAreOtherWays) {
  options_.allow_anonymous = true;
  EXPECT_EQ(Identify({.peer_address = "192.0.2.1"})->rights, Rights::All());
  UseTokens();
  EXPECT_EQ(Identify({.peer_address = "192.0.2.1"})->rights, Rights::Of(Right::kRead));
  EXPECT_TRUE(absl::IsUnauthenticated(WithToken("Bearer wrong").status()));
}

TEST_F(AccessControlTest, TokensHaveRightsAndNames) {
  UseTokens();
  for (const std::string& authorization :
       {"Bearer " + std::string(kReader), "  bEARER \t" + std::string(kReader) + " ",
        std::string("Basic YW55OnJlYWRlci10b2tlbi0xMjM0NTY=")}) {  // any:reader-token-123456
    const absl::StatusOr<Caller> caller = WithToken(authorization);
    ASSERT_TRUE(caller.ok()) << authorization << ": " << caller.status();
    EXPECT_EQ(caller->sign_in, SignIn::kToken);
    EXPECT_EQ(caller->name, "Grafana of team A");
    EXPECT_TRUE(AccessControl::CheckRight(*caller, Right::kRead).ok());
    EXPECT_TRUE(AccessControl::CheckRight(*caller, Right::kUpload).ok());
    EXPECT_EQ(Message(AccessControl::CheckRight(*caller, Right::kAdmin)),
              "this needs the right 'admin', which 'Grafana of team A' does not have");
    EXPECT_TRUE(absl::IsPermissionDenied(AccessControl::CheckRight(*caller, Right::kSend)));
  }
  EXPECT_EQ(WithToken("Bearer " + std::string(kAdmin))->rights.Has(Right::kSend), true);
}

TEST_F(AccessControlTest, WrongTokensAreRefused) {
  UseTokens();
  UseProxy("192.0.2.0/24");
  options_.allow_anonymous = true;
  for (const std::string& authorization :
       {std::string(), std::string("Bearer"), std::string("Bearer "), std::string(kReader),
        "Bearer " + std::string(kReader) + "7", "Bearer " + std::string(kReader).substr(0, 16),
        "Token " + std::string(kReader), "Bearer " + std::string(kReader) + std::string(1, '\0'), std::string("Basic"),
        std::string("Basic ===="), std::string("Basic YQ=="), std::string("Basic Y=Q="),
        std::string("Basic \x01\x02\x03\x04"), "Basic " + std::string(100'000, 'A'),
        "Bearer " + std::string(100'000, 'A')}) {
    const absl::Status status =
        Identify({.peer_address = "192.0.2.1", .authorizations = {authorization}, .proxy_users = {"eve"}}).status();
    EXPECT_TRUE(absl::IsUnauthenticated(status)) << authorization.substr(0, 50);
    EXPECT_THAT(Message(status), Not(HasSubstr("reader-token")));
  }
  const std::string right = "Bearer " + std::string(kReader);
  EXPECT_TRUE(absl::IsUnauthenticated(Identify({.authorizations = {right, right}}).status()));
}

TEST_F(AccessControlTest, ProxiesNameTheirUsers) {
  UseProxy();
  options_.users = {AccessControl::ParseUserRights("ops-*=read,admin").value(),
                    AccessControl::ParseUserRights("ops-eve=read").value()};
  const auto by_proxy = [&](std::vector<std::string_view> users, std::string_view address = "10.1.2.3") {
    return Identify({.peer_address = address, .proxy_users = std::move(users)});
  };
  EXPECT_EQ(by_proxy({"alice"})->name, "alice");
  EXPECT_EQ(by_proxy({"alice"})->sign_in, SignIn::kProxy);
  EXPECT_EQ(by_proxy({"alice"})->rights, Rights::Of(Right::kRead));
  EXPECT_TRUE(by_proxy({"ops-eve"})->rights.Has(Right::kAdmin)) << "the first match counts";
  EXPECT_TRUE(absl::IsUnauthenticated(by_proxy({}).status()));
  EXPECT_THAT(Message(by_proxy({}).status()), HasSubstr("no header 'X-User'"));
  EXPECT_TRUE(absl::IsUnauthenticated(by_proxy({"alice", "ops-1"}).status()));
  EXPECT_TRUE(absl::IsUnauthenticated(by_proxy({""}).status()));
  EXPECT_TRUE(absl::IsUnauthenticated(by_proxy({"a\nb"}).status()));
  EXPECT_TRUE(absl::IsUnauthenticated(by_proxy({"\xff"}).status()));
  EXPECT_TRUE(absl::IsUnauthenticated(by_proxy({std::string(257, 'a')}).status()));
  EXPECT_TRUE(absl::IsUnauthenticated(by_proxy({"alice"}, "192.0.2.1").status())) << "not a proxy";
}

// Everybody on the machine of a loopback proxy would otherwise be signed in.
TEST_F(AccessControlTest, AProxyOnLoopbackMustNameItsUser) {
  options_.is_loopback = true;
  UseProxy("127.0.0.0/8");
  EXPECT_TRUE(absl::IsUnauthenticated(Identify({.peer_address = "127.0.0.1"}).status()));
  EXPECT_EQ(Identify({.peer_address = "127.0.0.1", .proxy_users = {"alice"}})->name, "alice");
}

TEST_F(AccessControlTest, CertificatesNameUsers) {
  options_.certificates = true;
  options_.users = {AccessControl::ParseUserRights("CN=ops=upload").value(),
                    AccessControl::ParseUserRights("node-*=none").value()};
  const auto identify = [&](std::vector<std::string> names) {
    const int64_t now_s = clock_.Unix().value / kNsPerSecond;
    return Identify({.certificate_names = std::move(names), .certificate_ends_s = now_s + 1});
  };
  EXPECT_EQ(identify({"host.example", "CN=ops"})->name, "CN=ops");
  EXPECT_EQ(identify({"host.example", "CN=ops"})->rights, Rights::Of(Right::kUpload));
  EXPECT_EQ(identify({"host.example"})->rights, Rights::Of(Right::kRead));
  EXPECT_EQ(identify({"host.example"})->sign_in, SignIn::kCertificate);
  EXPECT_EQ(identify({"node-1"})->rights, Rights::None());
  EXPECT_EQ(Message(AccessControl::CheckRight(*identify({"node-1"}), Right::kRead)),
            "this needs the right 'read', which 'node-1' does not have");
}

// A connection may live longer than the certificate that was checked at its begin.
TEST_F(AccessControlTest, AnExpiredCertificateSignsNobodyIn) {
  options_.certificates = true;
  const int64_t now_s = clock_.Unix().value / kNsPerSecond;
  const SignInRequest request{.certificate_names = {"ann"}, .certificate_ends_s = now_s + 10};
  EXPECT_TRUE(Identify(request).ok());
  clock_.Advance(11 * kNsPerSecond);
  for (const bool is_loopback : {false, true}) {
    options_.is_loopback = is_loopback;
    EXPECT_TRUE(absl::IsUnauthenticated(Identify(request).status()));
    EXPECT_THAT(Message(Identify(request).status()), HasSubstr("has expired"));
  }
  UseTokens();
  const std::string token = "Bearer " + std::string(kReader);
  EXPECT_TRUE(Identify({.authorizations = {token}, .certificate_names = {"ann"}, .certificate_ends_s = 1}).ok());
}

// Otherwise everyone who may use the proxy would have all rights.
TEST_F(AccessControlTest, LoopbackRightsAreNotForRequestsOfProxies) {
  options_.is_loopback = true;
  const SignInRequest request{.peer_address = "127.0.0.1", .proxy_header = "X-Forwarded-For"};
  EXPECT_TRUE(absl::IsUnauthenticated(Identify(request).status()));
  EXPECT_THAT(Message(Identify(request).status()), AllOf(HasSubstr("X-Forwarded-For"), HasSubstr("--http-proxy-from")));
  options_.allow_anonymous = true;
  EXPECT_EQ(Identify(request)->rights, Rights::All());
  UseTokens();
  EXPECT_EQ(Identify(request)->rights, Rights::Of(Right::kRead));
  options_.allow_anonymous = false;
  UseProxy("127.0.0.1");
  SignInRequest of_user = request;
  of_user.proxy_users = {"alice"};
  EXPECT_EQ(Identify(of_user)->name, "alice");
}

TEST_F(AccessControlTest, FilesOfTokensAreChecked) {
  const auto error = [&](const std::string& text, mode_t mode = 0600) {
    options_.token_file = files_.Write("tokens", text, mode);
    return Message(AccessControl::Create(options_, clock_).status());
  };
  EXPECT_THAT(error(std::string(kReader)), HasSubstr("tokens:1: a line must be TOKEN RIGHT[,RIGHT]"));
  EXPECT_THAT(error("# a comment\n" + std::string(kReader) + " write"), HasSubstr("tokens:2: a word is not a right"));
  EXPECT_THAT(error("name-of-16-letters " + std::string(kReader)),
              AllOf(HasSubstr("tokens:1: "), Not(HasSubstr(std::string(kReader)))))
      << "the columns are exchanged";
  EXPECT_THAT(error("short read"), HasSubstr("must have 16 to 4096"));
  EXPECT_THAT(error(std::string(kReader) + " read", 0644), HasSubstr("chmod"));
}

TEST_F(AccessControlTest, ChangedTokensTakeEffect) {
  UseTokens();
  const auto access = AccessControl::Create(options_, clock_).value();
  const std::string authorization = "Bearer " + std::string(kReader);
  const SignInRequest request{.authorizations = {authorization}};
  EXPECT_TRUE(access->Identify(request).ok());
  files_.Write("tokens", std::string(kAdmin) + " admin\n", 0600);
  clock_.Advance(10 * kNsPerSecond);
  EXPECT_TRUE(absl::IsUnauthenticated(access->Identify(request).status()));
}

TEST_F(AccessControlTest, RightsOfUsersAreChecked) {
  for (const std::string_view text : {"", "ops", "=read", "ops=", "ops=write", "ops=none,read", "ops=read,none"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(AccessControl::ParseUserRights(text).status())) << text;
  }
}

}  // namespace
}  // namespace tributary
