#include "k8s-collector/watch/resource_watch.h"

#include <gmock/gmock.h>

#include "base/status.h"
#include "k8s-collector/watch/watch_testing.h"

namespace tributary {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

class ResourceWatchTest : public testing::Test {
 protected:
  // Waits until the next request is due, makes it, and returns its target.
  std::string Begin(ResourceWatch& watch) {
    if (watch.due() > now_) now_ = watch.due();
    request_ = watch.Begin(now_);
    return request_.target;
  }
  std::string Begin() { return Begin(watch_); }
  void Answer(int status, std::string_view body, int64_t retry_after_s = 0, absl::Status end = absl::OkStatus()) {
    watch_.OnAnswer(status, retry_after_s, now_);
    if (!watch_.OnBytes(body, now_)) end = Error(absl::StatusCode::kCancelled, "no more data is needed");
    watch_.OnEnd(end, now_);
  }
  void ListNothing() {
    Begin();
    Answer(200, ListJson({}, 10));
    log_.TakeLog();
  }
  int64_t wait_ns() const { return watch_.due().value - now_.value; }
  uint64_t failures(WatchFailure reason) { return watch_metrics_.failures[static_cast<size_t>(reason)]->value(); }

  Metrics metrics_;
  WatchMetrics watch_metrics_{metrics_};
  WatchLog log_;
  MonotonicNs now_{kNsPerSecond};
  ResourceWatch watch_{InfoOf(ResourceKind::kPods), {.seed = 7}, log_, watch_metrics_};
  ResourceWatch::Request request_;
};

TEST_F(ResourceWatchTest, ListsPageByPageAndThenWatches) {
  EXPECT_EQ(Begin(), "/api/v1/pods?limit=500");
  Answer(200, ListJson({ObjectJson("a", 1), ObjectJson("b", 2)}, 10, "page/2="));
  EXPECT_EQ(wait_ns(), 0);
  EXPECT_FALSE(watch_.listed());
  EXPECT_EQ(Begin(), "/api/v1/pods?limit=500&continue=page%2F2%3D");
  Answer(200, ListJson({ObjectJson("c", 3)}, 11));
  EXPECT_TRUE(watch_.listed());
  EXPECT_THAT(log_.TakeLog(), ElementsAre("begin", "put a", "put b", "put c", "end"));
  EXPECT_THAT(Begin(),
              StartsWith("/api/v1/pods?watch=true&allowWatchBookmarks=true&resourceVersion=11&timeoutSeconds="));
  Answer(200, EventJson("ADDED", ObjectJson("d", 12)) + EventJson("DELETED", ObjectJson("a", 13)));
  EXPECT_THAT(log_.TakeLog(), ElementsAre("put d", "deleted a"));
}

TEST_F(ResourceWatchTest, RequestsOnlyMetadataIfSufficient) {
  EXPECT_EQ(watch_.Begin(now_).accept, "application/json");
  ResourceWatch nodes(InfoOf(ResourceKind::kNodes), {.seed = 1}, log_, watch_metrics_);
  EXPECT_THAT(nodes.Begin(now_).accept, HasSubstr("as=PartialObjectMetadataList"));
  nodes.OnAnswer(200, 0, now_);
  nodes.OnBytes(ListJson({}, 5), now_);
  nodes.OnEnd(absl::OkStatus(), now_);
  EXPECT_THAT(nodes.Begin(now_).accept, HasSubstr("as=PartialObjectMetadata;"));
}

TEST_F(ResourceWatchTest, ContinuesWhereItStopped) {
  ListNothing();
  Begin();
  Answer(200, EventJson("MODIFIED", ObjectJson("a", 20)) + BookmarkJson(31));
  EXPECT_THAT(Begin(), HasSubstr("resourceVersion=31&"));
  Answer(200, EventJson("MODIFIED", ObjectJson("a", 33)), 0, Error(absl::StatusCode::kUnavailable, "connection reset"));
  EXPECT_THAT(watch_.trouble(), HasSubstr("connection reset"));
  EXPECT_THAT(Begin(), HasSubstr("resourceVersion=33&"));
  watch_.OnAnswer(200, 0, now_);
  EXPECT_EQ(watch_.trouble(), "");  // before a byte came
}

TEST_F(ResourceWatchTest, WatchesDoNotAllEndAtOnce) {
  ListNothing();
  std::set<std::string> targets;
  for (int i = 0; i < 20; ++i) {
    targets.insert(Begin());
    Answer(200, BookmarkJson(10));
  }
  EXPECT_GT(targets.size(), 10u);
}

TEST_F(ResourceWatchTest, ListsAgainWhenTheVersionIsGone) {
  ListNothing();
  Begin();
  Answer(410, StatusJson(410, "too old resource version"));
  EXPECT_EQ(Begin(), "/api/v1/pods?limit=500");
  Answer(200, ListJson({ObjectJson("a", 50)}, 60));
  EXPECT_THAT(log_.TakeLog(), ElementsAre("begin", "put a", "end"));
  EXPECT_EQ(failures(WatchFailure::kExpired), 1u);
}

TEST_F(ResourceWatchTest, ListsAgainAfterAGoneEvent) {
  ListNothing();
  Begin();
  Answer(200, EventJson("ADDED", ObjectJson("a", 11)) +
                  EventJson("ERROR", StatusJson(410, "too old resource version: 1 (2)")) +
                  EventJson("ADDED", ObjectJson("never", 12)));
  EXPECT_THAT(log_.TakeLog(), ElementsAre("put a"));
  EXPECT_EQ(Begin(), "/api/v1/pods?limit=500");
  EXPECT_EQ(failures(WatchFailure::kExpired), 1u);
}

TEST_F(ResourceWatchTest, ContinuesAfterOtherErrorEvents) {
  ListNothing();
  Begin();
  Answer(200, EventJson("ERROR", StatusJson(500, "etcd is tired")));
  EXPECT_THAT(watch_.trouble(), HasSubstr("etcd is tired"));
  EXPECT_GT(wait_ns(), 0);
  EXPECT_THAT(Begin(), HasSubstr("resourceVersion=10&"));
}

TEST_F(ResourceWatchTest, RestartsTheListWhenItsTokenHasExpired) {
  Begin();
  Answer(200, ListJson({ObjectJson("a", 1)}, 10, "next"));
  Begin();
  Answer(410, StatusJson(410, "The provided continue parameter is too old"));
  EXPECT_EQ(Begin(), "/api/v1/pods?limit=500");
  Answer(200, ListJson({ObjectJson("b", 1)}, 20));
  EXPECT_THAT(log_.TakeLog(), ElementsAre("begin", "put a", "begin", "put b", "end"));
}

TEST_F(ResourceWatchTest, RequestsATruncatedPageAgain) {
  Begin();
  Answer(200, ListJson({ObjectJson("a", 1)}, 10, "next"));
  Begin();
  Answer(200, ListJson({ObjectJson("b", 1)}, 10).substr(0, 150), 0, Error(absl::StatusCode::kUnavailable, "reset"));
  EXPECT_FALSE(watch_.listed());
  EXPECT_THAT(Begin(), HasSubstr("continue=next"));
  Answer(200, ListJson({ObjectJson("b", 1)}, 10));
  EXPECT_TRUE(watch_.listed());
}

TEST_F(ResourceWatchTest, RefusesATruncatedList) {
  Begin();
  const std::string whole = ListJson({ObjectJson("a", 1)}, 10);
  Answer(200, whole.substr(0, whole.size() - 1));  // although the server reports a complete answer
  EXPECT_FALSE(watch_.listed());
  EXPECT_THAT(watch_.trouble(), HasSubstr("list"));
  EXPECT_EQ(failures(WatchFailure::kMalformed), 1u);
}

TEST_F(ResourceWatchTest, WaitsLongerAfterEachFailure) {
  int64_t longest_ns = 0;
  for (int i = 0; i < 40; ++i) {
    Begin();
    watch_.OnEnd(Error(absl::StatusCode::kUnavailable, "connection refused"), now_);
    EXPECT_GE(wait_ns(), kNsPerSecond / 2);
    EXPECT_LE(wait_ns(), 30 * kNsPerSecond);
    longest_ns = std::max(longest_ns, wait_ns());
  }
  EXPECT_GT(longest_ns, 15 * kNsPerSecond);
  EXPECT_EQ(failures(WatchFailure::kConnection), 40u);
  ListNothing();
  EXPECT_EQ(wait_ns(), 0);
  Begin();
  watch_.OnEnd(Error(absl::StatusCode::kUnavailable, "connection refused"), now_);
  EXPECT_LE(wait_ns(), kNsPerSecond);
}

TEST_F(ResourceWatchTest, AnOutageDoesNotMakeItListAgain) {
  ListNothing();
  for (int i = 0; i < 30; ++i) {
    EXPECT_THAT(Begin(), HasSubstr("resourceVersion=10&"));
    if (i % 2 == 0) {
      watch_.OnEnd(Error(absl::StatusCode::kUnavailable, "connection refused"), now_);
    } else {
      Answer(503, "apiserver is starting");
    }
  }
}

TEST_F(ResourceWatchTest, RepeatedEmptyWatchesLeadToAList) {
  ListNothing();
  int watches = 0;
  while (Begin().find("watch=true") != std::string::npos && watches < 20) {
    ++watches;
    Answer(200, "");  // ends at once
  }
  EXPECT_EQ(watches, 5);
}

TEST_F(ResourceWatchTest, AQuietWatchStaysAWatch) {
  ListNothing();
  for (int i = 0; i < 20; ++i) {
    EXPECT_THAT(Begin(), HasSubstr("watch=true"));
    watch_.OnAnswer(200, 0, now_);
    now_.value += 300 * kNsPerSecond;
    watch_.OnEnd(absl::OkStatus(), now_);
    EXPECT_LT(wait_ns(), kNsPerSecond);
    EXPECT_EQ(watch_.trouble(), "");
  }
}

TEST_F(ResourceWatchTest, EndsASilentWatchAndContinues) {
  ListNothing();
  Begin();
  EXPECT_EQ(request_.silence_ns, 150 * kNsPerSecond);
  watch_.OnAnswer(200, 0, now_);
  watch_.OnBytes("{\"type\":\"ADDED\",\"obj", now_);
  now_.value += request_.silence_ns;
  watch_.OnEnd(Error(absl::StatusCode::kDeadlineExceeded, "silent"), now_);
  EXPECT_EQ(failures(WatchFailure::kSilent), 1u);
  EXPECT_THAT(log_.TakeLog(), IsEmpty());
  EXPECT_THAT(Begin(), HasSubstr("resourceVersion=10&"));
  Answer(200, EventJson("ADDED", ObjectJson("a", 11)));
  EXPECT_THAT(log_.TakeLog(), ElementsAre("put a"));
}

TEST_F(ResourceWatchTest, RetriesBadCredentialsSoon) {
  ListNothing();
  Begin();
  Answer(401, StatusJson(401, "Unauthorized"));
  EXPECT_LE(wait_ns(), kNsPerSecond);
  EXPECT_THAT(watch_.trouble(), HasSubstr("credentials"));
  EXPECT_THAT(Begin(), HasSubstr("resourceVersion=10&"));
}

TEST_F(ResourceWatchTest, NamesTheMissingPermission) {
  ResourceWatch jobs(InfoOf(ResourceKind::kJobs), {.seed = 1}, log_, watch_metrics_);
  const auto refuse = [&] {
    Begin(jobs);
    jobs.OnAnswer(403, 0, now_);
    jobs.OnBytes(StatusJson(403, "jobs.batch is forbidden"), now_);
    jobs.OnEnd(absl::OkStatus(), now_);
  };
  refuse();
  EXPECT_FALSE(jobs.refused());  // a server that has just started also refuses
  EXPECT_LE(jobs.due().value - now_.value, 2 * kNsPerSecond);
  for (int i = 0; i < 9; ++i) refuse();
  EXPECT_THAT(jobs.trouble(), HasSubstr("grant the verb list on the resource jobs of the API group batch"));
  EXPECT_THAT(jobs.trouble(), HasSubstr("jobs.batch is forbidden"));
  EXPECT_TRUE(jobs.refused());
  EXPECT_GE(jobs.due().value - now_.value, kNsPerMinute / 2);
  Begin(jobs);
  jobs.OnAnswer(200, 0, now_);
  jobs.OnBytes(ListJson({}, 3), now_);
  jobs.OnEnd(absl::OkStatus(), now_);
  EXPECT_FALSE(jobs.refused());
  EXPECT_EQ(jobs.trouble(), "");
}

TEST_F(ResourceWatchTest, KeepsKnownObjectsWhenAPermissionIsLost) {
  Begin();
  Answer(200, ListJson({ObjectJson("a", 1)}, 10));
  Begin();
  Answer(403, StatusJson(403, "pods is forbidden"));
  EXPECT_THAT(watch_.trouble(), HasSubstr("grant the verb watch on the resource pods of the core API group"));
  EXPECT_EQ(log_.objects.size(), 1u);
  EXPECT_THAT(Begin(), HasSubstr("resourceVersion=10&"));
}

TEST_F(ResourceWatchTest, WaitsAsLongAsTheServerAsks) {
  Begin();
  Answer(429, "slow down", 45);
  EXPECT_GE(wait_ns(), 45 * kNsPerSecond);
  Begin();
  Answer(429, "slow down", 1'000'000'000);
  EXPECT_LE(wait_ns(), 302 * kNsPerSecond);
  EXPECT_EQ(failures(WatchFailure::kThrottled), 2u);
}

TEST_F(ResourceWatchTest, HtmlIsNoAnswer) {
  const std::string html = "<html><body>Sign in to the portal</body></html>";
  Begin();
  Answer(200, html);
  EXPECT_THAT(watch_.trouble(), HasSubstr("<html>"));
  Begin();
  Answer(502, html);
  EXPECT_THAT(watch_.trouble(), HasSubstr("502"));
  ListNothing();
  Begin();
  Answer(200, html);
  EXPECT_EQ(failures(WatchFailure::kMalformed), 2u);
  EXPECT_THAT(log_.TakeLog(), IsEmpty());
}

TEST_F(ResourceWatchTest, AnEndlessErrorBodyIsCutOff) {
  Begin();
  watch_.OnAnswer(500, 0, now_);
  EXPECT_TRUE(watch_.OnBytes(std::string(5000, 'x'), now_));
  EXPECT_FALSE(watch_.OnBytes(std::string(5000, 'x'), now_));
  watch_.OnEnd(Error(absl::StatusCode::kCancelled, ""), now_);
  EXPECT_LT(watch_.trouble().size(), 500u);
}

TEST_F(ResourceWatchTest, LeavesOutATooLargeObject) {
  ListNothing();
  Begin();
  std::string huge = ObjectJson(std::string(10 << 20, 'x'), 11);
  Answer(200, EventJson("ADDED", huge) + EventJson("ADDED", ObjectJson("b", 12)));
  EXPECT_THAT(log_.TakeLog(), ElementsAre("put b"));
  EXPECT_EQ(watch_metrics_.too_large_objects.value(), 1u);
}

TEST_F(ResourceWatchTest, LeavesOutAnUnreadableObject) {
  Begin();
  Answer(200, ListJson({ObjectJson("a", 1), R"({"metadata":"none"})", "{\"metadata\":{\"name\":\"\xff\"}}",
                        ObjectJson("b", 2)},
                       9));
  EXPECT_THAT(log_.TakeLog(), ElementsAre("begin", "put a", "put b", "end"));
  Begin();
  Answer(200, EventJson("RENAMED", ObjectJson("c", 10)) + "{}\n" + EventJson("ADDED", "[]") +
                  EventJson("ADDED", ObjectJson("d", 12)));
  EXPECT_THAT(log_.TakeLog(), ElementsAre("put d"));
  EXPECT_EQ(watch_metrics_.malformed_objects.value(), 5u);
  EXPECT_EQ(Begin(), "/api/v1/pods?limit=500");  // one object may have been missed
}

TEST_F(ResourceWatchTest, OtherTextEndsTheWatch) {
  ListNothing();
  Begin();
  Answer(200, EventJson("ADDED", ObjectJson("a", 11)) + "upstream timed out\n");
  EXPECT_THAT(log_.TakeLog(), ElementsAre("put a"));
  EXPECT_EQ(failures(WatchFailure::kMalformed), 1u);
  EXPECT_THAT(Begin(), HasSubstr("resourceVersion=11&"));
}

TEST_F(ResourceWatchTest, AcceptsAnyNetworkCuts) {
  const std::string list = ListJson({ObjectJson("a{\\\"]", 1), ObjectJson("b", 2)}, 10, "\\\"items\\\":[");
  const std::string events =
      EventJson("ADDED", ObjectJson("}{\\\\", 11)) + BookmarkJson(12) + EventJson("DELETED", ObjectJson("b", 13));
  for (size_t piece : {1, 2, 3, 7, 50, 1000}) {
    WatchLog log;
    ResourceWatch watch(InfoOf(ResourceKind::kPods), {.seed = 1}, log, watch_metrics_);
    for (const std::string* body : {&list, &list, &events}) {
      Begin(watch);
      watch.OnAnswer(200, 0, now_);
      std::string text = *body;
      if (log.log.size() == 3) text = ListJson({}, 10);  // the second page
      for (size_t i = 0; i < text.size(); i += piece) ASSERT_TRUE(watch.OnBytes(text.substr(i, piece), now_));
      watch.OnEnd(absl::OkStatus(), now_);
    }
    EXPECT_THAT(log.log, ElementsAre("begin", "put a{\"]", "put b", "end", "put }{\\", "deleted b")) << piece;
  }
}

}  // namespace
}  // namespace tributary
