#include "reducer/export/log_sender.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <functional>
#include <map>
#include <vector>

#include "base/status.h"
#include "reducer/metadata/metadata_store.h"
#include "reducer/metadata/resource_joiner.h"
#include "schemas/otlp/logs_service.pb.h"

namespace tributary {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Keeps the sequences of the records that it accepts. Answers from a script, then OK when the script is used up.
class FakeTransport : public otlp::Transport {
 public:
  otlp::CallResult Call(const google::protobuf::Message& request, google::protobuf::Message* response,
                        int64_t timeout_ns) override {
    EXPECT_GT(timeout_ns, 0);
    otlp::CallResult result;
    if (!script.empty()) {
      result = script.front();
      script.pop_front();
    }
    calls.emplace_back();
    if (on_call) on_call();
    if (!result.status.ok()) return result;
    auto& answer = static_cast<opentelemetry::proto::collector::logs::v1::ExportLogsServiceResponse&>(*response);
    answer.mutable_partial_success()->set_rejected_log_records(rejected);
    for (const auto& resource : static_cast<const otlp::LogsRequest&>(request).resource_logs()) {
      for (const auto& attribute : resource.resource().attributes()) {
        resources[attribute.key()].push_back(attribute.value().string_value());
      }
      for (const auto& record : resource.scope_logs(0).log_records()) {
        for (const auto& attribute : record.attributes()) {
          if (attribute.key() == "tributary.sequence") calls.back().push_back(attribute.value().int_value());
        }
      }
    }
    return result;
  }
  void Cancel() override { cancelled = true; }

  std::function<void()> on_call;
  std::deque<otlp::CallResult> script;
  std::vector<std::vector<int64_t>> calls;
  std::map<std::string, std::vector<std::string>> resources;  // by key
  int64_t rejected = 1;                                       // records, in each answer
  bool cancelled = false;
};

class LogSenderTest : public ::testing::Test {
 protected:
  LogSenderTest() {
    auto transport = std::make_unique<FakeTransport>();
    transport_ = transport.get();
    // Two events fit into a request.
    sender_ = std::make_unique<LogSender>(std::move(transport), otlp::LogRecords::kStacks, nullptr, clock_, 700);
    for (int32_t pid = 1; pid <= 5; ++pid) {
      store::EventRecord& event = events_.emplace_back();
      event.pid = Pid{pid};
      event.node_id = "n1";
      event.host_name = "h1";
      event.name = "work";
    }
  }
  RecordResult Send() { return sender_->SendEvents(events_, identity_, kNsPerSecond); }
  static otlp::CallResult Fails(bool may_retry) {
    return {.status = Error(absl::StatusCode::kUnavailable, "x"), .may_retry = may_retry, .retry_after_ns = {}};
  }

