#include "intake/recording/message_sizes.h"

#include <array>

#include "intake/codec/columns.h"
#include "intake/codec/event_columns.h"
#include "intake/wire/malformed.h"
#include "intake/wire/wire.h"

namespace tributary::intake {
namespace {

template <size_t kNames>
absl::Status AddColumns(bool is_packed, capnp::Data::Reader columns, capnp::Data::Reader packed,
                        const std::array<ColumnPacking, kNames>& packings,
                        const std::array<std::string_view, kNames>& names, const std::string& prefix,
                        std::vector<ColumnSize>* to) {
  ColumnSet<kNames> set;
  uint32_t unknown = 0;
  const bool well_formed = is_packed ? set.Unpack(packings, ViewOf(packed), kPayloadBytesMax, &unknown)
                                     : set.Parse(ViewOf(columns), &unknown);
  if (!well_formed) return Malformed("columns");
  for (size_t i = 1; i < kNames; ++i) {
    to->push_back({prefix + std::string(names[i]), is_packed ? set.packed_bytes(i) : set[i].size()});
  }
  return absl::OkStatus();
}

absl::Status AddDefinitions(wire::Definitions::Reader from, std::vector<ColumnSize>* to) {
  return AddColumns(from.hasPackedColumns(), from.getColumns(), from.getPackedColumns(), kDefinitionPackings,
                    kDefinitionColumnNames, "definitions.", to);
}

}  // namespace

absl::StatusOr<std::vector<ColumnSize>> ColumnSizes(MessageType type, std::string_view payload) {
  using Sizes = std::vector<ColumnSize>;
  if (type == MessageType::kDefinitions) {
    return ReadPayload<wire::Definitions, Sizes>(
        payload, [](wire::Definitions::Reader root, Sizes* out) { return AddDefinitions(root, out); });
  }
  return ReadPayload<wire::Batch, Sizes>(payload, [](wire::Batch::Reader root, Sizes* out) -> absl::Status {
    RETURN_IF_ERROR(AddDefinitions(root.getDefinitions(), out));
    RETURN_IF_ERROR(AddColumns(root.hasPackedColumns(), root.getColumns(), root.getPackedColumns(), kSamplePackings,
                               kSampleColumnNames, "", out));
    for (const auto family : root.getFamilies()) {
      if (family.getNumber() != kFamilyProcessEvents) continue;
      RETURN_IF_ERROR(AddColumns(family.hasPackedColumns(), family.getColumns(), family.getPackedColumns(),
                                 kEventPackings, kEventColumnNames, "events.", out));
    }
    return absl::OkStatus();
  });
}

}  // namespace tributary::intake
