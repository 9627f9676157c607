#include "base/token_table.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "base/certificates_testing.h"
#include "base/status.h"

namespace tributary {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr char kFirst[] = "first-token-of-test", kSecond[] = "second-token-of-test";

absl::Status CheckText(std::string_view text) {
  return text == "bad" ? Error(absl::StatusCode::kInvalidArgument, "bad text") : absl::OkStatus();
}

class TokenTableTest : public testing::Test {
 protected:
  absl::StatusOr<std::unique_ptr<TokenTable>> Load(const std::string& text, mode_t mode = 0600) {
    return TokenTable::Load(files_.Write("tokens", text, mode), "test tokens", CheckText, clock_, kNsPerSecond);
  }
  static std::vector<std::string> Texts(const TokenTable& table, std::string_view token) {
    std::vector<std::string> texts;
    table.Find(token, [&](std::string_view text) { texts.emplace_back(text); });
    return texts;
  }

  TestFiles files_;
  FakeClock clock_;
};

TEST_F(TokenTableTest, FindsEachLineOfAToken) {
  const auto table =
      Load(fmt::format("# a comment\n\n{}\r\n  {}\tone two \n{} three", kFirst, kSecond, kSecond)).value();
  EXPECT_THAT(Texts(*table, kFirst), ElementsAre(""));
  EXPECT_THAT(Texts(*table, kSecond), ElementsAre("one two", "three"));
  for (const std::string& token :
       {std::string(), std::string(kFirst) + "5", std::string(kFirst).substr(0, 18), std::string(kFirst) + " "}) {
    EXPECT_THAT(Texts(*table, token), IsEmpty()) << token;
  }
}

TEST_F(TokenTableTest, ErrorsNameTheFileAndNeverAToken) {
  const std::string secret(20, 'S');
  for (const std::string& text : {std::string(), std::string("# none\n"), std::string("short\n"), secret + " bad\n",
                                  secret + "\n\x01" + secret, std::string(5000, 'S') + "\n"}) {
    const absl::Status status = Load(text).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << text;
    EXPECT_THAT(Message(status), HasSubstr("tokens"));
    EXPECT_THAT(Message(status), Not(HasSubstr("SSSS")));
  }
  EXPECT_THAT(Message(Load(secret + "\nshort\n").status()), HasSubstr("tokens:2: a token must have 16"));
  EXPECT_THAT(Message(Load(secret + " bad").status()), HasSubstr("tokens:1: bad text"));
  EXPECT_THAT(Message(Load(secret, 0644).status()), HasSubstr("chmod"));
  std::string many;
  for (size_t i = 0; i <= TokenTable::kLinesMax; ++i) many += fmt::format("token-{:020}\n", i);
  EXPECT_THAT(Message(Load(many).status()), HasSubstr("more than 10000"));
}

TEST_F(TokenTableTest, IsReadAgainWhenItChangesAndOnlyThen) {
  const auto table = Load(kFirst).value();
  const auto has = [&](const char* token) {
    table->ReloadIfChanged();
    return !Texts(*table, token).empty();
  };
  clock_.Advance(kNsPerSecond);
  EXPECT_TRUE(has(kFirst));
  files_.Write("tokens", kSecond);
  EXPECT_TRUE(has(kFirst)) << "not looked at yet";
  clock_.Advance(kNsPerSecond);
  EXPECT_FALSE(has(kFirst));
  EXPECT_TRUE(has(kSecond));
  files_.Write("tokens", kFirst, 0644);
  clock_.Advance(kNsPerSecond);
  EXPECT_TRUE(has(kSecond)) << "the last good ones stay";
  files_.Write("tokens", kFirst);
  clock_.Advance(kNsPerSecond);
  EXPECT_TRUE(has(kFirst));
}

TEST_F(TokenTableTest, ReadTokenTakesTheFirstToken) {
  EXPECT_EQ(*ReadToken(files_.Write("t", fmt::format("# mine\n{}\n", kFirst))), kFirst);
  EXPECT_EQ(*ReadToken(files_.Write("t", fmt::format("{} web-*\n{}", kSecond, kFirst))), kSecond);
  EXPECT_TRUE(absl::IsInvalidArgument(ReadToken(files_.Write("t", "\n")).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(ReadToken(files_.Write("t", kFirst, 0644)).status()));
  EXPECT_TRUE(absl::IsNotFound(ReadToken(files_.Path("none")).status()));
}

}  // namespace
}  // namespace tributary
