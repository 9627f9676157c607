#include "kernel-collector/direct/node_resources.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernel-collector/direct/direct_testing.h"

namespace tributary {
namespace {

using ::testing::ElementsAre;

constexpr char kContainer[] = "4c01db0b339c0d5a1fc8d5c8c4d4c4a8c2a4a3c9b7b6a5f4e3d2c1b0a9f8e7d6";

class NodeResourcesTest : public testing::Test {
 protected:
  Attributes Of() {
    batches_.Add("nginx", 0x1000);
    const Batch batch = batches_.Take();
    const Thread& thread = batch.dictionary->thread(batch.samples[0].thread);
    SessionInfo session;
    session.node_id = "n1";
    session.host_name = "host-1";
    return NodeResources(session, feed_).Of(batch.dictionary->process(thread.process), *batch.dictionary);
  }

  FakeClock clock_;
  Metrics metrics_;
  intake::MetadataFeed feed_{{}, clock_, metrics_};
  TestBatches batches_;
};

TEST_F(NodeResourcesTest, OfAProcessOfTheHost) {
  EXPECT_THAT(Of(), ElementsAre(Attribute{"host.id", "n1"}, Attribute{"host.name", "host-1"},
                                Attribute{"service.name", "nginx"}));
}

TEST_F(NodeResourcesTest, HostAndProcessReportMore) {
  feed_.Set({.kind = EntityKind::kHost,
             .id = "n1",
             .attributes = {{"cloud.provider", "aws"}, {"host.id", "i-1"}, {"host.name", "host-1"}}});
  batches_.own_attributes = "service.name=shop,team=blue,host.id=forged";
  EXPECT_THAT(Of(), ElementsAre(Attribute{"cloud.provider", "aws"}, Attribute{"host.id", "i-1"},
                                Attribute{"host.name", "host-1"}, Attribute{"service.name", "shop"},
                                Attribute{"team", "blue"}));
}

TEST_F(NodeResourcesTest, OfAContainer) {
  batches_.cgroup_path = std::string("/kubepods/burstable/pod0a1b2c3d-1111-2222-3333-444455556666/") + kContainer;
  feed_.Set({.kind = EntityKind::kContainer,
             .id = kContainer,
             .attributes = {{"container.image.tag", "1.2"},
                            {"container.image.version", "1.2@sha256:ab"},
                            {"container.label.com.docker.compose.service", "web"}}});
  const Attributes attributes = Of();
  EXPECT_EQ(FindAttribute(attributes, "container.id"), kContainer);
  EXPECT_EQ(FindAttribute(attributes, "k8s.pod.uid"), "0a1b2c3d-1111-2222-3333-444455556666");
  EXPECT_EQ(FindAttribute(attributes, "container.image.tags"), "1.2");
  EXPECT_EQ(FindAttribute(attributes, "container.image.version"), "");
  EXPECT_EQ(FindAttribute(attributes, "service.name"), "web");
  EXPECT_EQ(FindAttribute(attributes, "service.version"), "1.2@sha256:ab");
}

}  // namespace
}  // namespace tributary
