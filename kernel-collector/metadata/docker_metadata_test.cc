#include "kernel-collector/metadata/docker_metadata.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "base/status.h"
#include "kernel-collector/metadata/fake_alarms_testing.h"
#include "kernel-collector/processes/fakes_testing.h"

namespace tributary {
namespace {

std::string Id(int number) { return fmt::format("{:064x}", number); }

// The alarms, in the order in which DockerMetadata creates them.
constexpr size_t kNext = 0, kList = 1;

class DockerMetadataTest : public ::testing::Test {
 protected:
  absl::StatusOr<HttpResponse> Answer(const HttpRequest& request) {
    ++requests_;
    if (!failure_.ok()) return failure_;
    if (request.path == "/containers/json") {
      std::string list;
      for (const std::string& id : running_) list += fmt::format(R"({}{{"Id":"{}"}})", list.empty() ? "" : ",", id);
      return HttpResponse{.status = 200, .body = "[" + list + "]"};
    }
    const std::string id = request.path.substr(std::string("/containers/").size(), 64);
    if (id == hangs_) return Error(absl::StatusCode::kDeadlineExceeded, "no answer within the time limit");
    if (!running_.contains(id)) return HttpResponse{.status = 404};
    return HttpResponse{.status = 200, .body = fmt::format(R"({{"Id":"{}","Name":"/web"}})", id)};
  }
  // Runs until no request is left; does not wait for the pauses after failures.
  void Settle() {
    while (executor_.RunAll() > 0 && alarms_.delay_ms(kNext) == 20) alarms_.Ring(kNext);
  }
  bool Knows(const std::string& id) const {
    const std::optional<Entity> entity = feed_.Find(EntityKind::kContainer, id);
    return entity && !entity->gone && FindAttribute(entity->attributes, "container.name") == "web";
  }
  uint64_t Counted(const char* result) {
    return metrics_.AddCounter("tributary_collector_docker_containers_total", "", {{"result", result}}).value();
  }

