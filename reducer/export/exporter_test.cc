#include "reducer/export/exporter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <fstream>
#include <iterator>

#include "base/directory_testing.h"
#include "base/fd.h"
#include "base/http_server_testing.h"
#include "reducer/store/fake_store_testing.h"

namespace tributary {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
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
    MakeExporter("console?layout=collector", {}, store_, *symbols_, {}, Clock::Real(), metrics_)->reset();
    text = captured.text();
  }
  EXPECT_NE(text.find("\nInstrumentation: native, Function: 0x10\n"), text.npos) << text;
  EXPECT_EQ(store_.Cursor("console", 0), 1);
}

TEST_F(ExporterTest, RefusesAnInvalidUrl) {
  EXPECT_EQ(MakeExporter("stdout", {}, store_, *symbols_, {}, Clock::Real(), metrics_).status().code(),
            absl::StatusCode::kInvalidArgument);
}

// No receiver listens. The exporter still ends soon, and the next run has everything left to send.
TEST_F(ExporterTest, EndsWithoutAReceiver) {
  absl::StatusOr<std::unique_ptr<Exporter>> exporter =
      MakeExporter("otlp://127.0.0.1:1", {}, store_, *symbols_, {}, Clock::Real(), metrics_);
#if TRIBUTARY_HAS_GRPC
  ASSERT_TRUE(exporter.ok()) << exporter.status();
  exporter->reset();
  EXPECT_EQ(store_.Cursor("otlp://127.0.0.1:1", 0), 0);
#else
  EXPECT_EQ(exporter.status().code(), absl::StatusCode::kUnimplemented);
#endif
}

TEST_F(ExporterTest, EndsWithoutAReceiverOfHttp) {
  absl::StatusOr<std::unique_ptr<Exporter>> exporter =
      MakeExporter("otlp+http://127.0.0.1:1", {}, store_, *symbols_, {}, Clock::Real(), metrics_);
  ASSERT_TRUE(exporter.ok()) << exporter.status();
  exporter->reset();
  EXPECT_EQ(store_.Cursor("otlp+http://127.0.0.1:1/v1development/profiles", 0), 0);
}

// Each receiver has a cursor of its own.
TEST_F(ExporterTest, SendsOverHttpInBothEncodings) {
  const TestHttpServer protobuf({.body = ""}), json({.body = ""});
  const auto target = [](const TestHttpServer& server) { return "127.0.0.1:" + std::to_string(server.port()); };
  const auto run = [&](const std::string& url, const ExportVariables& variables) {
    absl::StatusOr<std::unique_ptr<Exporter>> exporter =
        MakeExporter(url, variables, store_, *symbols_, {}, Clock::Real(), metrics_);
    ASSERT_TRUE(exporter.ok()) << exporter.status();
    exporter->reset();
  };
  run("otlp+http://" + target(protobuf) + "/a", {});
  run("otlp+http://" + target(json) + "?encoding=json&compression=none",
      {{"OTEL_EXPORTER_OTLP_HEADERS", "x-tenant=7"}});
  EXPECT_THAT(protobuf.Heads(), ElementsAre(StartsWith("POST /a HTTP/1.1\r\n")));
  EXPECT_THAT(json.Heads(), ElementsAre(HasSubstr("\r\nx-tenant: 7\r\n")));
  EXPECT_THAT(json.Bodies(), ElementsAre(HasSubstr("\"timestampsUnixNano\":[\"1700000000000000000\"]")));
  EXPECT_EQ(store_.Cursor("otlp+http://" + target(protobuf) + "/a", 0), 1);
  EXPECT_EQ(store_.Cursor("otlp+http://" + target(json) + "/v1development/profiles", 0), 1);
}

}  // namespace
}  // namespace tributary
