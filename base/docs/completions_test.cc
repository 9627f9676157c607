#include "base/docs/completions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/docs/docs_testing.h"
#include "base/golden_file_testing.h"

namespace tributary::docs {
namespace {

using ::testing::ElementsAre;

const std::filesystem::path kTestData = std::filesystem::path(TRIBUTARY_SOURCE_DIR) / "base/docs/testdata";

// test/docs_gen_test.py checks the answers of these scripts in their shells.
TEST(Completions, MatchTheGoldenFiles) {
  ExpectFile(kTestData / "odd-program.bash", BashCompletion(OddProgram()));
  ExpectFile(kTestData / "odd-program.zsh", ZshCompletion(OddProgram()));
  ExpectFile(kTestData / "odd-program.fish", FishCompletion(OddProgram()));
}

TEST(Completions, DistinguishKindsOfValues) {
  const Command program = OddProgram();
  EXPECT_EQ(KindOfValue(program.options[0]), ValueKind::kWords);
  EXPECT_EQ(KindOfValue(program.options[1]), ValueKind::kFile);
  EXPECT_EQ(KindOfValue(program.options[2]), ValueKind::kDirectory);
  EXPECT_EQ(KindOfValue(program.options[4]), ValueKind::kNone);
  EXPECT_THAT(FlagsWithValues(program),
              ElementsAre("--cert", "--dir", "--export", "--format", "--level", "--token", "-l"));
}

TEST(Completions, QuoteForTheShell) {
  EXPECT_EQ(ShellQuoted("a"), "'a'");
  EXPECT_EQ(ShellQuoted("it's $x"), "'it'\\''s $x'");
}

}  // namespace
}  // namespace tributary::docs
