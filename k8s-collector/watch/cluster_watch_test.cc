#include "k8s-collector/watch/cluster_watch.h"

#include <gmock/gmock.h>

#include <algorithm>

#include "base/loop.h"
#include "base/status.h"
#include "k8s-collector/watch/watch_testing.h"

namespace tributary {
namespace {

// Ends each request with the same error.
class FailingTransport : public ApiTransport {
 public:
  FailingTransport(Loop& loop, absl::Status error) : loop_(loop), error_(std::move(error)) {}

  std::unique_ptr<Request> Get(std::string_view, std::string_view, Callbacks callbacks) override {
    ++requests;
    loop_.Post([this, on_end = std::move(callbacks.on_end)] { on_end(error_); });
    return std::make_unique<Request>();
  }
  size_t requests = 0;

 private:
  Loop& loop_;
  const absl::Status error_;
};

// Returns the lines that a watch logs while all its requests fail.
std::string LogOf(absl::Status error) {
  Loop loop;
  FakeClock clock;
  Metrics metrics;
  WatchLog events;
  FailingTransport transport(loop, std::move(error));
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
  EXPECT_THAT(log, testing::HasSubstr("cannot send requests to the API server cause=\"no route\""));
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
