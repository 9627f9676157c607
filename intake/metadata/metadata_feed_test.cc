#include "intake/metadata/metadata_feed.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>

namespace tributary::intake {
namespace {

Entity PodOf(const std::string& id, const std::string& name) {
  return {EntityKind::kPod, id, UnixNs{1}, false, {{"k8s.pod.name", name}}};
}

class MetadataFeedTest : public testing::Test {
 protected:
  MetadataFeedTest() { Make({}); }
  void Make(MetadataFeed::Options options) {
    feed_.emplace(options, clock_, *metrics_.emplace_back(std::make_unique<Metrics>()));
  }
  // Everything that the cursor's reader receives until there is no more.
  std::vector<std::string> ReadAll(MetadataFeed::Cursor& cursor) {
    std::vector<std::string> lines;
    while (const std::optional<MetadataUpdate> update = feed_->Next(cursor)) {
      if (update->begins_snapshot) lines.push_back("begin");
      for (const Entity& e : update->entities) {
        lines.push_back(e.id + (e.gone ? " gone" : "=" + std::string(FindAttribute(e.attributes, "k8s.pod.name"))));
      }
      if (update->ends_snapshot) lines.push_back("end");
    }
    return lines;
  }
  using Lines = std::vector<std::string>;

  FakeClock clock_;
  std::vector<std::unique_ptr<Metrics>> metrics_;
  std::optional<MetadataFeed> feed_;
};

TEST_F(MetadataFeedTest, SendsASnapshotThenChanges) {
  feed_->Set(PodOf("a", "1"));
  feed_->Set(PodOf("b", "1"));
  feed_->SetComplete();
  MetadataFeed::Cursor cursor;
  EXPECT_EQ(ReadAll(cursor), (Lines{"begin", "a=1", "b=1", "end"}));
  EXPECT_EQ(ReadAll(cursor), Lines());
  feed_->Set(PodOf("a", "2"));
  feed_->Set(PodOf("a", "3"));
  feed_->Set(PodOf("b", "1"));  // unchanged
  feed_->Remove(EntityKind::kPod, "b", UnixNs{9});
  feed_->Remove(EntityKind::kPod, "never", UnixNs{9});
  EXPECT_EQ(ReadAll(cursor), (Lines{"a=3", "b gone"}));
  MetadataFeed::Cursor late;
  EXPECT_EQ(ReadAll(late), (Lines{"begin", "a=3", "b gone", "end"}));
}

TEST_F(MetadataFeedTest, SnapshotEndsWhenTheFeedIsComplete) {
  MetadataFeed::Cursor cursor;
  EXPECT_EQ(ReadAll(cursor), Lines());
  feed_->Set(PodOf("a", "1"));
  EXPECT_EQ(ReadAll(cursor), (Lines{"begin", "a=1"}));
  feed_->Set(PodOf("b", "1"));
  EXPECT_EQ(ReadAll(cursor), (Lines{"b=1"}));
  feed_->SetComplete();
  EXPECT_EQ(ReadAll(cursor), (Lines{"end"}));
}

TEST_F(MetadataFeedTest, SendsAnEmptySnapshotToo) {
  feed_->SetComplete();
  MetadataFeed::Cursor cursor;
  EXPECT_EQ(ReadAll(cursor), (Lines{"begin", "end"}));
}

TEST_F(MetadataFeedTest, ForgetsGoneEntitiesLater) {
  Make({.gone_keep_ns = 10});
  feed_->Set(PodOf("a", "1"));
  feed_->Remove(EntityKind::kPod, "a", UnixNs{9});
  feed_->Set(PodOf("b", "1"));
  feed_->Remove(EntityKind::kPod, "b", UnixNs{9});
  feed_->Set(PodOf("b", "2"));  // comes back
  clock_.Advance(10);
  feed_->Set(PodOf("c", "1"));
  MetadataFeed::Cursor cursor;
  EXPECT_EQ(ReadAll(cursor), (Lines{"begin", "b=2", "c=1"}));
  EXPECT_EQ(feed_->size(), 2u);
}

TEST_F(MetadataFeedTest, ReaderThatMissedAnEndGetsANewSnapshot) {
  Make({.gone_keep_ns = 10});
  for (const char* id : {"a", "b"}) feed_->Set(PodOf(id, "1"));
  feed_->SetComplete();
  MetadataFeed::Cursor slow, quick;
  EXPECT_EQ(ReadAll(slow), (Lines{"begin", "a=1", "b=1", "end"}));
  EXPECT_EQ(ReadAll(quick), (Lines{"begin", "a=1", "b=1", "end"}));
  feed_->Remove(EntityKind::kPod, "a", UnixNs{9});
  EXPECT_EQ(ReadAll(quick), (Lines{"a gone"}));
  clock_.Advance(10);
  feed_->Set(PodOf("c", "1"));
  EXPECT_EQ(ReadAll(quick), (Lines{"c=1"}));
  EXPECT_EQ(ReadAll(slow), (Lines{"begin", "b=1", "c=1", "end"}));
  feed_->Set(PodOf("c", "2"));
  EXPECT_EQ(ReadAll(slow), (Lines{"c=2"}));
}

TEST_F(MetadataFeedTest, EntityForgottenDuringASnapshotIsMissedOnlyIfItWasSentBefore) {
  Make({.gone_keep_ns = 10, .update_bytes_max = 1});
  for (const char* id : {"x", "a", "b"}) feed_->Set(PodOf(id, "1"));
  feed_->SetComplete();
  feed_->Remove(EntityKind::kPod, "x", UnixNs{9});
  MetadataFeed::Cursor slow, slower;
  ASSERT_EQ(feed_->Next(slow)->entities[0].id, "a");
  ASSERT_EQ(feed_->Next(slower)->entities[0].id, "a");
  clock_.Advance(10);
  feed_->Set(PodOf("c", "1"));  // x is forgotten
  EXPECT_EQ(ReadAll(slow), (Lines{"b=1", "c=1", "end"}));
  feed_->Remove(EntityKind::kPod, "a", UnixNs{9});
  clock_.Advance(10);
  feed_->Set(PodOf("d", "1"));  // a is forgotten
  EXPECT_EQ(ReadAll(slower), (Lines{"b=1", "c=1", "d=1", "end", "begin", "b=1", "c=1", "d=1", "end"}));
}

TEST_F(MetadataFeedTest, StaysWithinItsLimits) {
  Make({.entities_max = 2});
  for (const char* id : {"a", "b", "c"}) feed_->Set(PodOf(id, "1"));
  feed_->Set(PodOf("a", "2"));
  EXPECT_EQ(feed_->size(), 2u);
  EXPECT_EQ(metrics_.back()->AddCounter("tributary_intake_client_metadata_turned_away_total", "").value(), 1u);
  Make({.bytes_max = 1000});
  for (int i = 0; i < 100; ++i) feed_->Set(PodOf(std::to_string(i), std::string(50, 'x')));
  EXPECT_LE(feed_->bytes(), 1000u);
  EXPECT_GT(feed_->size(), 2u);
  Make({.update_bytes_max = 100});
  for (int i = 0; i < 9; ++i) feed_->Set(PodOf(std::to_string(i), std::string(200, 'x')));
  MetadataFeed::Cursor cursor;
  for (int i = 0; i < 9; ++i) EXPECT_EQ(feed_->Next(cursor)->entities.size(), 1u);
}

// The state that a reader builds from the updates.
struct Reader {
  MetadataFeed::Cursor cursor;
  std::map<std::string, std::string> entities;
  std::set<std::string> in_snapshot;

