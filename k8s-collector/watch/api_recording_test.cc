#include "k8s-collector/watch/api_recording.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <array>
#include <fstream>

#include "base/directory_testing.h"
#include "base/status.h"
#include "k8s-collector/watch/api_replay.h"
#include "k8s-collector/watch/recording_transport.h"
#include "k8s-collector/watch/watch_testing.h"

namespace tributary {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Type = RecordedStep::Type;

TEST(RecordedStep, RoundTripsAsOneLine) {
  const std::vector<RecordedStep> steps = {
      {.at = UnixNs{5 * kNsPerMs}, .type = Type::kRequest, .text = "/api/v1/pods?limit=500"},
      {.at = UnixNs{6 * kNsPerMs}, .type = Type::kAnswer, .status = 429, .retry_after_s = 3},
      {.at = UnixNs{7 * kNsPerMs}, .type = Type::kBytes, .text = "{\"a\":\n\"<ä>\"}"},
      {.at = UnixNs{8 * kNsPerMs}, .type = Type::kBytes, .text = "cut in an \xc3"},
      {.at = UnixNs{9 * kNsPerMs}, .type = Type::kEnd, .text = ""},
  };
  for (const RecordedStep& step : steps) {
    const std::string line = EncodeStep(step);
    EXPECT_EQ(line.find('\n'), line.size() - 1);
    auto back = DecodeStep(line);
    ASSERT_TRUE(back.ok()) << line;
    EXPECT_EQ(back->at, step.at);
    EXPECT_EQ(back->type, step.type);
    EXPECT_EQ(back->text, step.text);
    EXPECT_EQ(back->status, step.status);
    EXPECT_EQ(back->retry_after_s, step.retry_after_s);
  }
  for (const char* line : {"", "{}", "{\"t\":1}", "{\"t\":-1,\"end\":\"\"}", "{\"t\":1,\"body_hex\":\"0g\"}",
                           "{\"t\":1,\"status\":0}", "[]"}) {
    EXPECT_FALSE(DecodeStep(line).ok()) << line;
  }
}

// Gives the answers that a test sends, when the test sends them.
class ScriptedTransport : public ApiTransport {
 public:
  std::unique_ptr<Request> Get(std::string_view, std::string_view, Callbacks callbacks) override {
    callbacks_ = std::move(callbacks);
    return std::make_unique<Request>();
  }
  Callbacks callbacks_;
};

class ApiRecordingTest : public testing::Test {
 protected:
  void WriteLines(const std::string& name, const std::string& lines) {
    std::ofstream(directory_.path() + "/" + name) << lines;
  }
  absl::Status Replay() {
    auto replay = ApiReplay::Open(directory_.path());
    if (!replay.ok()) return replay.status();
    return (*replay)->Run(log_, metrics_, [this] { log_.log.push_back("complete"); }, [] {});
  }
  TestDirectory directory_;
  Metrics metrics_;
  WatchLog log_;
};

TEST_F(ApiRecordingTest, ReplaysARecording) {
  FakeClock clock;
  ScriptedTransport server;
  WatchLog live;
  WatchMetrics watch_metrics(metrics_);
  ResourceWatch watch(InfoOf(ResourceKind::kPods), {.seed = 9}, live, watch_metrics);
  {
    auto recording = RecordingTransport::Open(directory_.path(), server, clock);
    ASSERT_TRUE(recording.ok());
    const auto exchange = [&](const std::string& body, absl::Status end) {
      clock.Advance(std::max<int64_t>(0, watch.due().value - clock.Monotonic().value));
      auto request =
          (*recording)
              ->Get(watch.Begin(clock.Monotonic()).target, "",
                    {.on_answer = [&](int status, int64_t after) { watch.OnAnswer(status, after, clock.Monotonic()); },
                     .on_bytes = [&](std::string_view bytes) { return watch.OnBytes(bytes, clock.Monotonic()); },
                     .on_end = [&](const absl::Status& status) { watch.OnEnd(status, clock.Monotonic()); }});
      server.callbacks_.on_answer(200, 0);
      server.callbacks_.on_bytes(body);
      server.callbacks_.on_end(std::move(end));
    };
    exchange(ListJson({ObjectJson("a", 1)}, 5), absl::OkStatus());
    exchange(EventJson("ADDED", ObjectJson("b", 6)), Error(absl::StatusCode::kUnavailable, "reset"));
    exchange(EventJson("ERROR", StatusJson(410, "too old")), Error(absl::StatusCode::kCancelled, ""));
    exchange(ListJson({ObjectJson("b", 6)}, 9), absl::OkStatus());
  }
  ASSERT_TRUE(Replay().ok());
  std::erase(log_.log, "complete");
  EXPECT_EQ(log_.log, live.log);
  EXPECT_EQ(log_.objects, live.objects);
}

TEST_F(ApiRecordingTest, KindsAreReplayedInTheOrderOfTime) {
  WriteLines(
      "pods.jsonl",
      "{\"t\":1000,\"request\":\"/api/v1/pods?limit=500\"}\n{\"t\":1005,\"status\":200}\n" +
          EncodeStep({.at = UnixNs{1010 * kNsPerMs}, .type = Type::kBytes, .text = ListJson({ObjectJson("p", 1)}, 2)}) +
          "{\"t\":1011,\"end\":\"\"}\n");
  std::string refusals;
  for (const auto& [begin, answer, end] : {std::array{900, 1012, 1013}, std::array{2000, 2001, 2002},
                                           std::array{3000, 3001, 3002}, std::array{4000, 4001, 4002}}) {
    refusals += fmt::format(
        "{{\"t\":{},\"request\":\"/api/v1/"
        "nodes?limit=500\"}}\n{{\"t\":{},\"status\":403}}\n{{\"t\":{},\"end\":\"\"}}\n",
        begin, answer, end);
  }
  WriteLines("nodes.jsonl", refusals);
  ASSERT_TRUE(Replay().ok());
  EXPECT_THAT(log_.log, ElementsAre("begin", "begin", "put p", "end", "begin", "begin", "begin", "complete"));
}

TEST_F(ApiRecordingTest, ReportsTheLineOfAnError) {
  EXPECT_TRUE(absl::IsNotFound(Replay()));
  WriteLines("pods.jsonl", "{\"t\":1,\"request\":\"/api/v1/pods?limit=500\"}\nnonsense\n");
  EXPECT_THAT(Message(Replay()), HasSubstr("pods.jsonl:2"));
  WriteLines("pods.jsonl", "{\"t\":1,\"end\":\"\"}\n");
  EXPECT_THAT(Message(Replay()), HasSubstr("pods.jsonl:1"));
  WriteLines("pods.jsonl", "{\"t\":1,\"request\":\"/api/v1/pods?watch=true\"}\n");
  EXPECT_TRUE(absl::IsFailedPrecondition(Replay()));
}

TEST_F(ApiRecordingTest, DoesNotOverwriteARecording) {
  FakeClock clock;
  ScriptedTransport server;
  ASSERT_TRUE(RecordingTransport::Open(directory_.path(), server, clock).ok());
  EXPECT_TRUE(absl::IsAlreadyExists(RecordingTransport::Open(directory_.path(), server, clock).status()));
}

}  // namespace
}  // namespace tributary
