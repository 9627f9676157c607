#include "intake/metadata/metadata_message.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "intake/wire/malformed.h"
#include "intake/wire/wire.h"

namespace tributary::intake {
namespace {

capnp::Text::Reader TextOf(const std::string& text) { return {text.c_str(), text.size()}; }

absl::Status TooMany(std::string_view what, size_t count, size_t max) {
  return Malformed(fmt::format("Metadata: {} {}, but at most {} are allowed", count, what, max));
}

absl::Status ReadAttributes(wire::Entity::Reader from, Entity* out) {
  const auto attributes = from.getAttributes();
  if (attributes.size() > kEntityAttributesMax) return TooMany("attributes", attributes.size(), kEntityAttributesMax);
  out->attributes.reserve(attributes.size());
  size_t bytes = 0;
  for (const auto& attribute : attributes) {
    const std::string_view key = ViewOf(attribute.getKey()), value = ViewOf(attribute.getValue());
    if (key.size() > kAttributeKeyBytesMax)
      return TooMany("bytes in an attribute's key", key.size(), kAttributeKeyBytesMax);
    if (value.size() > kAttributeValueBytesMax)
      return TooMany("bytes in an attribute's value", value.size(), kAttributeValueBytesMax);
    bytes += key.size() + value.size();
    if (bytes > kEntityBytesMax) return TooMany("bytes in an entity", bytes, kEntityBytesMax);
    if (key.empty() || (!out->attributes.empty() && key <= out->attributes.back().key)) {
      return Malformed("Metadata: an attribute's key is empty, or the keys are not in ascending order");
    }
    out->attributes.push_back({std::string(key), std::string(value)});
  }
  return absl::OkStatus();
}

absl::Status ReadEntity(wire::Entity::Reader from, Entity* out) {
  const std::string_view id = ViewOf(from.getId());
  if (id.size() > kEntityIdBytesMax) return TooMany("bytes in an entity's id", id.size(), kEntityIdBytesMax);
  out->kind = static_cast<EntityKind>(from.getKind());
  out->id = id;
  out->from = UnixNs{from.getFromUnixNs()};
  out->gone = from.getGone();
  return ReadAttributes(from, out);
}

}  // namespace

size_t BytesOf(const Entity& entity) {
  size_t bytes = entity.id.size();
  for (const auto& [key, value] : entity.attributes) bytes += key.size() + value.size();
  return bytes;
}

bool CutToLimits(Entity& entity) {
  bool whole = true;
  auto cut = [&whole](std::string& text, size_t max) {
    if (text.size() <= max) return;
    text.resize(max);
    whole = false;
  };
  cut(entity.id, kEntityIdBytesMax);
  for (Attribute& attribute : entity.attributes) cut(attribute.value, kAttributeValueBytesMax);
  Attributes& attributes = entity.attributes;
  const size_t removed = std::erase_if(
      attributes, [](const Attribute& a) { return a.key.empty() || a.key.size() > kAttributeKeyBytesMax; });
  whole = whole && removed == 0;
  size_t bytes = BytesOf(entity) - entity.id.size();
  if (attributes.size() <= kEntityAttributesMax && bytes <= kEntityBytesMax) return whole;
  std::vector<size_t> longest_first(attributes.size());
  for (size_t i = 0; i < longest_first.size(); ++i) longest_first[i] = i;
  std::stable_sort(longest_first.begin(), longest_first.end(),
                   [&](size_t a, size_t b) { return attributes[a].value.size() > attributes[b].value.size(); });
  size_t left = attributes.size();
  for (size_t i : longest_first) {
    if (left <= kEntityAttributesMax && bytes <= kEntityBytesMax) break;
    bytes -= attributes[i].key.size() + attributes[i].value.size();
    attributes[i].key.clear();
    --left;
  }
  std::erase_if(attributes, [](const Attribute& a) { return a.key.empty(); });
  return false;
}

std::string EncodeMetadata(const MetadataUpdate& update) {
  capnp::MallocMessageBuilder message;
  auto root = message.initRoot<wire::Metadata>();
  root.setBeginsSnapshot(update.begins_snapshot);
  root.setEndsSnapshot(update.ends_snapshot);
  auto entities = root.initEntities(static_cast<unsigned>(update.entities.size()));
  for (unsigned i = 0; i < entities.size(); ++i) {
    const Entity& entity = update.entities[i];
    entities[i].setKind(static_cast<uint8_t>(entity.kind));
    entities[i].setId(TextOf(entity.id));
    entities[i].setFromUnixNs(entity.from.value);
    entities[i].setGone(entity.gone);
    auto attributes = entities[i].initAttributes(static_cast<unsigned>(entity.attributes.size()));
    for (unsigned a = 0; a < attributes.size(); ++a) {
      attributes[a].setKey(TextOf(entity.attributes[a].key));
      attributes[a].setValue(TextOf(entity.attributes[a].value));
    }
  }
  return ToPayload(message);
}

absl::StatusOr<MetadataUpdate> DecodeMetadata(std::string_view payload, uint32_t* unknown_values) {
  return ReadPayload<wire::Metadata, MetadataUpdate>(
      payload, [unknown_values](wire::Metadata::Reader root, MetadataUpdate* update) -> absl::Status {
        update->begins_snapshot = root.getBeginsSnapshot();
        update->ends_snapshot = root.getEndsSnapshot();
        const auto entities = root.getEntities();
        if (entities.size() > kUpdateEntitiesMax) return TooMany("entities", entities.size(), kUpdateEntitiesMax);
        for (const auto& from : entities) {
          if (from.getKind() == 0 || from.getKind() > kEntityKindMax) {
            ++*unknown_values;
            continue;
          }
          RETURN_IF_ERROR(ReadEntity(from, &update->entities.emplace_back()));
        }
        return absl::OkStatus();
      });
}

}  // namespace tributary::intake
