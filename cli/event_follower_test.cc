#include "cli/event_follower.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <vector>

#include "base/status.h"

namespace tributary::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kNone[] = R"({"from":5,"events":[],"next":"","truncated":false})";

std::string Answer(std::string_view next, bool truncated) {
  return std::string(R"({"from":5,"events":[{"at":1}],"next":")")
      .append(next)
      .append(truncated ? R"(","truncated":true})" : R"(","truncated":false})");
}

class EventFollowerTest : public ::testing::Test {
 protected:
  std::vector<std::string> Asked(const std::string& name) const {
    std::vector<std::string> values;
    for (const auto& parameters : asked_) {
      const auto it = parameters.find(name);
      values.push_back(it == parameters.end() ? "-" : it->second);
    }
    return values;
  }

  std::deque<absl::StatusOr<std::string>> answers_;
  std::vector<std::map<std::string, std::string>> asked_;
  std::vector<std::string> printed_, reported_;
  EventFollower follower_{{.query = {.query = "{a=\"b\"}", .from = "-11s"}, .kind = "crash"},
                          {.get =
                               [this](const HttpClient::Parameters& parameters) {
                                 asked_.emplace_back(parameters.begin(), parameters.end());
                                 absl::StatusOr<std::string> answer = kNone;
                                 if (!answers_.empty()) {
                                   answer = answers_.front();
                                   answers_.pop_front();
                                 }
                                 return answer;
                               },
                           .print =
                               [this](std::string_view json) {
                                 printed_.emplace_back(json);
                                 return absl::OkStatus();
                               },
                           .report = [this](std::string_view message) { reported_.emplace_back(message); }}};
};

TEST_F(EventFollowerTest, ContinuesAtTheCursorOfTheLastAnswer) {
  answers_ = {std::string(kNone), Answer("o1.a.1", true), Answer("o2.a.1", false), std::string(kNone)};
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(follower_.Poll().ok());
  EXPECT_THAT(Asked("cursor"), ElementsAre("-", "-", "o1.a.1", "o2.a.1"));
  EXPECT_THAT(Asked("from"), ElementsAre("-11s", "0.005", "0.005", "0.005"));
  EXPECT_THAT(Asked("to"), ElementsAre("now-10s", "now-10s", "now-10s", "now-10s"));
  EXPECT_EQ(asked_[0]["order"], "oldest");
  EXPECT_EQ(asked_[0]["kind"], "crash");
  EXPECT_EQ(asked_[0]["query"], "{a=\"b\"}");
  EXPECT_EQ(printed_.size(), 2u);
}

// If few events match, the cursor stays where it is for days.
TEST_F(EventFollowerTest, DoesNotReadOldEventsAgain) {
  answers_ = {std::string(R"({"from":100000,"to":190000,"events":[{"at":1}],"next":"o1.a.1","truncated":true})"),
              std::string(R"({"from":100000,"to":200000,"events":[],"next":"o1.a.1","truncated":false})"),
              std::string(R"({"from":140000,"to":201000,"events":[],"next":"o1.a.1","truncated":false})"),
              std::string(R"({"from":141000,"to":100,"events":[],"next":"o1.a.1","truncated":false})")};
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(follower_.Poll().ok());
  EXPECT_THAT(Asked("from"), ElementsAre("-11s", "100.000", "140.000", "141.000", "141.000"));
}

TEST_F(EventFollowerTest, WaitsForAReducerThatIsRestarted) {
  answers_ = {Answer("o1.a.1", false), Error(absl::StatusCode::kUnavailable, "no answer"),
              Error(absl::StatusCode::kInternal, "not ready"), Answer("o2.a.1", false)};
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(follower_.Poll().ok());
  EXPECT_THAT(reported_, ElementsAre("no answer; waiting for the reducer", "the reducer answers again"));
  EXPECT_THAT(Asked("cursor"), ElementsAre("-", "o1.a.1", "o1.a.1", "o1.a.1"));
  EXPECT_EQ(printed_.size(), 2u);
}

TEST_F(EventFollowerTest, EndsIfTheReducerRefusesTheRequest) {
  answers_ = {Error(absl::StatusCode::kUnavailable, "no answer")};
  EXPECT_FALSE(follower_.Poll().ok()) << "the first request";
  answers_ = {Answer("", false), Error(absl::StatusCode::kInvalidArgument, "query: unknown label")};
  EXPECT_TRUE(follower_.Poll().ok());
  EXPECT_FALSE(follower_.Poll().ok());
  answers_ = {Error(absl::StatusCode::kUnauthenticated, "the token is not known")};
  EXPECT_FALSE(follower_.Poll().ok());
  answers_ = {std::string("<html>")};
  EXPECT_FALSE(follower_.Poll().ok());
  EXPECT_THAT(reported_, IsEmpty());
}

}  // namespace
}  // namespace tributary::cli
