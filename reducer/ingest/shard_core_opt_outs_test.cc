#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "reducer/ingest/shard_core_testing.h"
#include "reducer/metadata/opt_outs.h"

// The lists of containers that nodes must not sample.

namespace tributary::ingest {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class ShardCoreOptOutsTest : public ShardCoreTest {
 protected:
  ShardCoreOptOutsTest() { told_.Start(); }

  intake::Hello HelloWith(uint8_t session, const std::string& node, uint64_t features) {
    intake::Hello hello = HelloOf(session);
    hello.session.node_id = node;
    hello.features = features;
    return hello;
  }
  std::shared_ptr<Wire> Open(const intake::Hello& hello) {
    auto wire = std::make_shared<Wire>();
    told_.Accept({std::make_unique<WireStream>(wire), hello, "", "peer"});
    told_.OnFound(hello.session.session_id, uint64_t{0});
    return wire;
  }
  void Annotate(const std::string& container, const std::string& value) {
    clock_.Advance(1);
    const std::string pod = "pod of " + container;
    opt_outs_.OnState(
        {true, "cluster/c"},
        {.kind = EntityKind::kPod,
         .id = pod,
         .attributes = {{"k8s.namespace.name", "shop"}, {"k8s.pod.annotation.tributary.io/profile", value}}},
        false);
    opt_outs_.OnState({true, "cluster/c"},
                      {.kind = EntityKind::kContainer, .id = container, .attributes = {{"k8s.pod.uid", pod}}}, false);
  }
  // Returns the lists that the reducer wrote, without Welcome and heartbeats.
  static std::vector<std::vector<std::string>> Lists(const Wire& wire) {
    intake::FrameDecoder frames;
    frames.Append(wire.written);
    intake::Frame frame;
    std::vector<std::vector<std::string>> lists;
    bool is_welcome = true;
    while (*frames.Next(&frame)) {
      EXPECT_EQ(std::exchange(is_welcome, false), frame.type == intake::MessageType::kWelcome);
      if (frame.type == intake::MessageType::kOptOuts) lists.push_back(*intake::DecodeOptOuts(frame.payload));
    }
    return lists;
  }

  OptOuts opt_outs_{clock_, metrics_};
  ShardCore told_{{loop_, writer_, symbols_, clock_, metrics_},
                  {.server = {.refusals = &refusals_}, .tick_ms = 1, .opt_outs = &opt_outs_},
                  {}};
};

TEST_F(ShardCoreOptOutsTest, ANodeGetsItsListAfterWelcomeAndAfterEachChange) {
  auto wire = Open(HelloWith(1, "n1", intake::kFeatureOptOuts));
  EXPECT_THAT(Lists(*wire), ElementsAre(IsEmpty())) << "it forgets the list of an earlier connection";
  Annotate("c1", "off");
  EXPECT_TRUE(opt_outs_.Drops("n1", "c1", ""));
  RunUntil([&] { return Lists(*wire).size() == 2; });
  EXPECT_THAT(Lists(*wire).back(), ElementsAre("c1"));
  Annotate("c1", "on");
  RunUntil([&] { return Lists(*wire).size() == 3; });
  EXPECT_THAT(Lists(*wire).back(), IsEmpty());
}

TEST_F(ShardCoreOptOutsTest, ANodeThatConnectsAgainGetsItsListAgain) {
  Annotate("c1", "off");
  EXPECT_TRUE(opt_outs_.Drops("n1", "c1", ""));
  const intake::Hello hello = HelloWith(1, "n1", intake::kFeatureOptOuts);
  auto first = Open(hello);
  auto second = Open(hello);
  EXPECT_FALSE(first->open);
  EXPECT_THAT(Lists(*first), ElementsAre(ElementsAre("c1")));
  EXPECT_THAT(Lists(*second), ElementsAre(ElementsAre("c1")));
}

TEST_F(ShardCoreOptOutsTest, OtherNodesAndNodesOfEarlierReleasesGetNothing) {
  auto other = Open(HelloWith(1, "n1", intake::kFeatureOptOuts));
  auto old = Open(HelloWith(2, "n2", intake::kFeatureSymbolDigests));
  auto changed = Open(HelloWith(3, "n3", intake::kFeatureSymbolDigests | intake::kFeatureOptOuts));
  Annotate("c1", "off");
  for (const char* node : {"n2", "n3"}) EXPECT_TRUE(opt_outs_.Drops(node, "c1", ""));
  RunUntil([&] { return Lists(*changed).size() == 2; });
  EXPECT_THAT(Lists(*other), ElementsAre(IsEmpty()));
  EXPECT_THAT(Lists(*old), IsEmpty());
  EXPECT_TRUE(WelcomeOn(*old).has_value());
}

TEST_F(ShardCoreOptOutsTest, AClusterGetsNothing) {
  intake::Hello hello = HelloWith(1, "cluster/c", 0);
  hello.role = intake::Role::kCluster;
  auto wire = std::make_shared<Wire>();
  told_.Accept({std::make_unique<WireStream>(wire), hello, "", "peer"});
  EXPECT_THAT(Lists(*wire), IsEmpty());
}

}  // namespace
}  // namespace tributary::ingest
