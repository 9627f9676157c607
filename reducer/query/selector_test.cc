#include "reducer/query/selector.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/status.h"
#include "reducer/metadata/attribute_names.h"

namespace tributary {
namespace {

using ::testing::HasSubstr;

std::string ParseError(std::string_view text) {
  absl::StatusOr<Selector> selector = Selector::Parse(text);
  EXPECT_FALSE(selector.ok()) << text;
  if (selector.ok()) return "";
  EXPECT_EQ(selector.status().code(), absl::StatusCode::kInvalidArgument);
  return Message(selector.status());
}

TEST(Selector, EmptySelectsAll) {
  for (std::string_view text : {"", "  ", "{}", " { } "}) {
    absl::StatusOr<Selector> selector = Selector::Parse(text);
    ASSERT_TRUE(selector.ok()) << selector.status();
    EXPECT_TRUE(selector->matchers().empty());
  }
}

TEST(Selector, ReadsEveryOperator) {
  absl::StatusOr<Selector> selector =
      Selector::Parse(R"({process.pid="1", thread_name != "x" ,container_id=~"ab.*",host.name!~"c|d",})");
  ASSERT_TRUE(selector.ok()) << selector.status();
  ASSERT_EQ(selector->matchers().size(), 4u);
  EXPECT_EQ(selector->matchers()[0].label, "process_pid");
  EXPECT_EQ(selector->matchers()[0].op, Selector::Op::kEqual);
  EXPECT_EQ(selector->matchers()[1].op, Selector::Op::kNotEqual);
  EXPECT_EQ(selector->matchers()[2].op, Selector::Op::kMatches);
  EXPECT_EQ(selector->matchers()[3].op, Selector::Op::kNotMatches);
  EXPECT_TRUE(selector->Uses("thread_name"));
  EXPECT_FALSE(selector->Uses("thread_id"));
}

TEST(Selector, MatchesWholeValues) {
  absl::StatusOr<Selector> selector = Selector::Parse(R"({process_command=~"ab.*",process_command!~"abc"})");
  ASSERT_TRUE(selector.ok());
  const Selector::Matcher& positive = selector->matchers()[0];
  EXPECT_TRUE(positive.Holds("ab"));
  EXPECT_TRUE(positive.Holds("abc\nd"));
  EXPECT_FALSE(positive.Holds("xab"));
  const Selector::Matcher& negative = selector->matchers()[1];
  EXPECT_FALSE(negative.Holds("abc"));
  EXPECT_TRUE(negative.Holds("abcd"));
}

TEST(Selector, UnescapesValues) {
  absl::StatusOr<Selector> selector = Selector::Parse(R"({process_command="a\"b\\c\n<\t"})");
  ASSERT_TRUE(selector.ok()) << selector.status();
  EXPECT_EQ(selector->matchers()[0].value, "a\"b\\c\n<\t");
  EXPECT_TRUE(selector->matchers()[0].Holds("a\"b\\c\n<\t"));
}

TEST(Selector, ErrorsNameThePositionAndTheExpectedText) {
  EXPECT_THAT(ParseError("process_pid=\"1\""), HasSubstr("expected '{' at byte 0"));
  EXPECT_THAT(ParseError("{"), HasSubstr("expected a label name at byte 1, found the end"));
  EXPECT_THAT(ParseError("{process_pid}"), HasSubstr("expected an operator"));
  EXPECT_THAT(ParseError("{process_pid=1}"), HasSubstr("expected a value in double quotes at byte 13"));
  EXPECT_THAT(ParseError("{process_pid=\"1}"), HasSubstr("closing '\"'"));
  EXPECT_THAT(ParseError("{process_pid=\"1\" host_id=\"2\"}"), HasSubstr("expected ',' or '}' at byte 17"));
  EXPECT_THAT(ParseError("{process_pid=\"1\"}x"), HasSubstr("expected the end at byte 17"));
  EXPECT_THAT(ParseError("{process_pid!\"1\"}"), HasSubstr("'!=' or '!~'"));
  EXPECT_THAT(ParseError("{process_pid=~\"\\d\"}"), HasSubstr("a backslash itself is written \\\\"));
  EXPECT_THAT(ParseError("{,}"), HasSubstr("a label name"));
}

TEST(Selector, ErrorsPointAtTheCharacter) {
  EXPECT_THAT(ParseError("{process_pid=\"1\" host_id=\"2\"}"), HasSubstr(R"(: {process_pid="1"  --> host_id="2"})"));
  EXPECT_THAT(ParseError("{"), HasSubstr("found the end: { --> "));
  EXPECT_THAT(ParseError("{process_pid=~\"a(b\"}"), HasSubstr(R"(at byte 15: missing )"));
  EXPECT_THAT(ParseError(R"({process_pid=~"\\d\\d[z-a]"})"), HasSubstr(R"({process_pid=~"\\d\\d[ --> z-a]"})"));
  const std::string far = "{process_pid=\"" + std::string(500, 'x') + "\x1b\" \x1b" + std::string(500, 'y');
  EXPECT_THAT(ParseError(far),
              HasSubstr(": ..." + std::string(37, 'x') + R"(\x1b"  --> \x1b)" + std::string(39, 'y') + "..."));
}

TEST(Selector, RefusesRegularExpressionsThatExplode) {
  for (std::string_view regex : {"(a{1000}){1000}", "((a{100}){100}){100}", "\\\\pL{100}", "(x{30}){30}{30}",
                                 "((((a?){9}){9}){9}){9}", "[^a]{1000}[^b]{1000}"}) {
    const std::string error = ParseError("{process_pid=~\"" + std::string(regex) + "\"}");
    EXPECT_THAT(error, HasSubstr("regular expression at byte")) << regex;
    EXPECT_LT(error.size(), 500u);
  }
  EXPECT_TRUE(Selector::Parse("{process_pid=~\"[a-z0-9-]{1,63}|(a|b|c)+.*x{200}\"}").ok());
}

TEST(Selector, UnknownLabelNamesTheNearest) {
  const absl::StatusOr<Selector> selector = Selector::Parse("{host_id=\"1\",proces_pid=\"1\"}");
  ASSERT_TRUE(selector.ok());
  AttributeNames names;
  const absl::Status unknown = selector->CheckNames(names);
  EXPECT_EQ(unknown.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(Message(unknown), HasSubstr("'proces_pid' at byte 13; the nearest is 'process.pid'"));
  names.Learn({{"proces.pid", ""}});
  EXPECT_TRUE(selector->CheckNames(names).ok());
  (void)Selector::Parse("{" + std::string(8000, 'x') + "=\"1\"}")->CheckNames(names);  // bounded work
}

TEST(Selector, RefusesBadAndHugeExpressions) {
  EXPECT_THAT(ParseError("{process_pid=~\"(\"}"), HasSubstr("missing"));
  EXPECT_THAT(ParseError("{process_pid=~\"" + std::string(1025, 'a') + "\"}"), HasSubstr("longer than 1024"));
  // Expands to more memory than the budget.
  EXPECT_THAT(ParseError("{process_pid=~\"((a{100}){100}){100}\"}"), HasSubstr("regular expression"));
  EXPECT_THAT(ParseError(std::string(10'000, '{')), HasSubstr("longer than 8192"));
}

TEST(Selector, AtMost32Matchers) {
  auto with = [](int n) {
    std::string text = "{";
    for (int i = 0; i < n; ++i) text += "host_id=\"a\",";
    return text + "}";
  };
  EXPECT_TRUE(Selector::Parse(with(32)).ok());
  EXPECT_THAT(ParseError(with(33)), HasSubstr("more than 32"));
}

TEST(Selector, ControlBytesInErrorsAreEscaped) { EXPECT_THAT(ParseError("{\x01}"), HasSubstr("\\x01")); }

}  // namespace
}  // namespace tributary
