#include "otlp/post_answer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tributary::otlp {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

TEST(PostAnswer, SeparatesHeadersFromTrailers) {
  PostAnswer answer;
  for (const char* line : {"HTTP/2 200 \r\n", "Content-Type:  a:b \r\n", "no colon\r\n"}) {
    EXPECT_TRUE(answer.AddHeaderLine(line));
  }
  EXPECT_FALSE(answer.has_head);
  EXPECT_TRUE(answer.AddHeaderLine("\r\n"));
  EXPECT_TRUE(answer.has_head);
  EXPECT_TRUE(answer.AddBody("body"));
  EXPECT_TRUE(answer.AddHeaderLine("grpc-status: 0\r\n"));
  EXPECT_THAT(answer.headers, ElementsAre(Pair("content-type", "a:b")));
  EXPECT_THAT(answer.trailers, ElementsAre(Pair("grpc-status", "0")));
  EXPECT_EQ(answer.body, "body");
}

TEST(PostAnswer, ForgetsInterimAnswers) {
  PostAnswer answer;
  for (const char* line : {"HTTP/1.1 100 Continue\r\n", "A: 1\r\n", "\r\n", "HTTP/1.1 200 OK\r\n", "B: 2\r\n"}) {
    EXPECT_TRUE(answer.AddHeaderLine(line));
  }
  EXPECT_THAT(answer.headers, ElementsAre(Pair("b", "2")));
  EXPECT_FALSE(answer.has_head);
}

TEST(PostAnswer, FindsTheLastFieldOfAName) {
  const PostAnswer::Fields fields = {{"a", "1"}, {"b", "2"}, {"a", "3"}};
  EXPECT_EQ(FieldOf(fields, "a"), "3");
  EXPECT_EQ(FieldOf(fields, "c"), "");
}

TEST(PostAnswer, LimitsBodyAndHeaders) {
  PostAnswer answer;
  EXPECT_TRUE(answer.AddBody(std::string(kAnswerBytesMax, 'x')));
  EXPECT_FALSE(answer.is_cut);
  EXPECT_FALSE(answer.AddBody("x"));
  EXPECT_TRUE(answer.is_cut);
  EXPECT_EQ(answer.body.size(), kAnswerBytesMax);
  EXPECT_TRUE(answer.AddHeaderLine("A:" + std::string(kAnswerHeaderBytesMax - 2, 'x')));
  EXPECT_FALSE(answer.AddHeaderLine("B"));
  EXPECT_THAT(answer.trailers, IsEmpty());
}

}  // namespace
}  // namespace tributary::otlp
