#include "reducer/web/params.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/status.h"
#include "reducer/web/host_check.h"

namespace tributary {
namespace {

using ::testing::HasSubstr;

constexpr UnixNs kNow{1'763'710'000'123 * kNsPerMs + 456};

TEST(ParseQuery, DefaultsToTheLastQuarterOfAnHourOfCpu) {
  absl::StatusOr<QueryRequest> request = ParseQuery({}, kNow);
  ASSERT_TRUE(request.ok());
  EXPECT_EQ(request->range.to.value - request->range.from.value, 15 * kNsPerMinute);
  EXPECT_EQ(request->type, "cpu");
  EXPECT_EQ(request->frames, FrameNames::kFunction);
  EXPECT_TRUE(request->selector.matchers().empty());
}

TEST(ParseQuery, TakesFramesLinesAndLanguages) {
  auto parse = [](Params params) { return ParseQuery(params, kNow).value(); };
  EXPECT_FALSE(parse({}).all_frames || parse({}).lines || parse({}).languages != 0);
  EXPECT_TRUE(parse({{"frames", "all"}}).all_frames);
  EXPECT_EQ(parse({{"frames", "all"}}).frames, FrameNames::kFunction);
  EXPECT_FALSE(parse({{"frames", "function"}}).all_frames);
  EXPECT_TRUE(parse({{"lines", "1"}}).lines);
  auto bit = [](FrameKind kind) { return 1u << static_cast<uint32_t>(kind); };
  EXPECT_EQ(parse({{"language", "python"}}).languages, bit(FrameKind::kPython));
  EXPECT_EQ(parse({{"language", "go,native"}}).languages,
            bit(FrameKind::kGo) | bit(FrameKind::kNative) | bit(FrameKind::kInterpreter));
}

TEST(ParseQuery, ErrorsNameTheParameter) {
  auto error = [](Params params) { return Message(ParseQuery(params, kNow).status()); };
  EXPECT_THAT(error({{"from", "x"}}), HasSubstr("from: 'x' is not a time"));
  EXPECT_THAT(error({{"to", "-5"}}), HasSubstr("to: '-5' is not a time"));
  EXPECT_THAT(error({{"frames", "lines"}}), HasSubstr("frames: 'lines' must be function, all or address"));
  EXPECT_THAT(error({{"lines", "2"}}), HasSubstr("lines: '2' is not a number from 0 to 1"));
  EXPECT_THAT(error({{"language", "go,cobol"}}),
              HasSubstr("language: 'cobol' must be a list of these languages, separated by commas: go, jit, kernel, "
                        "native, python, unknown"));
  EXPECT_THAT(error({{"language", ",go"}}), HasSubstr("language: ''"));
  EXPECT_THAT(error({{"query", "{"}}), HasSubstr("selector"));
  EXPECT_THAT(error({{"from", std::string(100'000, '\x1b')}}), ::testing::SizeIs(::testing::Lt(1000u)));
}

TEST(ParseNumber, KeepsToItsRange) {
  EXPECT_EQ(*ParseNumber({}, "limit", 7, 1, 10), 7u);
  EXPECT_EQ(*ParseNumber({{"limit", "10"}}, "limit", 7, 1, 10), 10u);
  for (std::string_view text : {"0", "11", "-1", "x", "1x", "99999999999999999999", "+1", " 1"}) {
    absl::StatusOr<uint64_t> number = ParseNumber({{"limit", std::string(text)}}, "limit", 7, 1, 10);
    ASSERT_FALSE(number.ok()) << text;
    EXPECT_THAT(Message(number.status()), HasSubstr("from 1 to 10"));
  }
}

TEST(IsFixedHost, AcceptsOnlyHostsThatNoSiteOwns) {
  for (const std::string_view host :
       {"10.1.2.3", "10.1.2.3:4040", "[fd00::1]:4040", "LOCALHOST:1", "reducer.lan:4040"}) {
    EXPECT_TRUE(IsFixedHost(host, "reducer.lan")) << host;
  }
  for (const std::string_view host : {"", "evil.example", "10.1.2.3.evil.example", "10.1.2.3:", "fd00::1", "[evil]",
                                      "[", "]", "[]", "reducer.lan.evil.example", "localhost.evil.example:4040"}) {
    EXPECT_FALSE(IsFixedHost(host, "reducer.lan")) << host;
  }
  EXPECT_FALSE(IsFixedHost("", ""));
}

TEST(IsLocalHost, AcceptsOnlyNamesOfThisMachine) {
  for (std::string_view host : {"localhost", "localhost:4040", "LocalHost:1", "127.0.0.1", "127.0.0.1:4040", "[::1]",
                                "[::1]:4040", "127.0.0.9"}) {
    EXPECT_TRUE(IsLocalHost(host, "127.0.0.9")) << host;
  }
  for (std::string_view host : {"", "evil.example", "evil.example:4040", "localhost.evil.example", "127.0.0.1.nip.io",
                                "127.0.0.1:", "127.0.0.1:99999999", "127.0.0.1:4040x", "localhost:4040:4040", "::1",
                                "[::1", "127.0.0.2", "127.0.0.1@evil", "localhost.", "0.0.0.0"}) {
    EXPECT_FALSE(IsLocalHost(host, "127.0.0.9")) << host;
  }
}

}  // namespace
}  // namespace tributary
