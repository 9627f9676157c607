#include "kernel-collector/direct/direct_outlet.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <optional>
#include <thread>

#include "base/http_server_testing.h"
#include "base/server_testing.h"
#include "kernel-collector/direct/direct_testing.h"

namespace tributary {
namespace {

using ::testing::HasSubstr;

// Accepts profiles, and never answers a request of metrics.
class NoMetricsServer {
 public:
  NoMetricsServer() {
    listener_.Listen();
    thread_ = std::thread([this] { Run(); });
  }
  ~NoMetricsServer() {
    listener_.Stop();
    thread_.join();
  }
  std::string Url() const { return "http://" + listener_.target(); }
  void AwaitMetrics() {
    std::unique_lock lock(mutex_);
    arrived_.wait(lock, [this] { return !held_.empty(); });
  }

 private:
  void Run() {
    while (true) {
      Fd socket = listener_.Accept();
      if (!socket.valid()) return;
      auto connection = std::make_unique<TestConnection>(std::move(socket), nullptr);
      if (Serve(*connection)) continue;
      const std::lock_guard lock(mutex_);
      held_.push_back(std::move(connection));
      arrived_.notify_all();
    }
  }
  // Returns false if the request is one of metrics.
  static bool Serve(TestConnection& connection) {
    std::string request;
    size_t wanted = SIZE_MAX;
    while (request.size() < wanted) {
      if (!connection.Receive(&request)) return true;
      const size_t end = request.find("\r\n\r\n"), length = request.find("Content-Length: ");
      if (end == request.npos) continue;
      if (request.starts_with("POST /v1/metrics ")) return false;
      wanted = end + 4 + static_cast<size_t>(atoi(&request[length + 16]));
    }
    connection.Send(
        "HTTP/1.1 200 OK\r\nContent-Type: application/x-protobuf\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    return true;
  }

  TestListener listener_;
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::vector<std::unique_ptr<TestConnection>> held_;  // guarded by mutex_
  std::thread thread_;
};

class DirectOutletTest : public testing::Test {
 protected:
  void Open(const std::string& url, otlp::Variables variables = {}, std::string_view encoder = "otlp_profiles") {
    DirectOptions options{.receiver = *ParseDirectReceiver(encoder, url, 0, false),
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
    outlet_->OnSampling();
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
  uint64_t FailedMetricsRequests() {
    return metrics_.AddCounter("tributary_export_failures_total", "", {{"exporter", "otlp_metrics"}}).value();
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

TEST_F(DirectOutletTest, SendsEventsAsLogs) {
  TestHttpServer server({.body = "", .header = "Content-Type: application/x-protobuf", .keeps_alive = true});
  Open(server.Url(), {}, "otlp_log");
  Take();
  Batch only_events;
  only_events.sequence = 2;
  only_events.dictionary = std::make_shared<Dictionary>();
  only_events.events.push_back({.kind = ProcessEventKind::kExit});
  EXPECT_TRUE(outlet_->sink().Take(std::move(only_events)).ok());
  Flush(10'000);
  const Outlet::Totals totals = outlet_->totals();
  EXPECT_EQ(totals.sent_samples, 1u);
  EXPECT_EQ(totals.sent_events, 3u);
  EXPECT_TRUE(totals.lost.TotalLost().empty());
  outlet_.reset();  // closes the connection
  EXPECT_THAT(server.Bodies(), testing::Contains(HasSubstr("tributary.process.sum")));
  EXPECT_THAT(server.Bodies(), testing::Contains(HasSubstr("tributary.process.exit")));
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

// The stop cancels the request of metrics. Otherwise it would end after its timeout, and count as a failure.
TEST_F(DirectOutletTest, MetricsDoNotDelayTheEnd) {
  TestHttpServer server({.hangs = true});
  metrics_interval_ns_ = kNsPerSecond;
  Open(server.Url(), {{"OTEL_EXPORTER_OTLP_TIMEOUT", "20000"}});
  server.AwaitRequest();
  Flush(200);
  EXPECT_EQ(FailedMetricsRequests(), 0u);
  EXPECT_THAT(server.Heads(), testing::ElementsAre(HasSubstr("POST /v1/metrics ")));
  outlet_.reset();
}

// Metrics get only a small part of the time of a stop.
TEST_F(DirectOutletTest, MetricsThatHangDelayNeitherSamplesNorTheEnd) {
  NoMetricsServer server;
  metrics_interval_ns_ = kNsPerSecond;
  Open(server.Url(), {{"OTEL_EXPORTER_OTLP_TIMEOUT", "20000"}});
  server.AwaitMetrics();
  Take();
  Flush(3'600'000);
  EXPECT_EQ(outlet_->totals().sent_samples, 1u);
  EXPECT_EQ(outlet_->totals().lost.TotalLost().total(), 0u);
  EXPECT_EQ(FailedMetricsRequests(), 0u);
  outlet_.reset();  // closes the connections
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
