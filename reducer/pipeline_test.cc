#include "reducer/pipeline.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/fd.h"
#include "reducer/store/store_testing.h"

namespace tributary {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

ReducerOptions LocalOptions(const std::string& directory) {
  ReducerOptions options;
  options.intake_listen = {"127.0.0.1", 0};
  options.http_listen = {"127.0.0.1", 0};
  options.data_dir = directory + "/data";
  options.store = DefaultStoreUrl(options.data_dir);
  options.ports_file = directory + "/ports";
  options.raw_age_ns = kNsPerDay;
  options.sum_age_ns = 7 * kNsPerDay;
  options.event_age_ns = 7 * kNsPerDay;
  options.store_bytes_max = 1u << 30;
  return options;
}

std::string HttpGet(uint16_t port, const std::string& path, const std::string& host = "localhost",
                    in_addr_t address_to = INADDR_LOOPBACK) {
  Fd socket_fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(address_to);
  if (connect(socket_fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0) return "";
  const std::string request = "GET " + path + " HTTP/1.1\r\nHost: " + host + "\r\nConnection: close\r\n\r\n";
  if (write(socket_fd.get(), request.data(), request.size()) < 0) return "";
  std::string answer;
  char buffer[4096];
  for (ssize_t size; (size = read(socket_fd.get(), buffer, sizeof(buffer))) > 0;)
    answer.append(buffer, static_cast<size_t>(size));
  return answer;
}

TEST(Pipeline, WritesItsPortsAndAnswers) {
  TestDirectory directory;
  Metrics metrics;
  auto pipeline = Pipeline::Start(LocalOptions(directory.path()), Clock::Real(), metrics);
  ASSERT_TRUE(pipeline.ok()) << pipeline.status();
  std::stringstream ports;
  ports << std::ifstream(directory.path() + "/ports").rdbuf();
  EXPECT_EQ(ports.str(), "{\"intake\":" + std::to_string((*pipeline)->intake_port()) +
                             ",\"http\":" + std::to_string((*pipeline)->http_port()) + "}\n");
  EXPECT_THAT(HttpGet((*pipeline)->http_port(), "/readyz"), HasSubstr("200"));
  const std::string text = HttpGet((*pipeline)->http_port(), "/metrics");
  EXPECT_THAT(text, HasSubstr("tributary_reducer_disk_bytes"));
  EXPECT_THAT(text, HasSubstr("tributary_reducer_resident_bytes"));
}

TEST(Pipeline, AcceptsTheAddressOfHttpListenAsHost) {
  TestDirectory directory;
  Metrics metrics;
  ReducerOptions options = LocalOptions(directory.path());
  options.http_listen = {"127.0.0.9", 0};
  auto pipeline = Pipeline::Start(options, Clock::Real(), metrics);
  ASSERT_TRUE(pipeline.ok()) << pipeline.status();
  const uint16_t port = (*pipeline)->http_port();
  EXPECT_THAT(HttpGet(port, "/readyz", "127.0.0.9", 0x7f000009), HasSubstr(" 200 "));
  EXPECT_THAT(HttpGet(port, "/readyz", "evil.example", 0x7f000009), HasSubstr(" 403 "));
}

TEST(Pipeline, OtherAddressesThanLoopbackNeedAWayToSignIn) {
  TestDirectory directory;
  ReducerOptions options = LocalOptions(directory.path());
  options.http_listen = {"0.0.0.0", 0};
  {
    Metrics metrics;
    EXPECT_EQ(
        Pipeline::Start(options, Clock::Real(), metrics).status().message(),
        "--http-listen 0.0.0.0:0 is not a loopback address, so callers must sign in: set --http-token-file, "
        "--http-tls-ca or --http-proxy-from, or set --allow-anonymous to let everyone in, or listen only on 127.0.0.1");
  }
  Metrics metrics;
  options.http_access.allow_anonymous = true;
  auto pipeline = Pipeline::Start(options, Clock::Real(), metrics);
  ASSERT_TRUE(pipeline.ok()) << pipeline.status();
  EXPECT_THAT(HttpGet((*pipeline)->http_port(), "/metrics"), HasSubstr(" 200 "));
  // A reload must not open what a start would refuse.
  ReducerOptions fresh = options;
  fresh.http_access.allow_anonymous = false;
  EXPECT_THAT(std::string((*pipeline)->ReplaceCredentials(fresh).message()), HasSubstr("callers must sign in"));
  EXPECT_THAT(HttpGet((*pipeline)->http_port(), "/metrics"), HasSubstr(" 200 "));
  fresh.http_access.token_file = directory.path() + "/missing";
  EXPECT_THAT(std::string((*pipeline)->ReplaceCredentials(fresh).message()), HasSubstr("--http-token-file: "));
  fresh.http_access.token_file = directory.path() + "/tokens";
  std::ofstream(fresh.http_access.token_file) << "a-token-of-16-bytes read\n";
  std::filesystem::permissions(fresh.http_access.token_file, std::filesystem::perms::owner_read);
  ASSERT_TRUE((*pipeline)->ReplaceCredentials(fresh).ok());
  EXPECT_THAT(HttpGet((*pipeline)->http_port(), "/metrics"), HasSubstr(" 401 "));
  fresh.http_tls_cert = fresh.http_tls_key = "some file";
  EXPECT_THAT(std::string((*pipeline)->ReplaceCredentials(fresh).message()), HasSubstr("only at a restart"));
}

// Requests of a proxy on this machine come from a loopback address. If no range has it, everyone who may use the proxy
// would have all rights.
TEST(Pipeline, TheProxyOfALoopbackPortIsOnLoopback) {
  TestDirectory directory;
  ReducerOptions options = LocalOptions(directory.path());
  options.http_access.proxies = {IpRange::Parse("192.0.2.1").value()};
  options.http_access.proxy_user_header = "X-User";
  {
    Metrics metrics;
    EXPECT_THAT(std::string(Pipeline::Start(options, Clock::Real(), metrics).status().message()),
                HasSubstr("those of a proxy come from 127.0.0.1"));
  }
  ReducerOptions covered = options;
  covered.http_access.proxies.push_back(IpRange::Parse("127.0.0.0/8").value());
  Metrics metrics;
  auto pipeline = Pipeline::Start(covered, Clock::Real(), metrics);
  ASSERT_TRUE(pipeline.ok()) << pipeline.status();
  EXPECT_THAT(std::string((*pipeline)->ReplaceCredentials(options).message()), HasSubstr("127.0.0.1"));
}

TEST(Pipeline, ServesMetricsOnAPortOfTheirOwn) {
  TestDirectory directory;
  Metrics metrics;
  ReducerOptions options = LocalOptions(directory.path());
  options.metrics_listen = {.address = HostPort{"127.0.0.1", 0}, .is_given = true};
  auto pipeline = Pipeline::Start(options, Clock::Real(), metrics);
  ASSERT_TRUE(pipeline.ok()) << pipeline.status();
  std::stringstream ports;
  ports << std::ifstream(directory.path() + "/ports").rdbuf();
  const size_t at = ports.str().find("\"metrics\":");
  ASSERT_NE(at, std::string::npos) << ports.str();
  const auto port = static_cast<uint16_t>(std::stoi(ports.str().substr(at + 10)));
  EXPECT_THAT(HttpGet(port, "/metrics"), HasSubstr("tributary_reducer_disk_bytes"));
  EXPECT_THAT(HttpGet(port, "/readyz"), HasSubstr(" 200 "));
  EXPECT_THAT(HttpGet(port, "/api/v1/status"), HasSubstr(" 404 "));
}

TEST(Pipeline, RestartsOnTheSameDataAndWithMoreShards) {
  TestDirectory directory;
  for (uint32_t shards : {1u, 3u, 2u}) {
    Metrics metrics;
    ReducerOptions options = LocalOptions(directory.path());
    options.shards = shards;
    auto pipeline = Pipeline::Start(options, Clock::Real(), metrics);
    ASSERT_TRUE(pipeline.ok()) << pipeline.status();
  }
}

TEST(Pipeline, KeepsItsStoresAtTheUrl) {
  TestDirectory directory;
  Metrics metrics;
  ReducerOptions options = LocalOptions(directory.path());
  options.store = "sqlite:" + directory.path() + "/elsewhere";
  auto pipeline = Pipeline::Start(options, Clock::Real(), metrics);
  ASSERT_TRUE(pipeline.ok()) << pipeline.status();
  EXPECT_TRUE(std::filesystem::exists(directory.path() + "/elsewhere/shard-0.db"));
  EXPECT_FALSE(std::filesystem::exists(directory.path() + "/data/shard-0.db"));
  EXPECT_TRUE(std::filesystem::exists(directory.path() + "/data/symbols"));
}

TEST(Pipeline, NamesTheOptionOfADamagedStore) {
  TestDirectory directory;
  ReducerOptions options = LocalOptions(directory.path());
  for (const char* place : {"data", "elsewhere"}) {
    options.store = "sqlite:" + directory.path() + "/" + place;
    std::filesystem::create_directory(directory.path() + "/" + place);
    std::ofstream(directory.path() + "/" + place + "/shard-0.db") << std::string(8192, 'x');
    Metrics metrics;
    const absl::Status status = Pipeline::Start(options, Clock::Real(), metrics).status();
    EXPECT_THAT(std::string(status.message()),
                ::testing::StartsWith(place == std::string("data") ? "--data-dir: " : "--store: "));
    EXPECT_THAT(std::string(status.message()), HasSubstr("restore the file from a backup"));
  }
}

TEST(Pipeline, ReportsAStartErrorInOneLine) {
  TestDirectory directory, other;
  Metrics metrics;
  auto running = Pipeline::Start(LocalOptions(directory.path()), Clock::Real(), metrics);
  ASSERT_TRUE(running.ok()) << running.status();
  auto refusal = [&](const ReducerOptions& options) {
    Metrics of_second;
    absl::Status status = Pipeline::Start(options, Clock::Real(), of_second).status();
    EXPECT_FALSE(status.ok());
    EXPECT_EQ(status.message().find('\n'), absl::string_view::npos);
    return std::string(status.message());
  };
  EXPECT_THAT(refusal(LocalOptions(directory.path())), HasSubstr("in use by another reducer"));
  ReducerOptions options = LocalOptions(other.path());
  options.intake_listen.port = (*running)->intake_port();
  EXPECT_THAT(refusal(options), HasSubstr("--intake-listen"));
  options = LocalOptions(other.path());
  options.http_listen.port = (*running)->http_port();
  EXPECT_THAT(refusal(options), HasSubstr("--http-listen"));
  options = LocalOptions(other.path());
  options.exports = {"carrier-pigeon://loft"};
  EXPECT_THAT(refusal(options), HasSubstr("--export carrier-pigeon://loft"));
  options.exports = {"otlp+http://gw:4318?headers_file=a", "otlp+http://gw:4318?headers_file=b"};
  EXPECT_THAT(refusal(options), HasSubstr("add the parameter name=NAME"));
  options.exports = {"otlp+https://ann:secret@gateway:4318"};
  EXPECT_THAT(refusal(options), AllOf(HasSubstr("--export otlp+https://***@gateway:4318"), HasSubstr("headers_file"),
                                      Not(HasSubstr("secret"))));
  options = LocalOptions(other.path());
  options.data_dir = "/proc/no-such-place";
  EXPECT_THAT(refusal(options), HasSubstr("--data-dir"));
  options = LocalOptions(other.path());
  options.store = "sqlite:/proc/no-such-place";
  EXPECT_THAT(refusal(options), HasSubstr("--store"));
  options = LocalOptions(other.path());
  options.ports_file = "/proc/no-such-place";
  EXPECT_THAT(refusal(options), HasSubstr("--ports-file"));
}

}  // namespace
}  // namespace tributary
