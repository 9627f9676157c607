#include "otlp/headers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/status.h"

namespace tributary::otlp {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::Pair;

TEST(Headers, ParsesTheListOfAVariable) {
  EXPECT_THAT(*ParseHeaderList(""), IsEmpty());
  EXPECT_THAT(*ParseHeaderList("Authorization=Basic%20YTpi=, x-scope-orgid = team%2C1 ,,"),
              ElementsAre(Pair("authorization", "Basic YTpi="), Pair("x-scope-orgid", "team,1")));
}

TEST(Headers, ParsesAFile) {
  EXPECT_THAT(*ParseHeaderFile("# of the gateway\nAuthorization: Bearer a:b\n\n  X-Tenant:7"),
              ElementsAre(Pair("authorization", "Bearer a:b"), Pair("x-tenant", "7")));
}

TEST(Headers, RefusesBytesThatCouldForgeAHeader) {
  for (const char* list : {"a=b%0D%0Ac: d", "a=%0A", "a=%00", "a=\xc3\xa4", "a%0D%0Ab=c", "a b=c", "=c", "a:b=c"}) {
    EXPECT_EQ(ParseHeaderList(list).status().code(), absl::StatusCode::kInvalidArgument) << list;
  }
  EXPECT_FALSE(ParseHeaderFile("a: b\r\nc: d\r\n").ok());
}

TEST(Headers, RefusesNamesThatTheTransportSets) {
  for (const char* name :
       {"Content-Type", "content-encoding", "Accept-Encoding", "Host", "transfer-encoding", "grpc-timeout", "te"}) {
    Headers headers;
    EXPECT_THAT(Message(AddHeader(name, "x", &headers)), HasSubstr("set by the exporter itself")) << name;
  }
  Headers headers;
  EXPECT_FALSE(AddHeader("trace-bin", "x", &headers).ok());
}

TEST(Headers, RefusesTooManyAndTooLongAndEqualOnes) {
  Headers headers;
  EXPECT_FALSE(AddHeader("a", std::string(kHeaderBytesMax, 'x'), &headers).ok());
  for (size_t i = 0; i < kHeadersMax; ++i) EXPECT_TRUE(AddHeader("a" + std::to_string(i), "x", &headers).ok());
  EXPECT_THAT(Message(AddHeader("A1", "x", &headers)), HasSubstr("given twice"));
  EXPECT_THAT(Message(AddHeader("b", "x", &headers)), HasSubstr("more than 32 headers"));
}

TEST(Headers, ErrorsContainNoValue) {
  for (const absl::Status& status :
       {ParseHeaderList("authorization=secret%0A").status(), ParseHeaderList("secret").status(),
        ParseHeaderFile("secret").status(), ParseHeaderFile("a: secret\na: secret").status()}) {
    EXPECT_FALSE(status.ok());
    EXPECT_THAT(Message(status), Not(HasSubstr("secret")));
  }
}

}  // namespace
}  // namespace tributary::otlp
