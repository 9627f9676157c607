#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <httplib.h>
#include <sys/socket.h>

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/directory_testing.h"
#include "base/fd.h"
#include "base/percent.h"
#include "reducer/store/fake_store_testing.h"
#include "reducer/symbolizer/extractor_testing.h"
#include "reducer/web/api.h"
#include "reducer/web/web_server.h"
#include "symbols/symbol_builder.h"
#include "symbols/symbol_codec.h"

// A web server over a store with two samples.

namespace tributary {

class FakeStatus : public StatusSource {
 public:
  bool IsConnected(std::string_view node_id) const override { return node_id == "node-1"; }
  std::string NotReady() const override { return not_ready; }
  uint32_t shards() const override { return 3; }
  std::string not_ready;
};

class WebServerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    engine_ = std::make_unique<QueryEngine>(store_, *symbols_);
    FillStore();
  }

  void Start(WebServer::Options options = {}) {
    options.port = 0;
    absl::StatusOr<std::unique_ptr<WebServer>> server = WebServer::Start(options, Context());
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
  }

  std::shared_ptr<AccessControl> LetsEveryoneIn() {
    return AccessControl::Create({.is_loopback = false, .allow_anonymous = true}, clock_).value();
  }
  WebContext Context() {
    return {*engine_, status_, *symbols_, &importer_, notices_, sources_, &fetched_sources_, store_, metrics_, clock_};
  }

  void FillStore() {
    store::FakeShard& shard = store_.shards[0];
    now_ = clock_.Unix();
    store::Day day = store::FakeShard::DayOf(now_);
    const uint8_t id[] = {0xab, 0xcd};
    store::ExecutableNo truth = shard.AddExecutable(
        *ExecutableId::Make(ExecutableIdKind::kGnuBuildId, std::span<const uint8_t>(id)), "/opt/<b>truth&");
    store::NodeNo outer = shard.AddNode(day, store::NodeNo{0}, store::FrameRow{FrameKind::kNative, true, truth, 0x10});
    store::NodeNo inner = shard.AddNode(day, outer, store::FrameRow{FrameKind::kNative, false, truth, 0x20});
    store::ProcessRow process;
    process.no = store::ProcessNo{1};
    process.node_id = "node-1";
    process.host_name = "host-1";
    process.pid = Pid{42};
    process.parent = Pid{1};
    process.start_time_ns = 77;
    process.comm = "\"<b>\x1b[2J\xff&";
    process.executable_path = "/opt/bin/truth";
    process.container_id = "c0ffee";
    shard.processes = {process};
    shard.threads = {{store::ThreadNo{1}, store::ProcessNo{1}, Tid{43}, "worker\n"}};
    shard.samples = {{UnixNs{now_.value - 5 * kNsPerSecond}, store::ProcessNo{1}, store::ThreadNo{1}, inner, 1'000'000},
                     {UnixNs{now_.value - 2 * kNsPerSecond}, store::ProcessNo{1}, store::ThreadNo{1}, outer, 500'000}};
    store::NodeStatus node;
    node.node_id = "node-1";
    node.host_name = "host-1";
    node.kernel_release = "6.1.0";
    node.architecture = "amd64";
    node.agent_version = "0.1.0";
    node.cpu_count = 2;
    node.sample_rate_hz = 19;
    node.last_seen = now_;
    node.accounting.captured = 10;
    node.accounting.idle = 4;
    node.accounting.lost[static_cast<int>(LossReason::kBadRecord)] = 3;
    node.stored = 6;
    node.wire_bytes = 60;
    node.endings[static_cast<int>(Ending::kComplete)] = 6;
    shard.nodes = {node};
  }

  httplib::Client Client() { return httplib::Client("127.0.0.1", server_->port()); }
  httplib::Response Get(const std::string& path, const httplib::Headers& headers = {}) {
    httplib::Result result = Client().Get(path, headers);
    EXPECT_TRUE(result) << path << ": " << to_string(result.error());
    return result ? *result : httplib::Response();
  }
  // Encodes every byte as %XX, so that the server must decode letters, too.
  static std::string Encode(std::string_view text) {
    return PercentEncoded(text, [](char) { return false; });
  }

  // A table for /build/src/truth.c; step is inlined into main.
  void PutTableWithLines() {
    SymbolTableBuilder builder;
    const uint32_t file = builder.AddString("/build/src/truth.c");
    const uint32_t main = builder.AddNode(builder.AddString("main"));
    const uint32_t inlined = builder.AddNode(builder.AddString("step"), main, file, 3);
    builder.AddCode(0x00, 0x40, 0, main, SymbolTableBuilder::Layer::kDebugInfo);
    builder.AddCode(0x18, 0x28, 1, inlined, SymbolTableBuilder::Layer::kDebugInfo);
    const SymbolLine lines[] = {{0x00, file, 2}, {0x18, file, 7}, {0x28, file, 4}};
    builder.AddLines(lines, 0x40);
    const uint8_t id[] = {0xab, 0xcd};
    const auto table = builder.Build(*ExecutableId::Make(ExecutableIdKind::kGnuBuildId, std::span<const uint8_t>(id)),
                                     SymbolSource::kDwarf);
    ASSERT_TRUE(symbols_->Put(table->id(), EncodeSymbolTable(*table), SymbolOrigin::kUpload).ok());
  }
  // Sends bytes as they are. Returns the answer until the server closes the connection.
  std::string Raw(std::string_view request) {
    Fd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(server_->port());
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    EXPECT_EQ(send(fd.get(), request.data(), request.size(), MSG_NOSIGNAL), static_cast<ssize_t>(request.size()));
    std::string answer;
    char buffer[4096];
    for (ssize_t n; (n = recv(fd.get(), buffer, sizeof(buffer), 0)) > 0;) answer.append(buffer, static_cast<size_t>(n));
    return answer;
  }

  FakeClock clock_;
  UnixNs now_;
  Metrics metrics_;
  store::FakeStore store_{1};
  FakeStatus status_;
  const TestDirectory symbols_directory_;
  std::unique_ptr<SymbolStore> symbols_ =
      *SymbolStore::Open({.directory = symbols_directory_.path()}, clock_, metrics_);
  SymbolNotices notices_{clock_};
  const TestDirectory source_directory_;
  const SourceFiles sources_{{source_directory_.path()}};
  std::string at_server_;  // the text of every source file; "": no text
  SourceFetcher fetched_sources_{{.in_background = false},
                                 [this](const ExecutableId&, const std::string&) -> absl::StatusOr<std::string> {
                                   if (at_server_.empty()) return absl::NotFoundError("no server has it");
                                   return at_server_;
                                 },
                                 notices_,
                                 clock_,
                                 metrics_};
  SymbolExtractor extractor_{{}, ForkExtractor, metrics_};
  SymbolImporter importer_{*symbols_, extractor_, notices_};
  std::unique_ptr<QueryEngine> engine_;
  std::unique_ptr<WebServer> server_;
};

}  // namespace tributary
