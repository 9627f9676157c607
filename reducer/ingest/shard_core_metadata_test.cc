#include <gtest/gtest.h>

#include "intake/codec/batch_encoder.h"
#include "intake/metadata/metadata_message.h"
#include "intake/testing/batch_generator_testing.h"
#include "reducer/ingest/shard_core_testing.h"

// Clusters, and the metadata that nodes and clusters send.

namespace tributary::ingest {
namespace {

std::string MetadataFrame(const std::string& id) {
  const MetadataUpdate update{
      .begins_snapshot = true, .ends_snapshot = true, .entities = {{EntityKind::kPod, id, {}, false, {}}}};
  return intake::EncodeFrame(intake::MessageType::kMetadata, 0, 0, intake::EncodeMetadata(update));
}

TEST_F(ShardCoreTest, AClusterSendsItsPodsAndStoresNothing) {
  intake::Hello hello = HelloOf(1);
  hello.role = intake::Role::kCluster;
  hello.session.node_id = "cluster/one";
  auto wire = Connect(hello);
  EXPECT_TRUE(writer_.finds.empty());
  ASSERT_TRUE(WelcomeOn(*wire).has_value());
  wire->callbacks.on_data(MetadataFrame("pod"));
  intake::BatchGenerator generator(1);
  for (const std::string& frame : intake::BatchEncoder(1).Encode(generator.Next(10))) wire->callbacks.on_data(frame);
  EXPECT_TRUE(writer_.submitted.empty());
  EXPECT_TRUE(Find(*wire, intake::MessageType::kGoodbye).has_value()) << "a cluster must not send samples";
  auto again = Connect(hello);
  EXPECT_EQ(sink_.lines, (std::vector<std::string>{"+cluster/one", "cluster cluster/one sends pod", "-cluster/one",
                                                   "+cluster/one"}));
}

TEST_F(ShardCoreTest, ANodeSendsItsOwnMetadata) {
  const intake::Hello hello = HelloOf(1);
  auto wire = Connect(hello);
  core_.OnFound(hello.session.session_id, uint64_t{0});
  wire->callbacks.on_data(MetadataFrame("thing"));
  EXPECT_EQ(sink_.lines, (std::vector<std::string>{"+node", "node node sends thing"}));
}

TEST_F(ShardCoreTest, MetadataWithoutSpaceWaitInTheSession) {
  const intake::Hello hello = HelloOf(1);
  auto wire = Connect(hello);
  core_.OnFound(hello.session.session_id, uint64_t{0});
  sink_.is_full = true;
  wire->callbacks.on_data(MetadataFrame("first"));
  wire->callbacks.on_data(MetadataFrame("second"));
  intake::BatchGenerator generator(1);
  for (const std::string& frame : intake::BatchEncoder(1).Encode(generator.Next(10))) wire->callbacks.on_data(frame);
  EXPECT_EQ(sink_.lines, (std::vector<std::string>{"+node"}));
  EXPECT_TRUE(writer_.submitted.empty()) << "the data of a session keep their order";
  sink_.is_full = false;
  RunUntil([&] { return !writer_.submitted.empty(); });
  EXPECT_EQ(sink_.lines, (std::vector<std::string>{"+node", "node node sends first", "node node sends second"}));
}

TEST_F(ShardCoreTest, AConnectionThatCannotBeRecordedIsRefusedAndMayComeBack) {
  const intake::Hello hello = HelloOf(1);
  sink_.is_full = true;
  auto wire = Connect(hello);
  core_.OnFound(hello.session.session_id, uint64_t{0});
  EXPECT_FALSE(WelcomeOn(*wire).has_value());
  const std::optional<intake::Frame> goodbye = Find(*wire, intake::MessageType::kGoodbye);
  ASSERT_TRUE(goodbye.has_value());
  EXPECT_TRUE(intake::DecodeGoodbye(goodbye->payload)->retry);
  sink_.is_full = false;
  auto again = Connect(hello);
  core_.OnFound(hello.session.session_id, uint64_t{0});
  EXPECT_TRUE(WelcomeOn(*again).has_value());
  EXPECT_EQ(sink_.lines, (std::vector<std::string>{"+node"})) << "no end without a beginning";
}

// Role 2 is reserved on the wire. Role 77 belongs to a later release.
TEST_F(ShardCoreTest, RefusesReservedAndUnknownRoles) {
  int session = 0;
  for (const uint16_t role : {2, 77}) {
    intake::Hello hello = HelloOf(++session);
    hello.role = static_cast<intake::Role>(role);
    auto wire = Connect(hello);
    core_.OnFound(hello.session.session_id, uint64_t{0});
    EXPECT_FALSE(WelcomeOn(*wire).has_value()) << role;
    EXPECT_TRUE(Find(*wire, intake::MessageType::kGoodbye).has_value()) << role;
  }
  EXPECT_TRUE(sink_.lines.empty());
}

// A credential for nodes is not valid for clusters.
TEST_F(ShardCoreTest, NodesAndClustersCannotUseEachOthersIds) {
  intake::Hello hello = HelloOf(1);
  hello.role = intake::Role::kCluster;
  auto no_cluster = Connect(hello);
  EXPECT_FALSE(WelcomeOn(*no_cluster).has_value());
  EXPECT_TRUE(Find(*no_cluster, intake::MessageType::kGoodbye).has_value());
  hello = HelloOf(2);
  hello.session.node_id = "cluster/one";
  auto no_node = Connect(hello);
  core_.OnFound(hello.session.session_id, uint64_t{0});
  EXPECT_FALSE(WelcomeOn(*no_node).has_value());
  EXPECT_TRUE(sink_.lines.empty());
}

}  // namespace
}  // namespace tributary::ingest
