#include "kernel-collector/distribution/variables.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "base/status.h"

namespace tributary {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

const Options::Environment kEnvironment = {{"A", "alpha"},
                                           {"RATE", "20"},
                                           {"YES", "true"},
                                           {"EMPTY", ""},
                                           {"LIST", "[x, y]"},
                                           {"MAP", "{k: v}"},
                                           {"NULL", "~"},
                                           {"NAME", "A"},
                                           {"NESTED", "<${A}>"},
                                           {"OWN", "${env:OWN}"},
                                           {"DOLLARS", "a$$b"},
                                           {"QUOTED", "'20'"},
                                           {"BLANK", " 7 # x"},
                                           {"BAD_YAML", "[a: 'b"},
                                           {"DEEP", "[${env:DEEP}]"},
                                           {"LIST2", "['${env:LIST}', z]"}};

struct Expanded {
  absl::Status status;
  YamlNode root;
  std::vector<std::string> warnings;

  const YamlNode& value() const { return *root.Find("v"); }
};

// Expands the value of the key `v` in the second line.
Expanded Expand(const std::string& value, const Options::Environment& environment = kEnvironment) {
  Expanded out;
  absl::StatusOr<YamlNode> root = ParseYaml("x: 1\nv: " + value + "\n");
  EXPECT_TRUE(root.ok()) << root.status();
  out.root = *std::move(root);
  out.status = ExpandVariables(environment, &out.root, &out.warnings);
  return out;
}

std::string TextOf(const std::string& value) {
  const Expanded expanded = Expand(value);
  EXPECT_TRUE(expanded.status.ok()) << value << ": " << expanded.status;
  EXPECT_TRUE(expanded.value().IsScalar()) << value;
  return expanded.value().text;
}

std::string ErrorOf(const std::string& value) { return std::string(Expand(value).status.message()); }

// The expectations are those of the Collector's confmap (expand.go) and of its provider env.
TEST(Variables, AreExpandedAsInTheCollector) {
  for (const auto& [value, expected] :
       std::initializer_list<std::pair<const char*, const char*>>{{"${env:A}", "alpha"},
                                                                  {"${A}", "alpha"},
                                                                  {"'a ${env:A}-${A} b'", "a alpha-alpha b"},
                                                                  {"${env:UNSET:-x y}", "x y"},
                                                                  {"'${env:UNSET:-}'", ""},
                                                                  {"${env:A:-x}", "alpha"},
                                                                  {"'<${env:EMPTY:-x}>'", "<>"},
                                                                  {"'<${env:UNSET}>'", "<>"},
                                                                  {"${env:${env:NAME}}", "alpha"},
                                                                  {"${env:UNSET:-${env:A}}", "alpha"},
                                                                  {"${env:NESTED}", "<alpha>"},
                                                                  {"$${env:A}", "${env:A}"},
                                                                  {"$$$${env:A}", "$${env:A}"},
                                                                  {"$$${env:A}", "$alpha"},
                                                                  {"'$A $ a$b $$ }${'", "$A $ a$b $ }${"},
                                                                  {"'$${A} ${A}'", "${A} alpha"},
                                                                  {"${env:DOLLARS}", "a$b"},
                                                                  {"${env:RATE}", "20"},
                                                                  {"${env:BLANK}", "7"},
                                                                  {"${env:YES}", "true"},
                                                                  {"${env:QUOTED}", "'20'"},
                                                                  {"${env:BAD_YAML}", "[a: 'b"},
                                                                  {"'x${env:LIST}'", "x[x, y]"}}) {
    EXPECT_EQ(TextOf(value), expected) << value;
  }
}

TEST(Variables, AWholeValueHasTheTypeOfItsYaml) {
  const Expanded list = Expand("${env:LIST}");
  ASSERT_TRUE(list.value().IsSequence());
  EXPECT_THAT(list.value().children, SizeIs(2));
  EXPECT_EQ(list.value().children[1].text, "y");
  EXPECT_EQ(list.value().children[1].line, 2);
  EXPECT_EQ(list.value().children[1].column, 4);
  EXPECT_EQ(list.value().text, "[x, y]");  // for a key whose value is a text
  EXPECT_EQ(Expand("${env:MAP}").value().Find("k")->text, "v");
  for (const char* empty : {"${env:NULL}", "${env:EMPTY}", "${env:UNSET}"}) {
    EXPECT_TRUE(Expand(empty).value().IsNull()) << empty;
  }
  // An element is one value, whatever its variable contains.
  const Expanded nested = Expand("${env:LIST2}");
  ASSERT_THAT(nested.value().children, SizeIs(2));
  EXPECT_TRUE(nested.value().children[0].IsSequence());
  EXPECT_TRUE(Expand("{a: [1, '${env:RATE}']}").value().Find("a")->children[1].IsScalar());
}

TEST(Variables, WarnsOfVariablesThatAreNotSet) {
  const Expanded expanded = Expand("'${env:UNSET} ${env:EMPTY} ${env:UNSET2:-}'");
  EXPECT_THAT(expanded.warnings, ElementsAre("line 2: the environment variable UNSET is not set; its value is empty"));
  EXPECT_THAT(Expand("${A}").warnings, IsEmpty());
}

TEST(Variables, KeysStayAsTheyAre) {
  const Expanded expanded = Expand("{'${env:A}': '${env:A}'}");
  EXPECT_EQ(expanded.value().children[0].key, "${env:A}");
  EXPECT_EQ(expanded.value().children[0].text, "alpha");
}

TEST(Variables, OtherSourcesAreErrors) {
  for (const char* value : {"${file:/etc/secret}", "'x ${yaml:a}'", "${http://h/x}", "${https://h}", "${A:-x}"}) {
    EXPECT_THAT(ErrorOf(value), HasSubstr("line 2, column 4: only environment variables are expanded")) << value;
  }
  for (const char* value : {"${}", "${env:}", "${env:1A}", "${env:A-B}", "'${env:A B}'", "${env::-x}"}) {
    EXPECT_THAT(ErrorOf(value), HasSubstr("line 2, column 4: the name of an environment variable must be")) << value;
  }
}

TEST(Variables, EndlessAndLargeValuesAreErrors) {
  EXPECT_EQ(ErrorOf("${env:OWN}"), "line 2, column 4: a variable contains itself");
  EXPECT_EQ(ErrorOf("'x${env:OWN}'"), "line 2, column 4: a variable contains itself");
  const std::string too_large = "line 2, column 4: with the values of its variables, the document is too large";
  EXPECT_EQ(ErrorOf("${env:DEEP}"), "line 2, column 4: a variable contains itself");
  // Each doubles the one before.
  Options::Environment doubling = {{"V0", std::string(1'000, 'x')}};
  for (int i = 1; i < 40; ++i) {
    const std::string before = fmt::format("${{env:V{}}}", i - 1);
    doubling.emplace(fmt::format("V{}", i), before + before);
    doubling.emplace(fmt::format("L{}", i), fmt::format("[{0}, {0}]", fmt::format("'${{env:L{}}}'", i - 1)));
  }
  doubling.emplace("L0", "x");
  EXPECT_EQ(ToStd(Expand("${env:V39}", doubling).status.message()), too_large);
  EXPECT_EQ(ToStd(Expand("${env:L20}", doubling).status.message()), too_large);
  // Many values that are large only for a while.
  const Options::Environment large = {{"BIG", std::string(100'000, 'x')}, {"A", "a"}};
  std::string list = "['${env:A:-${env:BIG}}'";
  for (int i = 0; i < 1'000; ++i) list += ", '${env:A:-${env:BIG}}'";
  EXPECT_THAT(ToStd(Expand(list + "]", large).status.message()), HasSubstr("the document is too large"));
}

TEST(Variables, MessagesDoNotContainValues) {
  const Options::Environment secret = {{"S", "geheim ${file:geheim} ${geheim"}, {"T", "${env:geheim-${S}}"}};
  for (const char* value : {"${env:S}", "${env:T}", "${${S}}"}) {
    const Expanded expanded = Expand(value, secret);
    EXPECT_FALSE(expanded.status.ok()) << value;
    EXPECT_THAT(ToStd(expanded.status.message()), Not(HasSubstr("geheim"))) << value;
  }
}

TEST(Variables, WarningsDoNotContainValues) {
  const Options::Environment secret = {{"S", "geheim"},
                                       {"T", "x ${geheim} ${env:geheim}"},
                                       {"L", "['${geheim}', {k: '${env:geheim}'}]"},
                                       {"W", "${geheim}"}};
  const std::string hidden = "line 2: a variable inside a variable is not set; its value is empty";
  EXPECT_THAT(Expand("'${env:${S}}'", secret).warnings, ElementsAre(hidden));
  EXPECT_THAT(Expand("'<${T}>'", secret).warnings, ElementsAre(hidden, hidden));
  EXPECT_THAT(Expand("${L}", secret).warnings, ElementsAre(hidden, hidden));
  EXPECT_THAT(Expand("${W}", secret).warnings, ElementsAre(hidden));
  // A name that is written in the file is shown, wherever it stands.
  EXPECT_THAT(Expand("'${S} ${env:UNSET}'", secret).warnings,
              ElementsAre("line 2: the environment variable UNSET is not set; its value is empty"));
}

}  // namespace
}  // namespace tributary
