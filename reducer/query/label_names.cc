#include "reducer/query/label_names.h"

#include <span>
#include <string_view>

#include "absl/container/flat_hash_set.h"
#include "base/status.h"
#include "reducer/query/process_resources.h"
#include "reducer/query/query_context.h"

namespace tributary {

// Reads each distinct text of attributes once.
absl::Status LearnLabelNames(const QueryContext& context, AttributeNames& names) {
  struct Nothing {};
  const auto learn = [&](store::StoreReader& reader, const QueryContext& of_thread) -> absl::StatusOr<Nothing> {
    ASSIGN_OR_RETURN(ProcessResources resources, ProcessResources::Make(reader, of_thread));
    absl::flat_hash_set<store::StringId> seen = {store::StringId{}};
    size_t looked_at = 0;
    const auto visit = [&](std::span<const store::ProcessIds> rows) -> absl::Status {
      RETURN_IF_ERROR(CheckCancelled(context.request));
      for (const store::ProcessIds& row : rows) {
        RETURN_IF_ERROR(CheckCancelledAt(context.request, ++looked_at));
        if (!seen.insert(row.attributes).second) continue;
        ASSIGN_OR_RETURN(const std::string_view text, resources.TextOf(row.attributes));
        names.Learn(DecodeAttributes(text));
      }
      return absl::OkStatus();
    };
    RETURN_IF_ERROR(reader.ScanProcessIds(context.request.range, {}, visit));
    return Nothing();
  };
  return ForEachShardPart<Nothing>(context, learn, [](store::StoreReader&, Nothing) { return absl::OkStatus(); });
}

// A process's own attributes become known when the process is joined, which may not have happened yet.
absl::Status CheckLabelNames(const QueryContext& context, AttributeNames& names) {
  if (context.request.selector.CheckNames(names).ok()) return absl::OkStatus();
  RETURN_IF_ERROR(LearnLabelNames(context, names));
  return context.request.selector.CheckNames(names);
}

}  // namespace tributary
