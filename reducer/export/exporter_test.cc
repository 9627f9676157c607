#include "reducer/export/exporter.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "base/directory_testing.h"
#include "base/fd.h"
#include "base/http_server_testing.h"
#include "reducer/store/fake_store_testing.h"

namespace tributary {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Ge;
using ::testing::Gt;
using ::testing::HasSubstr;
using ::testing::Le;
using ::testing::SizeIs;
using ::testing::StartsWith;

// Redirects stdout to a file during its lifetime.
class CapturedStdout {
 public:
  CapturedStdout() : path_("/tmp/tributary-exporter-XXXXXX"), file_(mkstemp(path_.data())), saved_(dup(STDOUT_FILENO)) {
    fflush(stdout);
    dup2(file_.get(), STDOUT_FILENO);
  }
  ~CapturedStdout() {
    dup2(saved_.get(), STDOUT_FILENO);
    unlink(path_.c_str());
  }
  std::string text() const {
    std::ifstream file(path_);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  }

 private:
  std::string path_;
  Fd file_, saved_;
};

TEST(LagMaxOf, IsForReceiversOnly) {
  const auto lag_of = [](std::string_view url) { return LagMaxOf(ParseExportUrl(url).value(), kNsPerMinute).value(); };
  EXPECT_EQ(lag_of("otlp://a"), kNsPerMinute);
  EXPECT_EQ(lag_of("otlp+http://a?lag_max=2m"), 2 * kNsPerMinute);
  EXPECT_EQ(lag_of("otlp://a?lag_max=0"), 0);
  EXPECT_EQ(lag_of("console"), 0);
  EXPECT_EQ(lag_of("file:///d"), 0);
}

class ExporterTest : public ::testing::Test {
 protected:
  ExporterTest() {
    symbols_ = *SymbolStore::Open({.directory = symbols_directory_.path()}, Clock::Real(), metrics_);
    store::FakeShard& shard = store_.shards[0];
    store::ExecutableNo executable =
        shard.AddExecutable(*ExecutableId::Make(ExecutableIdKind::kGnuBuildId, "\x01"), "/usr/bin/work");
    UnixNs time{1'700'000'000 * kNsPerSecond};
    store::NodeNo leaf =
        shard.AddNode(store::FakeShard::DayOf(time), store::NodeNo{0},
                      {.kind = FrameKind::kNative, .is_caller = false, .executable = executable, .address = 0x10});
    shard.samples.push_back({.time = time, .node = leaf, .value = 1'000'000});
  }

  absl::StatusOr<std::unique_ptr<Exporter>> Make(const std::string& url, const ExportVariables& variables = {}) {
    return MakeExporter(ResolveExportUrl(url, variables).value(), variables, store_, *symbols_, {}, Clock::Real(),
                        metrics_);
  }
  // Sends all samples.
  void Run(const std::string& url, const ExportVariables& variables = {}) {
    absl::StatusOr<std::unique_ptr<Exporter>> exporter = Make(url, variables);
    ASSERT_TRUE(exporter.ok()) << exporter.status();
    exporter->reset();
  }
  // Returns the text of the finished files in the directory. Their names must begin with `prefix`.
  static std::string ReadFiles(const std::string& directory, const std::string& prefix) {
    std::string text;
    for (const auto& entry : std::filesystem::directory_iterator(directory)) {
      if (entry.path().extension() != ".folded" && entry.path().extension() != ".jsonl") continue;
      EXPECT_THAT(entry.path().filename().string(), StartsWith(prefix));
      std::ifstream file(entry.path());
      text.append(std::istreambuf_iterator<char>(file), {});
    }
    return text;
  }
  static std::string Target(const TestHttpServer& server) { return "127.0.0.1:" + std::to_string(server.port()); }

  store::FakeStore store_{1};
  Metrics metrics_;
  const TestDirectory symbols_directory_;
  std::unique_ptr<SymbolStore> symbols_;
};

// The frame never gets a name. The exporter is stopped long before its wait for the name would end.
TEST_F(ExporterTest, SendsTheRestWhenItEnds) {
  std::string text;
  {
    CapturedStdout captured;
    Run("console?layout=collector");
    text = captured.text();
  }
  EXPECT_NE(text.find("\nInstrumentation: native: Function: 0x0010, File: /usr/bin/work\n"), text.npos) << text;
  EXPECT_EQ(store_.Cursor("console", 0), 1);
}

TEST_F(ExporterTest, WritesFiles) {
  const TestDirectory directory;
  const std::string url = "file://" + directory.path() + "/stacks";
  Run(url);
  EXPECT_EQ(ReadFiles(directory.path() + "/stacks", "unknown.cpu.nanoseconds."), "work+0x10 1000000\n");
  EXPECT_EQ(store_.Cursor(url, 0), 1);
}

// Formats for people lack the frames of an interpreter around the code that it runs. Formats for programs have them.
TEST_F(ExporterTest, FoldsInterpreters) {
  store::FakeShard& shard = store_.shards[0];
  shard.texts = {"", "App.run"};
  const UnixNs time = shard.samples[0].time;
  const store::Day day = store::FakeShard::DayOf(time);
  const store::ExecutableNo source =
      shard.AddExecutable(*ExecutableId::Make(ExecutableIdKind::kContentHash, std::string(16, 's')), "/srv/app.py");
  const store::NodeNo loop =
      shard.AddNode(day, shard.samples[0].node,
                    {.kind = FrameKind::kInterpreter, .executable = store::ExecutableNo{1}, .address = 0x20});
  const store::NodeNo run = shard.AddNode(
      day, loop, {.kind = FrameKind::kPython, .executable = source, .position = 12, .name = store::StringId{1}});
  shard.samples = {{.time = time, .node = run, .value = 7}, {.time = time, .node = loop, .value = 5}};
  const TestDirectory directory;
  Run("file://" + directory.path() + "/folded");
  EXPECT_EQ(ReadFiles(directory.path() + "/folded", ""), "work+0x10;work+0x20 5\nwork+0x10;App.run 7\n");
  Run("file://" + directory.path() + "/json?format=otlp_json");
  const std::string json = ReadFiles(directory.path() + "/json", "");
  EXPECT_THAT(json, AllOf(HasSubstr("\"cpython\""), HasSubstr("\"App.run\""), HasSubstr("\"/srv/app.py\"")));
  EXPECT_THAT(json, HasSubstr("\"locationIndices\":[1,2,3]"));
  CapturedStdout captured;
  Run("console");
  EXPECT_THAT(captured.text(), HasSubstr("Function: App.run, File: /srv/app.py, Line: 12, Column: 0\n"
                                         "Instrumentation: native: Function: 0x0010, File: /usr/bin/work\n"));
}

// Each of them would remove the other one's files.
TEST_F(ExporterTest, TwoExportersCannotWriteIntoOneDirectory) {
  const TestDirectory directory;
  const absl::StatusOr<std::unique_ptr<Exporter>> first = Make("file://" + directory.path());
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(Make("file://" + directory.path() + "?name=b&format=otlp_json").status().code(),
            absl::StatusCode::kFailedPrecondition);
}

// No receiver listens. The exporter still ends soon, and the next run has everything left to send.
TEST_F(ExporterTest, EndsWithoutAReceiver) {
  Run("otlp://127.0.0.1:1");
  EXPECT_EQ(store_.Cursor("otlp://127.0.0.1:1", 0), 0);
}

TEST_F(ExporterTest, EndsWithoutAnHttpReceiver) {
  Run("otlp+http://127.0.0.1:1");
  EXPECT_EQ(store_.Cursor("otlp+http://127.0.0.1:1/v1development/profiles", 0), 0);
}

// Each receiver has a cursor of its own.
TEST_F(ExporterTest, SendsOverHttpInBothEncodings) {
  const TestHttpServer protobuf({.body = ""}), json({.body = ""});
  Run("otlp+http://" + Target(protobuf) + "/a");
  Run("otlp+http://" + Target(json) + "?encoding=json&compression=none",
      {{"OTEL_EXPORTER_OTLP_HEADERS", "x-tenant=7"}});
  EXPECT_THAT(protobuf.Heads(), ElementsAre(StartsWith("POST /a HTTP/1.1\r\n")));
  EXPECT_THAT(json.Heads(), ElementsAre(HasSubstr("\r\nx-tenant: 7\r\n")));
  EXPECT_THAT(json.Bodies(), ElementsAre(HasSubstr("\"timestampsUnixNano\":[\"1700000000000000000\"]")));
  EXPECT_EQ(store_.Cursor("otlp+http://" + Target(protobuf) + "/a", 0), 1);
  EXPECT_EQ(store_.Cursor("otlp+http://" + Target(json) + "/v1development/profiles", 0), 1);
}

TEST_F(ExporterTest, SendsOlderGenerations) {
  const TestHttpServer server({.body = ""});
  const auto send = [&](const std::string& generation) {
    Run(fmt::format("otlp+http://{}?name=n{}&encoding=json&compression=none&generation={}", Target(server), generation,
                    generation));
    return server.Bodies().back();
  };
  EXPECT_THAT(send("1.7"), HasSubstr("\"locationsLength\":1,\"value\":[\"1\"]"));
  EXPECT_THAT(send("1.8"), HasSubstr("\"sample\":[{\"stackIndex\":1"));
  EXPECT_THAT(send("1.9"), HasSubstr("\"samples\":[{\"stackIndex\":1"));
  EXPECT_THAT(send("1.10"), HasSubstr("\"samples\":[{\"stackIndex\":1"));
}

// The last values are sent at the end. No sample is sent, and no cursor moves.
TEST_F(ExporterTest, SendsMetricsInBothEncodings) {
  const TestHttpServer protobuf({.body = ""}), json({.body = ""});
  Run("otlp+http://" + Target(protobuf) + "?signal=metrics");
  Run("otlp+http://" + Target(json) + "?signal=metrics&encoding=json&compression=none");
  EXPECT_THAT(protobuf.Heads(), Each(StartsWith("POST /v1/metrics HTTP/1.1\r\n")));
  EXPECT_THAT(protobuf.Heads(), SizeIs(Ge(1u)));
  EXPECT_THAT(json.Bodies().back(), HasSubstr("{\"name\":\"tributary_export_data_points_total\","));
  EXPECT_THAT(json.Bodies().back(), HasSubstr("{\"key\":\"service.name\",\"value\":{\"stringValue\":\"tributary-"));
  EXPECT_EQ(metrics_.AddCounter("tributary_export_samples_total", "", {{"exporter", "otlp"}}).value(), 0u);
}

TEST_F(ExporterTest, EndsWithoutAReceiverOfMetrics) { Run("otlp+http://127.0.0.1:1?signal=metrics"); }

// JSON is larger than protobuf, here because it writes two bytes for each quotation mark of a name. Without smaller
// requests, many receivers would refuse the samples.
TEST_F(ExporterTest, RequestsInJsonAreBelow4MiBToo) {
  store::FakeShard& shard = store_.shards[0];
  const UnixNs time{1'700'000'000 * kNsPerSecond};
  for (int i = 0; i < 400; ++i) {
    const store::ExecutableNo executable =
        shard.AddExecutable(*ExecutableId::Make(ExecutableIdKind::kGnuBuildId, std::to_string(i)),
                            std::string(8000, '"') + std::to_string(i));
    const store::NodeNo node =
        shard.AddNode(store::FakeShard::DayOf(time), store::NodeNo{0},
                      {.kind = FrameKind::kNative, .is_caller = false, .executable = executable, .address = 0x10});
    shard.samples.push_back({.time = time, .node = node, .value = 1'000'000});
  }
  const TestHttpServer server({.body = ""});
  Run("otlp+http://" + Target(server) + "?encoding=json&compression=none");
  EXPECT_THAT(server.Bodies(), SizeIs(Gt(1u)));
  EXPECT_THAT(server.Bodies(), Each(SizeIs(AllOf(Gt(0u), Le(4u << 20)))));
  EXPECT_EQ(store_.Cursor("otlp+http://" + Target(server) + "/v1development/profiles", 0), 401);
}

}  // namespace
}  // namespace tributary
