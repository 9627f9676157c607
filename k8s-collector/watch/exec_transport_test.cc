#include "k8s-collector/watch/exec_transport.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "base/directory_testing.h"
#include "base/loop_testing.h"
#include "base/status.h"
#include "base/tcp.h"

namespace tributary {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr uint64_t kPatienceMs = 20'000;

// A server that accepts the tokens in `accepted_` and answers 401 to others. The plug-in's n-th run gives the token tn.
class ExecTransportTest : public testing::Test {
 protected:
  void SetUp() override {
    const std::string path = directory_.path() + "/plugin", runs = directory_.path() + "/runs";
    std::ofstream(path) << "#!/bin/sh\necho run >> " << runs << "\n"
                        << R"(printf '{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1",)"
                        << R"("status":{"token":"t%d"}}' $(wc -l < )" << runs << ")\n";
    std::filesystem::permissions(path, std::filesystem::perms::owner_all);
    auto listener = TcpListener::Listen(loop_, "127.0.0.1", 0, [this](std::unique_ptr<TcpStream> tcp) {
      Peer& peer = peers_.emplace_back(Peer{.stream = std::move(tcp), .asked = {}});
      peer.stream->Start(
          {.on_data = [this, &peer](std::string_view bytes) { Answer(peer, bytes); }, .on_close = [](absl::Status) {}});
    });
    ASSERT_TRUE(listener.ok());
    listener_ = *std::move(listener);
    const ApiAccess access{.server = fmt::format("http://127.0.0.1:{}", listener_->port()),
                           .exec = ExecConfig{.api_version = kExecV1, .command = path}};
    plugin_ = std::make_unique<ExecPlugin>(loop_, access, std::map<std::string, std::string>{{"PATH", "/usr/bin:/bin"}},
                                           clock_, metrics_);
    http_ = std::make_unique<HttpTransport>(loop_, access, metrics_);
    transport_ = std::make_unique<ExecTransport>(*http_, *plugin_);
  }
  void TearDown() override { requests_.clear(); }

  struct Peer {
    std::unique_ptr<TcpStream> stream;
    std::string asked;
  };
  void Answer(Peer& peer, std::string_view bytes) {
    peer.asked += bytes;
    if (!peer.asked.ends_with("\r\n\r\n")) return;
    const size_t begin = peer.asked.find("Bearer ") + 7;
    const std::string token = peer.asked.substr(begin, peer.asked.find("\r\n", begin) - begin);
    peer.asked.clear();
    tokens_.push_back(token);
    peer.stream->Write(accepted_.contains(token)
                           ? "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
                           : "HTTP/1.1 401 Unauthorized\r\nContent-Length: 12\r\n\r\nUnauthorized");
  }

  struct Result {
    int status = 0;
    std::string body;
    absl::Status end;
    bool has_ended = false;
  };
  void Begin(Result& result) {
    requests_.push_back(transport_->Get("/api", "application/json",
                                        {.on_answer = [&](int status, int64_t) { result.status = status; },
                                         .on_bytes =
                                             [&](std::string_view bytes) {
                                               result.body += bytes;
                                               return true;
                                             },
                                         .on_end =
                                             [&](absl::Status end) {
                                               result.end = std::move(end);
                                               result.has_ended = true;
                                             }}));
  }
  Result Get() {
    Result result;
    Begin(result);
    EXPECT_FALSE(result.has_ended);
    EXPECT_TRUE(RunLoopUntil(loop_, [&] { return result.has_ended; }, kPatienceMs));
    return result;
  }

  TestDirectory directory_;
  Loop loop_;
  FakeClock clock_;
  Metrics metrics_;
  std::unique_ptr<TcpListener> listener_;
  std::list<Peer> peers_;
  std::set<std::string> accepted_;
  std::vector<std::string> tokens_;  // of all requests
  std::unique_ptr<ExecPlugin> plugin_;
  std::unique_ptr<HttpTransport> http_;
  std::unique_ptr<ExecTransport> transport_;
  std::vector<std::unique_ptr<ApiTransport::Request>> requests_;
};

TEST_F(ExecTransportTest, SendsTheTokenOfThePlugin) {
  accepted_ = {"t1"};
  const Result result = Get();
  EXPECT_TRUE(result.end.ok()) << result.end;
  EXPECT_EQ(result.body, "ok");
  EXPECT_EQ(Get().status, 200);
  EXPECT_THAT(tokens_, ElementsAre("t1", "t1"));
}

TEST_F(ExecTransportTest, GetsNewCredentialsAfter401AndSendsTheRequestAgain) {
  accepted_ = {"t1"};
  EXPECT_EQ(Get().status, 200);
  accepted_ = {"t2"};
  const Result result = Get();
  EXPECT_TRUE(result.end.ok()) << result.end;
  EXPECT_EQ(result.status, 200);
  EXPECT_EQ(result.body, "ok");
  EXPECT_THAT(tokens_, ElementsAre("t1", "t1", "t2"));
}

TEST_F(ExecTransportTest, RequestsAtTheSameTimeShareARun) {
  accepted_ = {"t1"};
  EXPECT_EQ(Get().status, 200);
  accepted_ = {"t2"};
  Result first, second;
  Begin(first);
  Begin(second);
  EXPECT_TRUE(RunLoopUntil(loop_, [&] { return first.has_ended && second.has_ended; }, kPatienceMs));
  EXPECT_EQ(first.status, 200);
  EXPECT_EQ(second.status, 200);
  EXPECT_EQ(tokens_.back(), "t2");
}

TEST_F(ExecTransportTest, NewCredentialsThatAreRefusedAreAnError) {
  const Result result = Get();
  EXPECT_TRUE(absl::IsUnauthenticated(result.end)) << result.end;
  EXPECT_THAT(Message(result.end), HasSubstr("does not accept its credentials"));
  EXPECT_EQ(result.status, 0);
  EXPECT_TRUE(absl::IsUnauthenticated(Get().end));
  EXPECT_THAT(tokens_, ElementsAre("t1"));  // no more before the back-off has passed
  clock_.Advance(kNsPerSecond);
  accepted_ = {"t2"};
  EXPECT_EQ(Get().status, 200);
}

TEST_F(ExecTransportTest, ARequestThatWaitsCanBeCancelled) {
  Result result;
  Begin(result);
  requests_.clear();
  accepted_ = {"t1"};
  EXPECT_EQ(Get().status, 200);
  EXPECT_FALSE(result.has_ended);
}

}  // namespace
}  // namespace tributary
