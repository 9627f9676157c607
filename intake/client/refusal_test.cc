// What a node says about a reducer that does not accept it.

#include <gmock/gmock.h>

#include "intake/testing/reducer_testing.h"

namespace tributary::intake {
namespace {

using testing::HasSubstr;

class RefusalTest : public IntakeTest {
 protected:
  // Listens as a reducer that refuses each node.
  void StartRefusing() {
    auto listener =
        TcpListener::Listen(loop_, "127.0.0.1", server_options_.port, [this](std::unique_ptr<TcpStream> stream) {
          stream->Start(
              {.on_data = [](std::string_view) {}, .on_close = [](const absl::Status&) {}, .on_drained = [] {}});
          stream->Write(EncodeFrame(MessageType::kGoodbye, kChannelSamples, 0,
                                    EncodeGoodbye({.reason = "the token is not known", .retry = false})));
          streams_.push_back(std::move(stream));
        });
    ASSERT_TRUE(listener.ok()) << listener.status();
    refusing_ = *std::move(listener);
    server_options_.port = refusing_->port();
  }
  void StopRefusing() {
    refusing_.reset();
    streams_.clear();
  }

  std::unique_ptr<TcpListener> refusing_;
  std::vector<std::unique_ptr<TcpStream>> streams_;
};

TEST_F(RefusalTest, IsNoLongerReportedWhenTheReducerIsDown) {
  StartRefusing();
  StartClient();
  RunUntil([&] { return !client_->refusal().empty(); }, "refused");
  EXPECT_THAT(client_->refusal(), HasSubstr("the token is not known"));
  StopRefusing();
  RunUntil([&] { return client_->refusal().empty(); }, "the reducer is down");
  uint64_t failures = Count("tributary_intake_client_failures_total");
  RunUntil([&] { return Count("tributary_intake_client_failures_total") > failures + 2; }, "more attempts");
  EXPECT_EQ(client_->refusal(), "");
  StartRefusing();
  RunUntil([&] { return !client_->refusal().empty(); }, "refused again");
  StopRefusing();
  StartServer();
  RunUntil([&] { return client_->connected(); }, "accepted");
  EXPECT_EQ(client_->refusal(), "");
}

}  // namespace
}  // namespace tributary::intake