  void Take(const MetadataUpdate& update) {
    if (update.begins_snapshot) in_snapshot.clear();
    for (const Entity& e : update.entities) {
      in_snapshot.insert(e.id);
      entities[e.id] = FindAttribute(e.attributes, "k8s.pod.name");
      if (e.gone) entities.erase(e.id);
    }
    if (update.ends_snapshot)
      std::erase_if(entities, [this](const auto& each) { return !in_snapshot.contains(each.first); });
  }
};

// A reader must end up with the current state, whatever changes between its messages, and however long it does not
// read.
TEST_F(MetadataFeedTest, EveryReaderEndsUpWithTheCurrentState) {
  std::mt19937 random(11);
  Make({.gone_keep_ns = 10, .update_bytes_max = 64});
  feed_->SetComplete();
  Reader reader;
  std::map<std::string, std::string> model;
  int pause = 0;
  for (int round = 0; round < 10'000; ++round) {
    clock_.Advance(1);
    const std::string id = std::to_string(random() % 20);
    if (random() % 4 == 0) {
      feed_->Remove(EntityKind::kPod, id, UnixNs{9});
      model.erase(id);
    } else {
      const std::string name = std::to_string(random() % 3);
      feed_->Set(PodOf(id, name));
      model[id] = name;
    }
    if (random() % 500 == 0) reader = {};  // another connection
    if (random() % 200 == 0) pause = static_cast<int>(random() % 60);
    if (--pause > 0 || random() % 2 == 0) continue;
    if (const auto update = feed_->Next(reader.cursor)) reader.Take(*update);
    if (random() % 20 != 0) continue;
    while (const auto update = feed_->Next(reader.cursor)) reader.Take(*update);
    ASSERT_EQ(reader.entities, model) << round;
  }
}

TEST_F(MetadataFeedTest, CallsSubscribersUntilTheyLeave) {
  int calls = 0;
  const uint64_t key = feed_->Subscribe([&calls] { ++calls; });
  feed_->Set(PodOf("a", "1"));
  feed_->Set(PodOf("a", "1"));
  EXPECT_EQ(calls, 1);
  feed_->Unsubscribe(key);
  feed_->Set(PodOf("a", "2"));
  EXPECT_EQ(calls, 1);
}

}  // namespace
}  // namespace tributary::intake
