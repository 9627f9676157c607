#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "intake/client/opt_out_lists.h"
#include "intake/testing/raw_client_testing.h"
#include "intake/testing/reducer_testing.h"

// The reducers' lists of containers that must not be sampled.

namespace tributary::intake {
namespace {

using testing::IsEmpty;
using testing::UnorderedElementsAre;

TEST(OptOutLists, AContainerIsOptedOutIfAnyReducerSaysSo) {
  OptOutLists lists(2);
  const auto all = [](size_t) { return true; };
  EXPECT_THAT(lists.Set(0, {"a", "b"}, all), UnorderedElementsAre("a", "b"));
  EXPECT_THAT(lists.Set(1, {"b", "c"}, all), UnorderedElementsAre("a", "b", "c"));
  EXPECT_THAT(lists.Set(0, {}, all), UnorderedElementsAre("b", "c"));
  EXPECT_THAT(lists.Set(1, {"d"}, all), UnorderedElementsAre("d"));
}

// Nobody would end these opt-outs.
TEST(OptOutLists, TheListOfALostReducerEndsWithTheNextListOfAnother) {
  OptOutLists lists(3);
  const auto all = [](size_t) { return true; };
  lists.Set(0, {"a"}, all);
  lists.Set(1, {"b"}, all);
  EXPECT_THAT(lists.Set(2, {"c"}, [](size_t i) { return i == 1; }), UnorderedElementsAre("b", "c"));
  EXPECT_THAT(lists.Set(0, {"a"}, [](size_t) { return false; }), UnorderedElementsAre("a"));
}

class ClientOptOutsTest : public IntakeTest {
 protected:
  void StartNode(bool reads_lists) {
    DeliveryOptions options;
    options.reducers = {{.host = "127.0.0.1", .port = server_options_.port}};
    options.client = client_options_;
    options.client.session.node_id = "node";
    Delivery::Callbacks callbacks;
    if (reads_lists) {
      callbacks.opt_outs = [this](const OptOutLists::Containers& containers) {
        lists_.emplace_back(containers.begin(), containers.end());
      };
    }
    client_ = std::make_unique<Delivery>(loop_, connector_, options, Clock::Real(), metrics_, std::move(callbacks));
    client_->Start();
    RunUntil([&] { return client_->connected(); }, "connected");
  }

  std::vector<std::set<std::string>> lists_;
};

TEST_F(ClientOptOutsTest, TheNodeGetsListsAndKeepsTheLastOneWithoutAConnection) {
  StartServer();
  StartNode(/*reads_lists=*/true);
  EXPECT_EQ(store_.hellos.back().features, kFeatureOptOuts);
  EXPECT_THAT(lists_, IsEmpty()) << "nothing is opted out until a reducer says so";
  server_->live()->SendOptOuts({"a", "b"});
  RunUntil([&] { return lists_.size() == 1; }, "a list");
  EXPECT_THAT(lists_.back(), UnorderedElementsAre("a", "b"));
  server_.reset();
  RunUntil([&] { return !client_->connected(); }, "noticed");
  StartServer();
  RunUntil([&] { return client_->connected(); }, "connected again");
  EXPECT_EQ(lists_.size(), 1u) << "the last list is valid until the next one";
  server_->live()->SendOptOuts({"b"});
  server_->live()->SendOptOuts({});
  RunUntil([&] { return lists_.size() == 3; }, "more lists");
  EXPECT_THAT(lists_[1], UnorderedElementsAre("b"));
  EXPECT_THAT(lists_[2], IsEmpty());
}

TEST_F(ClientOptOutsTest, AClientThatDoesNotAskIgnoresAList) {
  StartServer();
  StartNode(/*reads_lists=*/false);
  EXPECT_EQ(store_.hellos.back().features, 0u);
  server_->live()->SendOptOuts({"a"});
  Send(10);
  RunUntilStored(1);
  EXPECT_TRUE(client_->connected());
}

// Only reducers send lists.
TEST_F(ClientOptOutsTest, AReducerRefusesAListOfANode) {
  StartServer();
  RawClient node(connector_, server_options_.port, HelloFrame("node"));
  RunUntil([&] { return node.welcome(); }, "Welcome");
  node.Write(EncodeFrame(MessageType::kOptOuts, kChannelSamples, 0, EncodeOptOuts({"a"})));
  RunUntil([&] { return node.closed(); }, "closed");
  EXPECT_TRUE(node.goodbye().has_value());
  EXPECT_EQ(Refused("bad_message"), 1u);
}

}  // namespace
}  // namespace tributary::intake
