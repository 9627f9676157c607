#include "base/docs/config_file.h"

#include <gtest/gtest.h>
#include <yaml-cpp/yaml.h>

#include "base/docs/docs_testing.h"
#include "base/golden_file_testing.h"

namespace tributary::docs {
namespace {

TEST(ConfigFile, MatchesTheGoldenFile) {
  ExpectFile(std::filesystem::path(TRIBUTARY_SOURCE_DIR) / "base/docs/testdata/odd-program.yaml",
             ConfigFile(OddProgram()));
}

TEST(ConfigFile, SetsNothingByDefault) { EXPECT_TRUE(YAML::Load(ConfigFile(OddProgram())).IsNull()); }

TEST(ConfigFile, ShowsNoSecret) { EXPECT_EQ(ConfigFile(OddProgram()).find("geheim"), std::string::npos); }

TEST(ConfigFile, BreaksLongTextBetweenWords) {
  Command program{.name = "x", .options = {{.flags = {"--a"}, .help = std::string(250, 'w') + " v", .key = "a"}}};
  EXPECT_NE(ConfigFile(program).find("# " + std::string(250, 'w') + "\n# v\n#a: \"\"\n"), std::string::npos);
}

}  // namespace
}  // namespace tributary::docs
