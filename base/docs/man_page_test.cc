#include "base/docs/man_page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/docs/docs_testing.h"
#include "base/docs/print_docs.h"
#include "base/docs/roff.h"
#include "base/golden_file_testing.h"
#include "base/version.h"

namespace tributary::docs {
namespace {

using ::testing::HasSubstr;

const std::filesystem::path kTestData = std::filesystem::path(TRIBUTARY_SOURCE_DIR) / "base/docs/testdata";

// Removes the version, which would change the golden file with every release.
std::string WithoutVersion(std::string page) {
  const std::string version(kVersion);
  if (size_t at = page.find(version); at != page.npos) page.replace(at, version.size(), "VERSION");
  return page;
}

TEST(Roff, EscapesRoffSyntax) {
  const struct {
    const char *text, *line;
  } cases[] = {
      {"plain", "plain"},
      {".TH", "\\&.TH"},
      {"a.b", "a.b"},
      {"'br", "\\(aqbr"},
      {"a\\fBb", "a\\(rsfBb"},
      {"say \"no\"", "say \\(dqno\\(dq"},
      {"--a-b", "\\-\\-a\\-b"},
      {"~`^", "\\(ti\\(ga\\(ha"},
      {"[x]", "[x]"},
      {"a\n.b", "a .b"},
      {"…€", "\\[u2026]\\[u20AC]"},
      {"𝄞", "\\[u1D11E]"},
      {"\xff", "\\[uFFFD]"},
      {"", ""},
  };
  for (const auto& c : cases) EXPECT_EQ(RoffLine(c.text), c.line);
}

TEST(ManPage, ProgramPageMatchesTheGoldenFile) {
  ExpectFile(kTestData / "odd-program.8", WithoutVersion(ManPage(OddProgram(), OddManual(), "2026-01-02")));
}

TEST(ManPage, ShowsNoSecret) {
  EXPECT_EQ(ManPage(OddProgram(), OddManual(), "2026-01-02").find("geheim"), std::string::npos);
}

TEST(ManPage, CommandPageMatchesTheGoldenFile) {
  const Command program = OddProgram();
  const Command* push = FindCommand(program, "files-push");
  ASSERT_NE(push, nullptr);
  EXPECT_EQ(FindCommand(program, "files push"), push);
  EXPECT_EQ(FindCommand(program, ""), nullptr);
  ExpectFile(kTestData / "odd-program-files-push.8",
             WithoutVersion(CommandManPage(program, *push, "files push", OddManual(), "2026-01-02")));
}

TEST(PrintDocs, TakesTheDateOfPagesFromSourceDateEpoch) {
  auto page = Print("man", "", OddProgram(), OddManual(), {{"SOURCE_DATE_EPOCH", "86400"}});
  ASSERT_TRUE(page.ok());
  EXPECT_THAT(*page, HasSubstr(".TH ODD\\-PROGRAM 8 1970-01-02 "));
  EXPECT_EQ(*Print("man", "", OddProgram(), OddManual(), {}),
            *Print("man", "", OddProgram(), OddManual(), {{"SOURCE_DATE_EPOCH", ""}}));
  for (const char* bad : {"x", "1x", "99999999999999999999", "9223372036854775807"}) {
    EXPECT_THAT(Print("man", "", OddProgram(), OddManual(), {{"SOURCE_DATE_EPOCH", bad}}).status().message(),
                HasSubstr("SOURCE_DATE_EPOCH: must be a number of seconds"))
        << bad;
  }
}

TEST(PrintDocs, RefusesUnknownDocumentsWithAReason) {
  const auto message = [](std::string_view format, std::string_view command) {
    return std::string(Print(format, command, OddProgram(), OddManual(), {}).status().message());
  };
  EXPECT_THAT(message("man", "nonsense"),
              HasSubstr("there is no command 'nonsense'; odd-program --help lists the commands"));
  EXPECT_THAT(message("bash", "files"), HasSubstr("leave out 'files'"));
  EXPECT_THAT(message("html", ""), HasSubstr("must be man, bash, zsh, fish or yaml"));
  Command without_file = OddProgram();
  for (Option& option : without_file.options) option.key.clear();
  EXPECT_THAT(Print("yaml", "", without_file, OddManual(), {}).status().message(),
              HasSubstr("odd-program reads no configuration file"));
}

}  // namespace
}  // namespace tributary::docs
