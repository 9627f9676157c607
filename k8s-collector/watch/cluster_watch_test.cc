#include "k8s-collector/watch/cluster_watch.h"

#include <gmock/gmock.h>

#include <algorithm>

#include "base/loop.h"
#include "base/loop_testing.h"
#include "base/status.h"
#include "k8s-collector/watch/watch_testing.h"

namespace tributary {
namespace {

// Gives each request the same answer, and then ends it.
class FailingTransport : public ApiTransport {
 public:
  // Status 0: no answer.
  FailingTransport(Loop& loop, absl::Status end, int status) : loop_(loop), end_(std::move(end)), status_(status) {}

  std::unique_ptr<Request> Get(std::string_view, std::string_view, Callbacks callbacks) override {
    ++requests;
    loop_.Post([this, callbacks = std::move(callbacks)] {
      if (status_ != 0) callbacks.on_answer(status_, 0);
      callbacks.on_end(end_);
    });
    return std::make_unique<Request>();
  }
  size_t requests = 0;

 private:
  Loop& loop_;
  const absl::Status end_;
  const int status_;
};

// Returns the lines that a watch logs while all its requests fail.
std::string LogOf(absl::Status end, int status = 0) {
  Loop loop;
  FakeClock clock;
  Metrics metrics;
  WatchLog events;
  FailingTransport transport(loop, std::move(end), status);
  ClusterWatch watch({.transport = transport, .alarms = loop, .events = events, .clock = clock, .metrics = metrics}, {},
                     [] {});
  testing::internal::CaptureStderr();
  watch.Start();
  EXPECT_EQ(transport.requests, kResourceKindCount);
  loop.Post([&loop] { loop.Stop(); });
  loop.Run();
  return testing::internal::GetCapturedStderr();
}

TEST(ClusterWatch, LogsOnceThatTheServerCannotBeReached) {
  const std::string log = LogOf(Error(absl::StatusCode::kUnavailable, "no route"));
  EXPECT_THAT(log, testing::HasSubstr("cannot get objects from the API server cause=\"no route\""));
  EXPECT_EQ(std::count(log.begin(), log.end(), '\n'), 1) << log;
}

// Ends the first request of each kind with an error, then answers with empty lists.
class RecoveringTransport : public ApiTransport {
 public:
  explicit RecoveringTransport(Loop& loop) : loop_(loop) {}

  std::unique_ptr<Request> Get(std::string_view target, std::string_view, Callbacks callbacks) override {
    const bool is_first = ++requests <= kResourceKindCount;
    const bool is_watch = target.find("watch=true") != target.npos;
    loop_.Post([is_first, is_watch, callbacks = std::move(callbacks)] {
      if (is_first) return callbacks.on_end(Error(absl::StatusCode::kUnavailable, "no route"));
      callbacks.on_answer(200, 0);
      if (is_watch) return;  // goes on
      callbacks.on_bytes(ListJson({}, 1));
      callbacks.on_end(absl::OkStatus());
    });
    return std::make_unique<Request>();
  }
  size_t requests = 0;

 private:
  Loop& loop_;
};

TEST(ClusterWatch, LogsNoProblemWhenTheServerAnswersAgain) {
  Loop loop;
  FakeClock clock;
  Metrics metrics;
  WatchLog events;
  RecoveringTransport transport(loop);
  bool is_complete = false;
  ClusterWatch watch({.transport = transport, .alarms = loop, .events = events, .clock = clock, .metrics = metrics}, {},
                     [&] { is_complete = true; });
  testing::internal::CaptureStderr();
  watch.Start();
  loop.Post([&clock] { clock.Advance(kNsPerMinute); });
  EXPECT_TRUE(RunLoopUntil(loop, [&] { return is_complete; }, 20'000));
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_THAT(log, testing::HasSubstr("cause=\"no route\""));
  EXPECT_THAT(log, testing::HasSubstr("the API server accepts requests again"));
  EXPECT_EQ(std::count(log.begin(), log.end(), '\n'), 2) << log;
}

TEST(ClusterWatch, LogsOnceThatTheCredentialsAreNotAccepted) {
  const std::string log = LogOf(absl::OkStatus(), 401);
  EXPECT_THAT(log, testing::HasSubstr("cause=\"the API server does not accept the credentials (HTTP status 401)\""));
  EXPECT_EQ(std::count(log.begin(), log.end(), '\n'), 1) << log;
}

TEST(ClusterWatch, LogsSilenceOfEachKind) {
  const std::string log = LogOf(Error(absl::StatusCode::kDeadlineExceeded, "no data"));
  EXPECT_THAT(log, testing::HasSubstr("cannot watch objects kind=pods cause=\"list: no data\""));
  EXPECT_THAT(log, testing::HasSubstr("kind=nodes"));
}

TEST(ClusterWatch, LeavesTheLogOfMissingCredentialsToTheTransport) {
  EXPECT_EQ(LogOf(Error(absl::StatusCode::kUnauthenticated, "no credentials")), "");
}

}  // namespace
}  // namespace tributary