  FakeClock clock_;
  FakeTransport* transport_ = nullptr;
  std::unique_ptr<LogSender> sender_;
  std::vector<store::EventRecord> events_;
  const otlp::RequestIdentity identity_{.sender = "r", .session = {1}, .first = 10};
};

TEST_F(LogSenderTest, DividesEventsIntoRequests) {
  const RecordResult result = Send();
  EXPECT_TRUE(result.status.ok());
  EXPECT_THAT(transport_->calls, ElementsAre(ElementsAre(10, 11), ElementsAre(12, 13), ElementsAre(14)));
  EXPECT_EQ(result.rejected_items, 3);
  EXPECT_THAT(transport_->resources["host.name"], ElementsAre("h1", "h1", "h1"));
  EXPECT_THAT(transport_->resources["container.id"], IsEmpty());
}

TEST_F(LogSenderTest, ARetrySendsOnlyWhatWasNotAccepted) {
  transport_->script = {{}, Fails(true)};
  EXPECT_TRUE(Send().may_retry);
  EXPECT_TRUE(Send().status.ok());
  EXPECT_THAT(transport_->calls, ElementsAre(ElementsAre(10, 11), IsEmpty(), ElementsAre(12, 13), ElementsAre(14)));
  transport_->calls.clear();
  EXPECT_TRUE(Send().status.ok());
  EXPECT_THAT(transport_->calls, testing::SizeIs(3)) << "other events may have the same identity after a restart";
}

TEST_F(LogSenderTest, ARefusedRequestDoesNotHoldUpTheOthers) {
  transport_->script = {{}, Fails(false)};
  const RecordResult result = Send();
  EXPECT_TRUE(result.status.ok());
  EXPECT_EQ(result.refused_records, 2u);
  EXPECT_THAT(transport_->calls, ElementsAre(ElementsAre(10, 11), IsEmpty(), ElementsAre(14)));
}

// The first request is refused, and the second one has no answer.
TEST_F(LogSenderTest, ARetryKeepsTheAnswersOfEarlierRequests) {
  transport_->script = {Fails(false), Fails(true)};
  EXPECT_TRUE(Send().may_retry);
  const RecordResult result = Send();
  EXPECT_TRUE(result.status.ok());
  EXPECT_EQ(result.refused_records, 2u);
  EXPECT_EQ(result.rejected_items, 2);
}

// A hostile receiver cannot have rejected more than it got.
TEST_F(LogSenderTest, CountsNoMoreRejectedRecordsThanThereAreEvents) {
  transport_->rejected = INT64_MAX;
  EXPECT_EQ(Send().rejected_items, 5);
}

TEST_F(LogSenderTest, BeginsNoRequestThatItsTimeIsTooShortFor) {
  transport_->on_call = [this] { clock_.Advance(kNsPerSecond / 2); };
  RecordResult result = Send();
  EXPECT_TRUE(result.may_retry);
  EXPECT_THAT(transport_->calls, ElementsAre(ElementsAre(10, 11)));
  while (!result.status.ok()) result = Send();
  EXPECT_THAT(transport_->calls, ElementsAre(ElementsAre(10, 11), ElementsAre(12, 13), ElementsAre(14)));
}

TEST_F(LogSenderTest, CancelEndsTheCall) {
  sender_->Cancel();
  EXPECT_TRUE(transport_->cancelled);
}

TEST_F(LogSenderTest, LossesBelongToTheirHost) {
  transport_->rejected = 0;
  const std::vector<store::LossRecord> losses = {
      {.node_id = "n1", .host_name = "h1", .type = {"cpu", "nanoseconds"}, .samples = 3}};
  EXPECT_TRUE(sender_->SendLosses(losses, identity_, kNsPerSecond).status.ok());
  EXPECT_THAT(transport_->calls, ElementsAre(ElementsAre(10)));
  EXPECT_THAT(transport_->resources["host.name"], ElementsAre("h1"));
}

TEST_F(LogSenderTest, RolloutsBelongToTheirWorkload) {
  const std::vector<Rollout> rollouts = {{.kind = "deployment", .name_space = "shop", .name = "web"},
                                         {.kind = "deployment", .name_space = "shop", .name = "db"}};
  EXPECT_TRUE(sender_->SendRollouts(rollouts, identity_, kNsPerSecond).status.ok());
  EXPECT_THAT(transport_->resources["k8s.deployment.name"], ElementsAre("web", "db"));
}

// With metadata, an event has the attributes that its process has reported about itself. A loss has no service.
TEST_F(LogSenderTest, ResourcesAreThoseOfSamples) {
  Metrics metrics;
  const K8sNameRules rules;
  AttributeNames names;
  MetadataStore metadata(MetadataStore::Options{}, rules, names, clock_, metrics);
  const ResourceJoiner joiner(metadata, rules, names, {{"env", "prod"}}, metrics);
  auto transport = std::make_unique<FakeTransport>();
  transport_ = transport.get();
  LogSender sender(std::move(transport), otlp::LogRecords::kStacks, &joiner, clock_, 100'000);
  events_.resize(1);
  events_[0].attributes = "service.name=checkout,team.name=red";
  EXPECT_TRUE(sender.SendEvents(events_, identity_, kNsPerSecond).status.ok());
  EXPECT_THAT(transport_->resources["service.name"], ElementsAre("checkout"));
  EXPECT_THAT(transport_->resources["team.name"], ElementsAre("red"));
  transport_->resources.clear();
  EXPECT_TRUE(sender
                  .SendLosses(std::vector<store::LossRecord>{{.node_id = "n1", .host_name = "h1", .samples = 3}},
                              identity_, kNsPerSecond)
                  .status.ok());
  EXPECT_THAT(transport_->resources["env"], ElementsAre("prod"));
  EXPECT_THAT(transport_->resources["host.name"], ElementsAre("h1"));
  EXPECT_THAT(transport_->resources["service.name"], IsEmpty());
}

}  // namespace
}  // namespace tributary
