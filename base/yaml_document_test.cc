#include "base/yaml_document.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "base/directory_testing.h"

namespace tributary {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string ErrorOf(std::string_view text) {
  const auto root = ParseYaml(text);
  return root.ok() ? "" : std::string(root.status().message());
}

TEST(YamlDocument, KeepsPlacesAndKinds) {
  const auto root = ParseYaml("a: 1\nb:\n  - x\n  - 'null'\nc: ~\nd: {e: \"f\"}\n");
  ASSERT_TRUE(root.ok()) << root.status();
  ASSERT_TRUE(root->IsMap());
  ASSERT_EQ(root->children.size(), 4u);
  EXPECT_EQ(root->Find("a")->text, "1");
  EXPECT_EQ(root->Find("a")->line, 1);
  EXPECT_EQ(root->Find("a")->column, 4);
  const YamlNode& list = *root->Find("b");
  ASSERT_TRUE(list.IsSequence());
  EXPECT_EQ(list.key_line, 2);
  EXPECT_EQ(list.key_column, 1);
  EXPECT_EQ(list.children[0].line, 3);
  EXPECT_EQ(list.children[0].column, 5);
  EXPECT_TRUE(list.children[1].IsScalar());
  EXPECT_EQ(list.children[1].text, "null");
  EXPECT_TRUE(root->Find("c")->IsNull());
  EXPECT_EQ(root->Find("d")->Find("e")->text, "f");
  EXPECT_EQ(root->Find("d")->Find("g"), nullptr);
  EXPECT_EQ(AtValue(list.children[0], "no"), "line 3, column 5: no");
}

TEST(YamlDocument, AcceptsEmptyTextAndCopiesAliases) {
  for (const char* empty : {"", "\n", "# only a comment\n", "---\n", "~"}) {
    const auto root = ParseYaml(empty);
    ASSERT_TRUE(root.ok()) << root.status();
    EXPECT_TRUE(root->IsNull()) << empty;
  }
  const auto root = ParseYaml("a: &x {b: [1, 2]}\nc: *x\n");
  ASSERT_TRUE(root.ok()) << root.status();
  ASSERT_NE(root->Find("c"), nullptr);
  EXPECT_EQ(root->Find("c")->Find("b")->children.size(), 2u);
  EXPECT_EQ(root->Find("c")->key_line, 2);
}

TEST(YamlDocument, ErrorsHaveLineAndColumn) {
  EXPECT_THAT(ErrorOf("a: 1\nb: [1, 2\n"), StartsWith("line "));
  EXPECT_THAT(ErrorOf("a: 1\n\tb: 2\n"), StartsWith("line 2, column "));
  EXPECT_EQ(ErrorOf("a: 1\nb: 2\na: 3\n"), "line 3, column 1: the key 'a' stands twice");
  EXPECT_EQ(ErrorOf("a: {b: 1, b: 2}"), "line 1, column 11: the key 'b' stands twice");
  EXPECT_EQ(ErrorOf("[a]: 1\n"), "line 1, column 1: a key must be text");
  EXPECT_EQ(ErrorOf("a:\n  ~: 1\n"), "line 2, column 3: a key must be text");
  EXPECT_EQ(ErrorOf(std::string_view("a: 1\nb: \0", 9)), "line 2, column 4: the text has a NUL byte");
  EXPECT_EQ(ErrorOf("a: \xc3\xa4\nb: \xff"), "line 2, column 4: the text is not UTF-8");
  EXPECT_EQ(ErrorOf("a: &x [1, *x]"), "line 1, column 11: the alias is inside its own anchor");
  EXPECT_THAT(ErrorOf("a: *x"), StartsWith("line 1, column "));
}

TEST(YamlDocument, RefusesDeepNesting) {
  EXPECT_EQ(ErrorOf(std::string(32, '[') + std::string(32, ']')), "");
  for (const int depth : {33, 100, 100'000}) {
    EXPECT_EQ(ErrorOf(std::string(depth, '[') + std::string(depth, ']')),
              "line 1, column 33: maps and lists are nested more than 32 deep");
    EXPECT_THAT(ErrorOf(std::string(depth, '[')), StartsWith("line 1, column "));
    EXPECT_THAT(ErrorOf(std::string(depth, '{')), StartsWith("line 1, column "));
  }
  std::string block;
  for (int i = 0; i < 100; ++i) block += std::string(i, ' ') + "a:\n";
  EXPECT_EQ(ErrorOf(block), "line 33, column 33: maps and lists are nested more than 32 deep");
  std::string dashes;
  for (int i = 0; i < 1'000; ++i) dashes += "- ";
  EXPECT_THAT(ErrorOf(dashes), HasSubstr("nested more than 32 deep"));
}

TEST(YamlDocument, RefusesExplodingAliases) {
  std::string bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 12; ++i) {
    bomb += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [";
    for (int j = 0; j < 9; ++j) bomb += (j == 0 ? "*a" : ", *a") + std::to_string(i - 1);
    bomb += "]\n";
  }
  EXPECT_THAT(ErrorOf(bomb), StartsWith("line 5, column "));
  EXPECT_THAT(ErrorOf(bomb), HasSubstr("the document is too large"));
  // A long text, copied often.
  std::string copies = "a: &a " + std::string(100'000, 'x') + "\nb: [*a";
  for (int i = 0; i < 1'000; ++i) copies += ", *a";
  EXPECT_THAT(ErrorOf(copies + "]"), StartsWith("line 2, column "));
}

TEST(YamlDocument, RefusesLargeTexts) {
  EXPECT_EQ(ErrorOf(std::string((256 << 10) + 1, ' ')), "the text has more than 262144 bytes");
  std::string many = "a: [0";
  for (int i = 0; i < 30'000; ++i) many += ",0";
  EXPECT_THAT(ErrorOf(many + "]"), HasSubstr("the document is too large"));
}

TEST(YamlDocument, ReadsFiles) {
  const TestDirectory directory;
  const std::string path = directory.path() + "/a.yaml";
  std::ofstream(path) << "a: 1\n";
  EXPECT_EQ(*ReadYamlText(path), "a: 1\n");
  EXPECT_EQ(ReadYamlText(directory.path()).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(ReadYamlText(path + "x").status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(ErrorOf(*ReadYamlText("/dev/zero")), "the text has more than 262144 bytes");
}

}  // namespace
}  // namespace tributary
