#include "k8s-collector/uplink/entity_printer.h"

#include <optional>
#include <utility>

#include "base/json.h"

namespace tributary {

std::string EntityLine(const Entity& entity) {
  JsonWriter json;
  json.BeginObject();
  json.Field("kind", EntityKindName(entity.kind));
  json.Field("id", entity.id);
  json.Field("from", entity.from.value);
  if (entity.gone) json.Field("gone", true);
  json.Key("attributes");
  json.BeginObject();
  for (const Attribute& attribute : entity.attributes) json.Field(attribute.key, attribute.value);
  json.EndObject();
  json.EndObject();
  return std::move(json).Take() + '\n';
}

void EntityPrinter::Print() {
  while (const std::optional<MetadataUpdate> update = feed_.Next(cursor_)) {
    for (const Entity& entity : update->entities) std::fputs(EntityLine(entity).c_str(), out_);
    if (update->ends_snapshot) std::fputs("{\"complete\":true}\n", out_);
  }
  std::fflush(out_);
}

}  // namespace tributary