  std::set<std::string> running_;
  std::string hangs_;
  absl::Status failure_;
  int requests_ = 0;
  FakeExecutor executor_;
  FakeAlarms alarms_;
  FakeClock clock_;
  Metrics metrics_;
  intake::MetadataFeed feed_{{}, clock_, metrics_};
  DockerMetadata docker_{std::make_shared<DockerClient>([this](const HttpRequest& request) { return Answer(request); }),
                         executor_,
                         alarms_,
                         clock_,
                         feed_,
                         metrics_};
};

TEST_F(DockerMetadataTest, RequestsAContainerOnce) {
  running_ = {Id(1), Id(2)};
  for (int i = 0; i < 3; ++i) docker_.OnContainerSeen(Id(1));
  Settle();
  docker_.OnContainerSeen(Id(1));
  Settle();
  EXPECT_TRUE(Knows(Id(1)));
  EXPECT_FALSE(Knows(Id(2)));
  EXPECT_EQ(requests_, 1);
}

TEST_F(DockerMetadataTest, RequestsNoIdsOfOtherForms) {
  docker_.OnContainerSeen("");
  docker_.OnContainerSeen("../images");
  EXPECT_EQ(executor_.RunAll(), 0u);
}

TEST_F(DockerMetadataTest, SendsOneRequestAtATimeWithPauses) {
  running_ = {Id(1), Id(2)};
  docker_.OnContainerSeen(Id(1));
  docker_.OnContainerSeen(Id(2));
  EXPECT_EQ(executor_.waiting(), 1u);
  EXPECT_EQ(executor_.RunAll(), 1u);
  EXPECT_FALSE(Knows(Id(2)));
  alarms_.Ring(kNext);
  executor_.RunAll();
  EXPECT_TRUE(Knows(Id(2)));
}

TEST_F(DockerMetadataTest, RetriesWithGrowingPauses) {
  running_ = {Id(1)};
  failure_ = Error(absl::StatusCode::kUnavailable, "connection refused");
  docker_.OnContainerSeen(Id(1));
  for (const uint64_t pause_ms : {1000, 2000, 4000}) {
    EXPECT_EQ(executor_.RunAll(), 1u);
    EXPECT_EQ(alarms_.delay_ms(kNext), pause_ms);
    alarms_.Ring(kNext);
  }
  failure_ = absl::OkStatus();
  Settle();
  EXPECT_TRUE(Knows(Id(1)));
}

TEST_F(DockerMetadataTest, AHangingContainerDoesNotBlockTheOthers) {
  running_ = {Id(1), Id(2)};
  hangs_ = Id(1);
  docker_.OnContainerSeen(Id(1));
  docker_.OnContainerSeen(Id(2));
  for (int i = 0; i < 20; ++i) {
    executor_.RunAll();
    alarms_.Ring(kNext);
  }
  EXPECT_TRUE(Knows(Id(2)));
  EXPECT_EQ(Counted("failed"), 1u);
}

TEST_F(DockerMetadataTest, KeepsTryingOnAMachineWithoutDocker) {
  running_ = {Id(1)};
  failure_ = Error(absl::StatusCode::kNotFound, "connect: ENOENT");
  for (int i = 1; i <= 1000; ++i) docker_.OnContainerSeen(Id(i));
  for (int i = 0; i < 50; ++i) {
    executor_.RunAll();
    alarms_.Ring(kNext);
  }
  EXPECT_EQ(Counted("failed") + Counted("refused"), 0u);
  for (int i = 1001; i <= 10'000; ++i) docker_.OnContainerSeen(Id(i));
  EXPECT_EQ(Counted("refused"), 0u);
  failure_ = absl::OkStatus();
  for (int i = 0; i < 2000; ++i) {
    executor_.RunAll();
    alarms_.Ring(kNext);
  }
  EXPECT_TRUE(Knows(Id(1)));
}

TEST_F(DockerMetadataTest, DoesNotRetryAfterAnUnusableAnswer) {
  failure_ = Error(absl::StatusCode::kInvalidArgument, "not an HTTP answer");
  docker_.OnContainerSeen(Id(1));
  docker_.OnContainerSeen(Id(2));
  Settle();
  EXPECT_EQ(requests_, 2);
  EXPECT_EQ(Counted("failed"), 2u);
}

TEST_F(DockerMetadataTest, ReportsEndedContainersAsGone) {
  running_ = {Id(1), Id(2)};
  for (int i = 1; i <= 3; ++i) docker_.OnContainerSeen(Id(i));
  Settle();
  running_ = {Id(2)};
  alarms_.Ring(kList);  // too early: a container that has just started may not be in the list
  executor_.RunAll();
  EXPECT_TRUE(Knows(Id(1)));
  clock_.Advance(60 * kNsPerSecond);
  alarms_.Ring(kList);
  executor_.RunAll();
  const std::optional<Entity> gone = feed_.Find(EntityKind::kContainer, Id(1));
  ASSERT_TRUE(gone.has_value());
  EXPECT_TRUE(gone->gone);
  EXPECT_EQ(gone->from, clock_.Unix());
  EXPECT_TRUE(Knows(Id(2)));
  // A restarted container is requested again, and so is a container that Docker did not know.
  running_ = {Id(1), Id(2), Id(3)};
  docker_.OnContainerSeen(Id(1));
  docker_.OnContainerSeen(Id(3));
  Settle();
  EXPECT_TRUE(Knows(Id(1)));
  EXPECT_TRUE(Knows(Id(3)));
}

TEST_F(DockerMetadataTest, AFailedListEndsNoContainer) {
  running_ = {Id(1)};
  docker_.OnContainerSeen(Id(1));
  Settle();
  clock_.Advance(60 * kNsPerSecond);
  failure_ = Error(absl::StatusCode::kResourceExhausted, "the answer is too large");
  alarms_.Ring(kList);
  executor_.RunAll();
  EXPECT_TRUE(Knows(Id(1)));
}

TEST_F(DockerMetadataTest, CountsContainersAboveTheLimit) {
  for (size_t i = 0; i < DockerMetadata::kContainersMax + 5; ++i) docker_.OnContainerSeen(Id(static_cast<int>(i)));
  EXPECT_EQ(Counted("refused"), 5u);
}

TEST_F(DockerMetadataTest, RetriesWhenTheExecutorIsBusy) {
  running_ = {Id(1)};
  executor_.capacity = 0;
  docker_.OnContainerSeen(Id(1));
  executor_.capacity = 1;
  EXPECT_EQ(executor_.RunAll(), 0u);
  alarms_.Ring(kNext);
  executor_.RunAll();
  EXPECT_TRUE(Knows(Id(1)));
}

}  // namespace
}  // namespace tributary
