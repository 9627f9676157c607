#include "intake/metadata_feed.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

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
  // What the cursor's reader is told until there is no more.
  std::vector<std::string> Told(MetadataFeed::Cursor& cursor) {
    std::vector<std::string> told;
    while (const std::optional<MetadataUpdate> update = feed_->Next(cursor)) {
      if (update->begins_snapshot) told.push_back("begin");
      for (const Entity& e : update->entities) {
        told.push_back(e.id + (e.gone ? " gone" : "=" + std::string(FindAttribute(e.attributes, "k8s.pod.name"))));
      }
      if (update->ends_snapshot) told.push_back("end");
    }
    return told;
  }
  using Lines = std::vector<std::string>;

  FakeClock clock_;
  std::vector<std::unique_ptr<Metrics>> metrics_;
  std::optional<MetadataFeed> feed_;
};

TEST_F(MetadataFeedTest, TellsASnapshotThenWhatChanges) {
  feed_->Set(PodOf("a", "1"));
  feed_->Set(PodOf("b", "1"));
  feed_->SetComplete();
  MetadataFeed::Cursor cursor;
  EXPECT_EQ(Told(cursor), (Lines{"begin", "a=1", "b=1", "end"}));
  EXPECT_EQ(Told(cursor), Lines());
  feed_->Set(PodOf("a", "2"));
  feed_->Set(PodOf("a", "3"));
  feed_->Set(PodOf("b", "1"));  // as it is
  feed_->Remove(EntityKind::kPod, "b", UnixNs{9});
  feed_->Remove(EntityKind::kPod, "never", UnixNs{9});
  EXPECT_EQ(Told(cursor), (Lines{"a=3", "b gone"}));
  MetadataFeed::Cursor late;
  EXPECT_EQ(Told(late), (Lines{"begin", "a=3", "b gone", "end"}));
}

TEST_F(MetadataFeedTest, ASnapshotEndsWhenAllIsKnown) {
  MetadataFeed::Cursor cursor;
  EXPECT_EQ(Told(cursor), Lines());
  feed_->Set(PodOf("a", "1"));
  EXPECT_EQ(Told(cursor), (Lines{"begin", "a=1"}));
  feed_->Set(PodOf("b", "1"));
  EXPECT_EQ(Told(cursor), (Lines{"b=1"}));
  feed_->SetComplete();
  EXPECT_EQ(Told(cursor), (Lines{"end"}));
}

TEST_F(MetadataFeedTest, AnEmptySnapshotIsToldToo) {
  feed_->SetComplete();
  MetadataFeed::Cursor cursor;
  EXPECT_EQ(Told(cursor), (Lines{"begin", "end"}));
}

TEST_F(MetadataFeedTest, WhatHasGoneIsForgottenLater) {
  Make({.gone_keep_ns = 10});
  feed_->Set(PodOf("a", "1"));
  feed_->Remove(EntityKind::kPod, "a", UnixNs{9});
  feed_->Set(PodOf("b", "1"));
  feed_->Remove(EntityKind::kPod, "b", UnixNs{9});
  feed_->Set(PodOf("b", "2"));  // is back
  clock_.Advance(10);
  feed_->Set(PodOf("c", "1"));
  MetadataFeed::Cursor cursor;
  EXPECT_EQ(Told(cursor), (Lines{"begin", "b=2", "c=1"}));
  EXPECT_EQ(feed_->size(), 2u);
}

TEST_F(MetadataFeedTest, KeepsToItsBounds) {
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

// Whatever changes between its messages, a reader ends up with what is known.
TEST_F(MetadataFeedTest, AnyReaderEndsUpWithAll) {
  std::mt19937 random(11);
  Make({.gone_keep_ns = 1'000'000, .update_bytes_max = 64});
  feed_->SetComplete();
  MetadataFeed::Cursor cursor;
  std::map<std::string, std::string> model, told;
  for (int round = 0; round < 3'000; ++round) {
    const std::string id = std::to_string(random() % 20);
    if (random() % 4 == 0) {
      feed_->Remove(EntityKind::kPod, id, UnixNs{9});
      model.erase(id);
    } else {
      const std::string name = std::to_string(random() % 3);
      feed_->Set(PodOf(id, name));
      model[id] = name;
    }
    if (random() % 100 == 0) {
      cursor = {};  // another connection
      told.clear();
    }
    const auto update = random() % 2 == 0 ? feed_->Next(cursor) : std::nullopt;
    for (const Entity& e : update ? update->entities : std::vector<Entity>()) {
      if (e.gone) {
        told.erase(e.id);
      } else {
        told[e.id] = FindAttribute(e.attributes, "k8s.pod.name");
      }
    }
  }
  while (const auto update = feed_->Next(cursor)) {
    for (const Entity& e : update->entities) {
      if (e.gone) {
        told.erase(e.id);
      } else {
        told[e.id] = FindAttribute(e.attributes, "k8s.pod.name");
      }
    }
  }
  EXPECT_EQ(told, model);
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
