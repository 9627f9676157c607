#include "intake/metadata/metadata_message.h"

#include <gtest/gtest.h>

#include <random>

#include "intake/wire/wire.h"

namespace tributary::intake {
namespace {

absl::StatusOr<MetadataUpdate> Decode(std::string_view payload) {
  uint32_t unknown_values = 0;
  return DecodeMetadata(payload, &unknown_values);
}

Entity PodOf(std::string id) {
  return {EntityKind::kPod, std::move(id), UnixNs{5}, false, {{"k8s.pod.name", "web"}, {"x", "bytes \xff\n"}}};
}

TEST(MetadataMessage, ComesBackAsItWas) {
  MetadataUpdate update{.begins_snapshot = true, .ends_snapshot = false, .entities = {PodOf("a"), PodOf("b")}};
  update.entities[1].gone = true;
  update.entities[1].attributes.clear();
  auto decoded = Decode(EncodeMetadata(update));
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_EQ(*decoded, update);
  auto empty = Decode(EncodeMetadata({}));
  ASSERT_TRUE(empty.ok());
  EXPECT_EQ(*empty, MetadataUpdate());
}

TEST(MetadataMessage, SkipsEntitiesOfALaterRelease) {
  MetadataUpdate update{.entities = {PodOf("a"), PodOf("b")}};
  update.entities[0].kind = static_cast<EntityKind>(200);
  uint32_t unknown_values = 0;
  auto decoded = DecodeMetadata(EncodeMetadata(update), &unknown_values);
  ASSERT_TRUE(decoded.ok());
  ASSERT_EQ(decoded->entities.size(), 1u);
  EXPECT_EQ(decoded->entities[0].id, "b");
  EXPECT_EQ(unknown_values, 1u);
}

TEST(MetadataMessage, RefusesEntitiesOverALimit) {
  auto with = [](auto change) {
    MetadataUpdate update{.entities = {PodOf("a")}};
    change(update.entities[0]);
    return EncodeMetadata(update);
  };
  EXPECT_FALSE(Decode(with([](Entity& e) { e.id.assign(kEntityIdBytesMax + 1, 'x'); })).ok());
  EXPECT_FALSE(Decode(with([](Entity& e) { e.attributes[0].key.assign(kAttributeKeyBytesMax + 1, 'a'); })).ok());
  EXPECT_FALSE(Decode(with([](Entity& e) { e.attributes[0].value.assign(kAttributeValueBytesMax + 1, 'a'); })).ok());
  EXPECT_FALSE(Decode(with([](Entity& e) { e.attributes[0].key.clear(); })).ok());
  EXPECT_FALSE(Decode(with([](Entity& e) { e.attributes[0].key = e.attributes[1].key; })).ok());
  EXPECT_FALSE(Decode(with([](Entity& e) { std::swap(e.attributes[0], e.attributes[1]); })).ok());
  EXPECT_FALSE(Decode(with([](Entity& e) {
                 e.attributes.clear();
                 for (size_t i = 0; i <= kEntityAttributesMax; ++i) {
                   SetAttribute(e.attributes, std::to_string(1'000'000 + i), "");
                 }
               })).ok());
  EXPECT_FALSE(Decode(with([](Entity& e) {
                 e.attributes.clear();
                 for (size_t i = 0; i < 17; ++i) {
                   SetAttribute(e.attributes, std::to_string(100 + i), std::string(kAttributeValueBytesMax, 'v'));
                 }
               })).ok());
  MetadataUpdate many;
  many.entities.resize(kUpdateEntitiesMax + 1, Entity{.kind = EntityKind::kPod});
  EXPECT_FALSE(Decode(EncodeMetadata(many)).ok());
}

// A list of structs without any words takes no bytes, however large its stated length is.
TEST(MetadataMessage, RefusesAmplification) {
  capnp::MallocMessageBuilder message;
  auto list = message.initRoot<wire::Metadata>().initEntities(1);
  list[0].setKind(3);
  std::string payload = ToPayload(message);
  bool refused = false;
  for (size_t at = 0; at + 8 <= payload.size(); at += 8) {
    for (uint64_t word : {0xffff'ffff'0000'0001u, 0xffff'fff8'0000'0001u, 0xffff'ffff'ffff'fffdu}) {
      std::string hostile = payload;
      std::memcpy(hostile.data() + at, &word, sizeof word);
      auto decoded = Decode(hostile);
      if (!decoded.ok()) refused = true;
      EXPECT_TRUE(!decoded.ok() || decoded->entities.size() <= kUpdateEntitiesMax);
    }
  }
  EXPECT_TRUE(refused);
}

TEST(MetadataMessage, CutEntitiesAreWithinTheLimits) {
  std::mt19937 random(3);
  for (int round = 0; round < 200; ++round) {
    Entity entity{.kind = EntityKind::kPod, .id = std::string(random() % 1000, 'i')};
    for (size_t i = random() % 1500; i > 0; --i) {
      std::string key = std::to_string(random() % 100'000);
      if (random() % 50 == 0) key.append(400, 'k');
      SetAttribute(entity.attributes, key, std::string(random() % (random() % 20 == 0 ? 6000 : 100), 'v'));
    }
    const Entity before = entity;
    const bool whole = CutToLimits(entity);
    EXPECT_EQ(whole, entity == before);
    auto decoded = Decode(EncodeMetadata({.entities = {entity}}));
    ASSERT_TRUE(decoded.ok()) << decoded.status();
    EXPECT_EQ(decoded->entities[0], entity);
  }
}

TEST(MetadataMessage, CutsTheLongestValuesFirst) {
  Entity entity{.kind = EntityKind::kPod};
  for (size_t i = 0; i < 20; ++i) {
    SetAttribute(entity.attributes, "annotation." + std::to_string(i), std::string(kAttributeValueBytesMax, 'v'));
  }
  SetAttribute(entity.attributes, "k8s.pod.name", "web");
  EXPECT_FALSE(CutToLimits(entity));
  EXPECT_EQ(FindAttribute(entity.attributes, "k8s.pod.name"), "web");
  EXPECT_EQ(entity.attributes.size(), 16u);
}

}  // namespace
}  // namespace tributary::intake
