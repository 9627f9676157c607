#include "intake/message_sizes.h"

#include "intake/wire.h"
// Behind wire.h, which makes Cap'n Proto's headers compile.
#include <capnp/dynamic.h>

namespace tributary::intake {
namespace {

// By the schema, so that a column which is added to it is listed too.
void AddColumns(const capnp::DynamicStruct::Reader& from, const std::string& prefix, std::vector<ColumnSize>* to) {
  for (const auto field : from.getSchema().getFields()) {
    if (!field.getType().isData()) continue;
    const auto name = field.getProto().getName();
    to->push_back({prefix + std::string(name.cStr(), name.size()), from.get(field).as<capnp::Data>().size()});
  }
}

}  // namespace

absl::StatusOr<std::vector<ColumnSize>> ColumnSizes(MessageType type, std::string_view payload) {
  using Sizes = std::vector<ColumnSize>;
  const std::string definitions = "definitions.";
  if (type == MessageType::kDefinitions) {
    return ReadPayload<wire::Definitions, Sizes>(payload, [&](wire::Definitions::Reader root, Sizes* out) {
      AddColumns(root, definitions, out);
      return absl::OkStatus();
    });
  }
  return ReadPayload<wire::Batch, Sizes>(payload, [&](wire::Batch::Reader root, Sizes* out) {
    AddColumns(root.getDefinitions(), definitions, out);
    AddColumns(root, "", out);
    return absl::OkStatus();
  });
}

}  // namespace tributary::intake
