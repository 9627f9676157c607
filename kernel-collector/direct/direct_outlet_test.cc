#include "kernel-collector/direct/direct_outlet.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

#include "base/http_server_testing.h"
#include "kernel-collector/direct/direct_testing.h"

namespace tributary {
namespace {

using ::testing::HasSubstr;

class DirectOutletTest : public testing::Test {
 protected:
  void Open(const std::string& url, otlp::Variables variables = {}) {
    DirectOptions options{.receiver = *ParseDirectReceiver("otlp_profiles", url, 0, false),
                          .variables = std::move(variables),
                          .names = false,
                          .metrics_interval_ns = metrics_interval_ns_};
    options.variables["OTEL_EXPORTER_OTLP_COMPRESSION"] = "none";
    options.session.node_id = "n1";
    absl::StatusOr<std::unique_ptr<DirectOutlet>> outlet = DirectOutlet::Open(
        loop_, std::move(options), pins_, feed_, Clock::Real(), metrics_, [](const ExecutableId&) {});
    ASSERT_TRUE(outlet.ok()) << outlet.status();
    outlet_ = *std::move(outlet);
    outlet_->Start();
  }
  // Passes on a batch with one sample and two process events.
  void Take() {
    batches_.Add("prog", 0x2010);
    Batch batch = batches_.Take();
    batch.events.push_back({.kind = ProcessEventKind::kSum, .events = 2});
    EXPECT_TRUE(outlet_->sink().Take(std::move(batch)).ok());
  }
  void Flush(int64_t timeout_ms) {
    std::optional<uint64_t> undelivered;
    outlet_->Flush(timeout_ms, [&](uint64_t samples) {
      undelivered = samples;
      loop_.Stop();
    });
    loop_.Run();
    EXPECT_EQ(undelivered, 0u);
  }

  int64_t metrics_interval_ns_ = 0;
  Loop loop_;
  Metrics metrics_;
  PinnedSession pins_;
  intake::MetadataFeed feed_{{}, Clock::Real(), metrics_};
  TestBatches batches_;
  std::unique_ptr<DirectOutlet> outlet_;
};

TEST_F(DirectOutletTest, SendsSamplesAndCountsEvents) {
  TestHttpServer server({.body = "", .header = "Content-Type: application/x-protobuf", .keeps_alive = true});
  Open(server.Url());
  Take();
  Take();
  EXPECT_EQ(outlet_->totals().waiting_samples, 2u);
  Flush(10'000);
  const Outlet::Totals totals = outlet_->totals();
  EXPECT_EQ(totals.sent_samples, 2u);
  EXPECT_EQ(totals.waiting_samples, 0u);
  EXPECT_EQ(totals.lost.TotalLost().total(), 0u);
  EXPECT_EQ(totals.lost.LostFor(LossReason::kNotTaken).events(), 4u);
  EXPECT_EQ(totals.sent_events, 0u);  // an event is not both lost and sent
  EXPECT_EQ(metrics_.AddCounter("tributary_direct_lost_process_events_total", "", {{"reason", "not_taken"}}).value(),
            4u);
  outlet_.reset();  // closes the connection
  EXPECT_THAT(server.Bodies(), testing::Contains(HasSubstr("/bin/prog")));
}

// The last values are sent after the last samples.
TEST_F(DirectOutletTest, SendsMetricsAtTheEnd) {
  TestHttpServer server({.body = "", .header = "Content-Type: application/x-protobuf"});
  metrics_interval_ns_ = 60 * kNsPerMinute;
  Open(server.Url());
  Take();
  Flush(10'000);
  EXPECT_EQ(outlet_->totals().sent_samples, 1u);
  outlet_.reset();
  const std::vector<std::string> heads = server.Heads();
  ASSERT_FALSE(heads.empty());
  EXPECT_THAT(heads.back(), HasSubstr("POST /v1/metrics "));
  EXPECT_THAT(server.Bodies().back(), HasSubstr("tributary_direct_samples_total"));
}

TEST_F(DirectOutletTest, MetricsDoNotDelayTheEnd) {
  TestHttpServer server({.hangs = true});
  metrics_interval_ns_ = kNsPerSecond;
  Open(server.Url());
  server.AwaitRequest();
  Flush(200);
  outlet_.reset();
}

// A receiver that does not answer does not delay the end.
TEST_F(DirectOutletTest, EndsInTimeAndCountsWhatIsUnsent) {
  TestHttpServer server({.hangs = true});
  Open(server.Url());
  for (size_t i = 0; i < DirectOutlet::kSettlingMax + 3; ++i) Take();
  server.AwaitRequest();
  Flush(200);
  const Outlet::Totals totals = outlet_->totals();
  EXPECT_EQ(totals.sent_samples, 0u);
  EXPECT_EQ(totals.lost.TotalLost().total(), DirectOutlet::kSettlingMax + 3);
  EXPECT_EQ(totals.lost.LostFor(LossReason::kInDoubt).total(), 1u);
  outlet_.reset();
}

TEST_F(DirectOutletTest, MayBeDestroyedWhileItSends) {
  TestHttpServer server({.hangs = true});
  Open(server.Url());
  for (size_t i = 0; i <= DirectOutlet::kSettlingMax; ++i) Take();
  server.AwaitRequest();
  outlet_.reset();
}

}  // namespace
}  // namespace tributary
