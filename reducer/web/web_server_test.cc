#include "reducer/web/web_server.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <httplib.h>
#include <poll.h>
#include <sys/socket.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "base/directory_testing.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/percent.h"
#include "base/status.h"
#include "reducer/store/fake_store_testing.h"
#include "reducer/symbolizer/extractor_testing.h"
#include "reducer/web/answers.h"
#include "reducer/web/api.h"
#include "symbols/symbol_builder.h"
#include "symbols/symbol_codec.h"
#include "symbols/table_file.h"

namespace tributary {
namespace {

using store::FakeShard;
using store::FakeStore;
using store::FrameRow;
using store::NodeNo;
using store::ProcessNo;
using store::ThreadNo;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

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

  WebContext Context() {
    return {*engine_, status_, *symbols_, &importer_, notices_, sources_, &fetched_sources_, store_, metrics_, clock_};
  }

  void FillStore() {
    FakeShard& shard = store_.shards[0];
    now_ = clock_.Unix();
    store::Day day = FakeShard::DayOf(now_);
    const uint8_t id[] = {0xab, 0xcd};
    store::ExecutableNo truth = shard.AddExecutable(
        *ExecutableId::Make(ExecutableIdKind::kGnuBuildId, std::span<const uint8_t>(id)), "/opt/<b>truth&");
    NodeNo outer = shard.AddNode(day, NodeNo{0}, FrameRow{FrameKind::kNative, true, truth, 0x10});
    NodeNo inner = shard.AddNode(day, outer, FrameRow{FrameKind::kNative, false, truth, 0x20});
    store::ProcessRow process;
    process.no = ProcessNo{1};
    process.node_id = "node-1";
    process.host_name = "host-1";
    process.pid = Pid{42};
    process.parent = Pid{1};
    process.start_time_ns = 77;
    process.comm = "\"<b>\x1b[2J\xff&";
    process.executable_path = "/opt/bin/truth";
    process.container_id = "c0ffee";
    shard.processes = {process};
    shard.threads = {{ThreadNo{1}, ProcessNo{1}, Tid{43}, "worker\n"}};
    shard.samples = {{UnixNs{now_.value - 5 * kNsPerSecond}, ProcessNo{1}, ThreadNo{1}, inner, 1'000'000},
                     {UnixNs{now_.value - 2 * kNsPerSecond}, ProcessNo{1}, ThreadNo{1}, outer, 500'000}};
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
  FakeStore store_{1};
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

constexpr std::string_view kKinds =
    R"("kinds":[{"name":"root","color":"root","mark":""},{"name":"native","color":"file","mark":""},)"
    R"({"name":"kernel","color":"kernel","mark":"_[k]"},{"name":"inlined","color":"inlined","mark":"_[i]"},)"
    R"({"name":"unknown","color":"unknown","mark":""},{"name":"go","color":"file","mark":""}])";

TEST_F(WebServerTest, FlameGraphIsTheDocumentedShape) {
  Start();
  httplib::Response response = Get("/api/v1/flamegraph?from=-10s");
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(response.get_header_value("Content-Type"), "application/json; charset=utf-8");
  int64_t to_ms = now_.value / kNsPerMs;
  EXPECT_EQ(response.body,
            fmt::format(R"({{"from":{},"to":{},"type":"cpu","unit":"nanoseconds",)"
                        R"("total":{{"ns":1500000,"count":2}},"truncated_nodes":0,)"
                        R"("names":["all","\u003cb\u003etruth\u0026+0x10","\u003cb\u003etruth\u0026+0x20"],)"
                        R"("nodes":{{"parent":[-1,0,1],"name":[0,1,2],"kind":[0,1,1],)"
                        R"("total_ns":[1500000,1500000,1000000],"self_ns":[0,500000,1000000],)"
                        R"("total_count":[2,2,1],"self_count":[0,1,1],"executable":[-1,0,0]}},)"
                        R"("executables":["\u003cb\u003etruth\u0026"],{}}})",
                        to_ms - 10'000, to_ms, kKinds));
  EXPECT_THAT(Get("/api/v1/flamegraph?frames=address").body, HasSubstr(R"("abcd+0x10","abcd+0x20")"));
  EXPECT_THAT(Get("/api/v1/flamegraph?max_nodes=2").body,
              AllOf(HasSubstr(R"("truncated_nodes":1)"), HasSubstr(R"("parent":[-1,0])")));
}

TEST_F(WebServerTest, TopTimelineAndSeriesAreTheDocumentedShapes) {
  Start();
  EXPECT_EQ(Get("/api/v1/top?limit=1").body,
            R"({"type":"cpu","unit":"nanoseconds","total":{"ns":1500000,"count":2},)"
            R"("functions":[{"name":"\u003cb\u003etruth\u0026+0x20",)"
            R"("executable":"\u003cb\u003etruth\u0026","kind":1,"self_ns":1000000,"self_count":1,"total_ns":1000000,)"
            R"("total_count":1}],)" +
                std::string(kKinds) + "}");
  int64_t to_ms = now_.value / kNsPerMs;
  EXPECT_EQ(Get("/api/v1/timeline?from=now-6s&buckets=3").body,
            fmt::format(R"({{"from":{},"to":{},"type":"cpu","unit":"nanoseconds","step_ms":2000,)"
                        R"("cpu_ns":[1000000,0,500000],"count":[1,0,1]}})",
                        to_ms - 6000, to_ms));
  EXPECT_EQ(Get("/api/v1/series").body,
            R"({"type":"cpu","unit":"nanoseconds","processes":[{"pid":42,"parent_pid":1,"start_time_ns":77,)"
            R"("command":"\"\u003cb\u003e\u001b[2J\ufffd\u0026","executable":"truth",)"
            R"("executable_path":"/opt/bin/truth","container_id":"c0ffee","host":"host-1","node_id":"node-1",)"
            R"("ns":1500000,"count":2}],)"
            R"("threads":[{"pid":42,"tid":43,"name":"worker\u000a","host":"host-1","ns":1500000,"count":2}],)"
            R"("containers":[{"id":"c0ffee","name":"","ns":1500000,"count":2}],)"
            R"("hosts":[{"id":"node-1","name":"host-1","ns":1500000,"count":2}],)"
            R"("pods":[],"namespaces":[],"workloads":[],"services":[],"truncated":false})");
  EXPECT_THAT(Get("/api/v1/labels").body, ::testing::StartsWith(R"({"labels":["cloud.account.id",)"));
}

TEST_F(WebServerTest, AnswersContainTheirType) {
  store_.shards[0].types = {{store::TypeNo{1}, {"cpu", "nanoseconds"}}, {store::TypeNo{300}, {"alloc", "by\ntes"}}};
  store_.shards[0].samples[1].type = store::TypeNo{300};
  Start();
  EXPECT_EQ(Get("/api/v1/types?from=-10s").body,
            R"({"types":[{"name":"alloc","unit":"by\u000ates"},{"name":"cpu","unit":"nanoseconds"}]})");
  EXPECT_EQ(Get("/api/v1/types?from=-10s&to=-4s").body, R"({"types":[{"name":"cpu","unit":"nanoseconds"}]})");
  for (const char* verb : {"flamegraph", "top", "timeline", "series", "stack-health", "symbols", "rollouts"}) {
    const std::string body = Get(fmt::format("/api/v1/{}?type=alloc&cpu=1", verb)).body;
    EXPECT_THAT(body, HasSubstr(R"("type":"alloc","unit":"by\u000ates")")) << verb;
  }
}

TEST_F(WebServerTest, StackHealthIsTheDocumentedShape) {
  Start();
  EXPECT_EQ(
      Get("/api/v1/stack-health?from=-10s").body,
      R"({"type":"cpu","unit":"nanoseconds","samples":2,"ns":1500000,)"
      R"("endings":{"complete":2},"endings_ns":{"complete":1500000},"complete_share":1,"executables":[],"truncated_executables":0})");
  std::vector<FakeShard::Sample>& samples = store_.shards[0].samples;
  for (Ending ending : {Ending::kKernelOnly, Ending::kNoTable, Ending::kComplete}) {
    samples.push_back(samples[0]);
    samples.back().ending = ending;
  }
  EXPECT_EQ(Get("/api/v1/stack-health?from=-10s").body,
            R"({"type":"cpu","unit":"nanoseconds","samples":5,"ns":4500000,)"
            R"("endings":{"complete":3,"kernel_only":1,"no_table":1},)"
            R"("endings_ns":{"complete":2500000,"kernel_only":1000000,"no_table":1000000},"complete_share":0.75,)"
            R"("executables":[{"name":"\u003cb\u003etruth\u0026","build_id":"abcd","samples":1,"ns":1000000,)"
            R"("endings":{"no_table":1},"programs":["truth"]}],"truncated_executables":0})");
  // No stacks to judge: no share.
  EXPECT_THAT(Get("/api/v1/stack-health?from=-10s&query=" + Encode(R"({process_pid="1"})")).body,
              AllOf(HasSubstr(R"("samples":0,)"), HasSubstr(R"("complete_share":null)")));
  EXPECT_EQ(Get("/api/v1/stack-health?query=" + Encode("{nonsense=\"1\"}")).status, 400);
}

TEST_F(WebServerTest, StatusShowsStoredLostAndInFlightSamples) {
  Start();
  clock_.Advance(12 * kNsPerSecond);
  std::string body = Get("/api/v1/status").body;
  EXPECT_THAT(body,
              StartsWith(R"({"version":"0.1.0","uptime_s":12,"total":{"captured":10,"idle":4,"stored":6,)"
                         R"("lost":{"bad_record":3},"in_flight":1,"process_events":{"captured":0,"stored":0,"lost":{},)"
                         R"("in_flight":0}},"stack_health":{"complete":6},"nodes":[)"));
  EXPECT_THAT(body,
              HasSubstr(fmt::format(
                  R"({{"id":"node-1","host":"host-1","kernel":"6.1.0","architecture":"amd64","version":"0.1.0",)"
                  R"("cpus":2,"sample_rate_hz":19,"connected":true,"last_seen":{},"captured":10,"idle":4,)"
                  R"("stored":6,"lost":{{"bad_record":3}},"in_flight":1,"process_events":{{"captured":0,"stored":0,)"
                  R"("lost":{{}},"in_flight":0}},"wire_bytes":60,)"
                  R"("stack_health":{{"complete":6}}}})",
                  now_.value / kNsPerMs)));
  EXPECT_THAT(body, HasSubstr(R"("disk_bytes":4096,"shards":3,"symbol_tables":0}})"));
}

TEST_F(WebServerTest, SelectorsArriveDecoded) {
  Start();
  EXPECT_THAT(Get("/api/v1/top?query=" + Encode(R"({process.executable.name="truth"})")).body,
              HasSubstr(R"("ns":1500000,"count":2)"));
  EXPECT_THAT(Get("/api/v1/top?query=" + Encode(R"({process_pid!="42"})")).body, HasSubstr(R"("ns":0,"count":0)"));
  // A user can query for a strange name as the page shows it.
  EXPECT_THAT(Get("/api/v1/top?query=" + Encode("{process_command=\"\\\"<b>\x1b[2J\xef\xbf\xbd&\"}")).body,
              HasSubstr(R"("ns":1500000,"count":2)"));
}

TEST_F(WebServerTest, BadRequestsGetHelpfulErrors) {
  Start();
  struct Case {
    std::string path;
    std::string_view message;
  };
  const Case cases[] = {
      {"/api/v1/flamegraph?from=-5", "from: '-5' is not a time"},
      {"/api/v1/flamegraph?from=99999999999999999999", "is not a time"},
      {"/api/v1/flamegraph?from=now&to=-1h", "the time range is empty"},
      {"/api/v1/flamegraph?query=" + Encode("{process_pid=~\"(\"}"), "regular expression"},
      {"/api/v1/flamegraph?query=" + Encode("{pid=\"1\"}"), "the nearest is"},
      {"/api/v1/flamegraph?query=%00%ff", "expected '{'"},
      {"/api/v1/flamegraph?max_nodes=0", "max_nodes"},
      {"/api/v1/timeline?buckets=2001", "from 1 to 2000"},
      {"/api/v1/series?limit=1001", "from 1 to 1000"},
      {"/api/v1/top?limit=-1", "limit"},
      {"/api/v1/events?cursor=%00%ff", "cursor must be the field 'next'"},
      {"/api/v1/events?from=99999999999999999999", "is not a time"},
      {"/api/v1/events/marks?from=now&to=-1h", "the time range is empty"},
      {"/api/v1/events/programs?query=" + Encode("{thread_id=\"1\"}"), "thread labels"},
      {"/api/v1/top?type=gpu",
       "no samples of type 'gpu'; the existing types are: cpu:nanoseconds, off_cpu:nanoseconds"},
      {"/api/v1/top?query=" + std::string(7000, '{'), "expected a label name"},
  };
  for (const Case& c : cases) {
    httplib::Response response = Get(c.path);
    EXPECT_EQ(response.status, 400) << c.path;
    EXPECT_EQ(response.get_header_value("Content-Type"), "application/json; charset=utf-8");
    EXPECT_THAT(response.body, AllOf(StartsWith(R"({"error":")"), HasSubstr(c.message))) << c.path;
  }
  EXPECT_EQ(Get("/api/v1/nothing").status, 404);
  EXPECT_THAT(Get("/api/v1/nothing").body, StartsWith(R"({"error":")"));
  EXPECT_EQ(Get("/../../etc/passwd").status, 404);
}

TEST_F(WebServerTest, StoreErrorsBecomeStatuses) {
  Start();
  store_.shards[0].error = Error(absl::StatusCode::kUnavailable, "locked");
  EXPECT_EQ(Get("/api/v1/top").status, 503);
  EXPECT_EQ(Get("/api/v1/status").status, 503);
  store_.shards[0].error = Error(absl::StatusCode::kDataLoss, "corrupt");
  EXPECT_EQ(Get("/api/v1/top").status, 500);
  EXPECT_EQ(metrics_.AddCounter("tributary_query_errors_total", "", {{"api", "top"}}).value(), 2u);
}

TEST_F(WebServerTest, RefusesTooLongLinesAndHeaders) {
  Start();
  httplib::Response response = Get("/api/v1/top?query=" + std::string(10'240, 'x'));
  EXPECT_EQ(response.status, 414);
  EXPECT_THAT(response.body, HasSubstr("longer than 8192"));
  std::string headers;
  for (int i = 0; i < 100; ++i) headers += fmt::format("X-{}: {}\r\n", i, std::string(1000, 'a'));
  std::string answer = Raw("GET /healthz HTTP/1.1\r\nHost: localhost\r\n" + headers + "\r\n");
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 400"));
  // One line without an end.
  EXPECT_EQ(Raw(std::string(200'000, 'a')), "");
  EXPECT_EQ(Get("/healthz").status, 200);
}

TEST_F(WebServerTest, OtherProtocolsAndMethodsAreRefused) {
  Start();
  EXPECT_THAT(Raw("\x16\x03\x01 hello\r\n\r\n"), StartsWith("HTTP/1.1 400"));
  EXPECT_THAT(Raw("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), HasSubstr(" 40"));
  EXPECT_THAT(Raw("GET /healthz HTTP/1.1\r\nHost: localhost\r\nHost: evil\r\nConnection: close\r\n\r\n"),
              StartsWith("HTTP/1.1 403"));
  EXPECT_THAT(Raw("GET /healthz HTTP/1.0\r\n\r\n"), StartsWith("HTTP/1.1 403"));
  // The body of a refused request is not parsed as another request.
  std::string answer =
      Raw("POST /api/v1/top HTTP/1.1\r\nHost: localhost\r\nContent-Length: 41\r\n\r\n"
          "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 405"));
  EXPECT_EQ(answer.find("HTTP/1.1", 1), std::string::npos);
  answer = Raw("GET /healthz HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n");
  EXPECT_THAT(answer, AllOf(StartsWith("HTTP/1.1 200"), Not(HasSubstr("400"))));
}

TEST_F(WebServerTest, HeadHasNoBodyAndRangesAreIgnored) {
  Start();
  httplib::Result head = Client().Head("/healthz");
  ASSERT_TRUE(head);
  EXPECT_EQ(head->status, 200);
  EXPECT_EQ(head->body, "");
  httplib::Response response = Get("/healthz", {{"Range", "bytes=0-0,0-0,0-0"}});
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(response.body, "ok\n");
}

TEST_F(WebServerTest, LoopbackAnswersOnlyToItsOwnNames) {
  Start();
  EXPECT_EQ(Get("/healthz", {{"Host", "localhost:4040"}}).status, 200);
  EXPECT_EQ(Get("/healthz", {{"Host", "[::1]:4040"}}).status, 200);
  for (const char* path : {"/", "/healthz", "/metrics", "/api/v1/status", "/api/v1/series"}) {
    httplib::Response response = Get(path, {{"Host", "evil.example:4040"}});
    EXPECT_EQ(response.status, 403) << path;
    EXPECT_THAT(response.body, HasSubstr("evil.example"));
  }
  EXPECT_EQ(metrics_.AddCounter("tributary_query_refusals_total", "", {{"reason", "host"}}).value(), 5u);
}

TEST_F(WebServerTest, OtherAddressesAnswerToAnyName) {
  WebServer::Options options;
  options.host = "0.0.0.0";
  Start(options);
  EXPECT_EQ(Get("/healthz", {{"Host", "profiles.example"}}).status, 200);
}

TEST_F(WebServerTest, EveryAnswerIsHardened) {
  Start();
  for (const char* path : {"/", "/healthz", "/metrics", "/api/v1/status", "/api/v1/top?from=x", "/nothing"}) {
    httplib::Response response = Get(path);
    EXPECT_THAT(response.get_header_value("Content-Security-Policy"),
                AllOf(StartsWith("default-src 'self';"), HasSubstr("img-src 'self' data:"), Not(HasSubstr("unsafe"))));
    EXPECT_EQ(response.get_header_value("X-Content-Type-Options"), "nosniff");
    EXPECT_FALSE(response.has_header("Access-Control-Allow-Origin"));
  }
}

TEST_F(WebServerTest, HealthReadinessAndMetrics) {
  Start();
  EXPECT_EQ(Get("/healthz").body, "ok\n");
  EXPECT_EQ(Get("/readyz").status, 200);
  status_.not_ready = "the store is not open yet";
  EXPECT_EQ(Get("/readyz").status, 503);
  EXPECT_EQ(Get("/readyz").body, "the store is not open yet\n");
  Get("/api/v1/top");
  httplib::Response response = Get("/metrics");
  EXPECT_EQ(response.get_header_value("Content-Type"), "text/plain; version=0.0.4; charset=utf-8");
  EXPECT_THAT(response.body, HasSubstr("tributary_query_requests_total{api=\"top\"} 1\n"));
}

TEST_F(WebServerTest, KeepsConnectionsAlive) {
  Start();
  std::string two =
      Raw("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
          "GET /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
  size_t second = two.find("HTTP/1.1 200", 1);
  EXPECT_NE(second, std::string::npos) << two;
}

TEST_F(WebServerTest, ReportsAPortInUse) {
  Start();
  WebServer::Options options;
  options.port = server_->port();
  absl::StatusOr<std::unique_ptr<WebServer>> second = WebServer::Start(options, Context());
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.status().code(), absl::StatusCode::kAlreadyExists);
  EXPECT_THAT(Message(second.status()),
              HasSubstr(fmt::format("listen on 127.0.0.1:{}: the port is in use", options.port)));
  options.host = "not an address";
  EXPECT_EQ(WebServer::Start(options, Context()).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(WebServerTest, DropsSlowAndSilentClients) {
  WebServer::Options options;
  options.request_timeout_ms = 50;
  options.connections_max = 1;
  Start(options);
  EXPECT_EQ(Raw("GET /healthz HT"), "");  // ends at the server's time-out
  EXPECT_EQ(Get("/healthz").status, 200);
}

TEST_F(WebServerTest, StopsWhileClientsAreConnected) {
  Start();
  httplib::Client client = Client();
  client.set_keep_alive(true);
  ASSERT_TRUE(client.Get("/healthz"));
  server_.reset();  // joins although the connection is open
  EXPECT_FALSE(client.Get("/healthz"));
}

// Two queries are in the store at once. Meanwhile a third query gets no place.
class BlockingStore : public FakeStore {
 public:
  absl::StatusOr<std::unique_ptr<store::StoreReader>> OpenReader(uint32_t shard) override {
    inside.release();
    go_on.acquire();
    return FakeStore::OpenReader(shard);
  }
  std::counting_semaphore<> inside{0}, go_on{0};
};

TEST_F(WebServerTest, RefusesQueriesBeyondTheLimit) {
  BlockingStore blocking;
  QueryEngine engine(blocking, *symbols_);
  WebServer::Options options;
  options.queries_max = 2;
  options.queue_timeout_ms = 1;
  Api api(options, {engine, status_, *symbols_, &importer_, notices_, sources_, nullptr, blocking, metrics_, clock_},
          {});
  api.ServeAnyHost();
  WebRequest request{.method = "GET", .path = "/api/v1/top"};
  WebResponse first, second;
  std::thread one([&] { first = api.Handle(request); });
  std::thread two([&] { second = api.Handle(request); });
  blocking.inside.acquire();
  blocking.inside.acquire();
  WebResponse third = api.Handle(request);
  EXPECT_EQ(third.status, 503);
  EXPECT_THAT(third.body, HasSubstr("too many queries"));
  blocking.go_on.release(2);
  one.join();
  two.join();
  EXPECT_EQ(first.status, 200);
  EXPECT_EQ(second.status, 200);
  blocking.go_on.release();
  EXPECT_EQ(api.Handle(request).status, 200);
  api.Stop();
  EXPECT_EQ(api.Handle(request).status, 503);
}

TEST_F(WebServerTest, PageFilesAreServedByName) {
  const PageFile page[] = {{"index.html", "text/html; charset=utf-8", "<html>"},
                           {"app.js", "text/javascript; charset=utf-8", "1;"}};
  Api api({}, Context(), page);
  api.ServeAnyHost();
  auto get = [&](std::string path) { return api.Handle(WebRequest{.method = "GET", .path = std::move(path)}); };
  EXPECT_EQ(get("/").body, "<html>");
  EXPECT_EQ(get("/").content_type, "text/html; charset=utf-8");
  EXPECT_EQ(get("/app.js").content_type, "text/javascript; charset=utf-8");
  EXPECT_EQ(get("/app").status, 404);
  EXPECT_EQ(get("/index.html/").status, 404);
  Api without({}, {*engine_, status_, *symbols_, nullptr, notices_, sources_, nullptr, store_, metrics_, clock_}, {});
  without.ServeAnyHost();
  EXPECT_THAT(without.Handle(WebRequest{.method = "GET", .path = "/"}).body, HasSubstr("/api/v1/"));
}

// A table of the executable in the store's samples.
std::string TruthTable(SymbolSource source = SymbolSource::kSymtab) {
  const uint8_t id[] = {0xab, 0xcd};
  const auto table = BuildSymbolTable(*ExecutableId::Make(ExecutableIdKind::kGnuBuildId, std::span<const uint8_t>(id)),
                                      source, {{0x18, 0x10, "leaf"}});
  const std::string encoded = EncodeSymbolTable(*table);
  return PackTableFile(DescribeTable(*table, encoded), encoded, 1);
}

TEST_F(WebServerTest, AnUploadNamesEarlierSamples) {
  Start();
  EXPECT_THAT(
      Get("/api/v1/symbols?from=-10s").body,
      HasSubstr(
          R"({"type":"cpu","unit":"nanoseconds","total":{"ns":1500000,"count":2},"executables":[{"build_id":"abcd",)"
          R"("name":"\u003cb\u003etruth\u0026","path":"/opt/\u003cb\u003etruth\u0026",)"
          R"("self_ns":1500000,"self_count":2,"total_ns":1500000,"total_count":2,)"
          R"("addresses":2,"unnamed_addresses":2,"symbols":null})"));
  httplib::Result put = Client().Put("/api/v1/symbols", TruthTable(), "application/octet-stream");
  ASSERT_TRUE(put) << to_string(put.error());
  EXPECT_EQ(put->status, 201);
  EXPECT_THAT(put->body, AllOf(HasSubstr(R"("build_id":"abcd","stored":true,"symbols":{"source":"symtab")"),
                               HasSubstr(R"("origin":"upload","functions":1)")));
  EXPECT_THAT(Get("/api/v1/symbols?from=-10s").body, HasSubstr(R"("addresses":2,"unnamed_addresses":1,"symbols":{)"));
  EXPECT_THAT(Get("/api/v1/flamegraph?from=-10s").body, HasSubstr(R"("leaf")"));
  // A second upload of the same table changes nothing.
  put = Client().Put("/api/v1/symbols?build-id=abcd", TruthTable(), "application/octet-stream");
  ASSERT_TRUE(put);
  EXPECT_EQ(put->status, 200);
  EXPECT_THAT(put->body, HasSubstr(R"("stored":false)"));
}

TEST_F(WebServerTest, RefusesAndListsInvalidUploads) {
  Start({.upload_bytes_max = 100'000});
  auto put = [&](const std::string& path, const std::string& body) {
    httplib::Result result = Client().Put(path, body, "application/octet-stream");
    EXPECT_TRUE(result) << to_string(result.error());
    return result ? *result : httplib::Response();
  };
  EXPECT_EQ(put("/api/v1/symbols", "hello").status, 400);
  EXPECT_EQ(put("/api/v1/symbols", "").status, 400);
  EXPECT_EQ(put("/api/v1/symbols?build-id=nonsense", TruthTable()).status, 400);
  EXPECT_EQ(put("/api/v1/symbols?build-id=0123", TruthTable()).status, 400);
  EXPECT_EQ(put("/api/v1/symbols", std::string(100'001, 'x')).status, 413);
  EXPECT_EQ(put("/api/v1/top", TruthTable()).status, 405);
  EXPECT_EQ(put("/", TruthTable()).status, 405);
  EXPECT_THAT(Get("/api/v1/symbols").body,
              AllOf(HasSubstr("the file is the symbol table of abcd, not of 0123"), HasSubstr("neither an ELF file")));
  EXPECT_EQ(Client().Post("/api/v1/symbols", TruthTable(), "application/octet-stream")->status, 405);
  // The server does not have this name: a page from elsewhere must not be able to send anything to it.
  EXPECT_EQ(
      Client().Put("/api/v1/symbols", {{"Host", "evil.example"}}, TruthTable(), "application/octet-stream")->status,
      403);
}

TEST_F(WebServerTest, DeletesASymbolTable) {
  Start();
  ASSERT_EQ(Client().Put("/api/v1/symbols", TruthTable(), "application/octet-stream")->status, 201);
  EXPECT_THAT(Get("/api/v1/symbols?from=-10s").body,
              HasSubstr(R"("contested":false,"origin_rank":5,"nodes":[],"disputed_by":[]})"));
  EXPECT_EQ(Client().Delete("/api/v1/symbols")->status, 400);
  EXPECT_EQ(Client().Delete("/api/v1/symbols?build-id=nonsense")->status, 400);
  EXPECT_EQ(Client().Delete("/api/v1/symbols?build-id=0123")->status, 404);
  EXPECT_EQ(Client().Delete("/api/v1/top?build-id=abcd")->status, 405);
  // A page from elsewhere must not be able to delete anything.
  EXPECT_EQ(Client().Delete("/api/v1/symbols?build-id=abcd", {{"Host", "evil.example"}})->status, 403);
  EXPECT_EQ(Client().Options("/api/v1/symbols")->status, 405) << "the question of a browser before a DELETE";
  EXPECT_NE(symbols_->Get(*ExecutableId::FromString("abcd")), nullptr);
  const httplib::Result deleted = Client().Delete("/api/v1/symbols?build-id=abcd");
  EXPECT_EQ(deleted->status, 200);
  EXPECT_EQ(deleted->body, R"({"build_id":"abcd","deleted":true})");
  EXPECT_THAT(Get("/api/v1/symbols?from=-10s").body, HasSubstr(R"("symbols":null)"));
  EXPECT_EQ(Client().Delete("/api/v1/symbols?build-id=abcd")->status, 404);
}

TEST_F(WebServerTest, ABrokenUploadEndsOnlyItself) {
  Start();
  EXPECT_THAT(Raw("PUT /api/v1/symbols HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nhello"),
              HasSubstr("HTTP/1.1 400"));
  EXPECT_THAT(Raw("PUT /api/v1/symbols HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
                  "5\r\nhello\r\n0\r\n\r\n"),
              HasSubstr("HTTP/1.1 400"));
  EXPECT_THAT(Raw("PUT /api/v1/symbols HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"),
              HasSubstr("HTTP/1.1 400"));
  EXPECT_EQ(Get("/healthz").status, 200);
}

TEST_F(WebServerTest, LinesOfAFunctionWithTheirText) {
  PutTableWithLines();
  std::filesystem::create_directories(source_directory_.path() + "/src");
  std::ofstream(source_directory_.path() + "/src/truth.c") << "a\nint main() {\n  step(<x>);\n}\n";
  Start();
  // The inner sample is in step, which is inlined into main at line 3. The outer sample is in main at line 2.
  EXPECT_EQ(
      Get("/api/v1/lines?from=-10s&function=main").body,
      R"({"type":"cpu","unit":"nanoseconds","function":"main","executable":"","lines":[)"
      R"({"file":"/build/src/truth.c","line":2,"text":"int main() {","self_ns":500000,"self_count":1,)"
      R"("total_ns":500000,"total_count":1,"addresses":[{"build_id":"abcd","address":"0x10","ns":500000,"count":1}]},)"
      R"({"file":"/build/src/truth.c","line":3,"text":"  step(\u003cx\u003e);","self_ns":0,"self_count":0,)"
      R"("total_ns":1000000,"total_count":1,"addresses":[{"build_id":"abcd","address":"0x20","ns":1000000,"count":1}]}],)"
      R"("sources":[{"file":"/build/src/truth.c","first_line":1,"text":["a","int main() {","  step(\u003cx\u003e);","}"]}],"sources_coming":[]})");
  EXPECT_THAT(Get("/api/v1/lines?from=-10s&function=step").body,
              HasSubstr(R"("line":7,"text":null,"self_ns":1000000)"));
  EXPECT_THAT(Get("/api/v1/lines?from=-10s&function=main&executable=other").body, HasSubstr(R"("lines":[])"));
  EXPECT_EQ(Get("/api/v1/lines?from=-10s").status, 400);
}

TEST_F(WebServerTest, FetchesMissingTextMeanwhile) {
  PutTableWithLines();
  at_server_ = "a\nint main() {\n  step();\n}\n";
  Start();
  const std::string coming = Get("/api/v1/lines?from=-10s&function=main").body;
  EXPECT_THAT(coming, HasSubstr(R"("line":2,"text":null)"));
  EXPECT_THAT(coming, HasSubstr(R"("sources":[],"sources_coming":["/build/src/truth.c"])"));
  fetched_sources_.FetchWaiting();
  const std::string here = Get("/api/v1/lines?from=-10s&function=main").body;
  EXPECT_THAT(here, HasSubstr(R"("line":2,"text":"int main() {")"));
  EXPECT_THAT(here, HasSubstr(R"("sources_coming":[])"));
}

TEST_F(WebServerTest, DoesNotWaitForTextThatNoServerHas) {
  PutTableWithLines();
  Start();
  Get("/api/v1/lines?from=-10s&function=main");
  fetched_sources_.FetchWaiting();
  EXPECT_THAT(Get("/api/v1/lines?from=-10s&function=main").body, HasSubstr(R"("sources":[],"sources_coming":[])"));
}

}  // namespace
}  // namespace tributary
