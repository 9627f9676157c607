#include "reducer/query/label_names.h"

#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "base/status.h"
#include "reducer/query/query_context.h"

namespace tributary {

absl::Status LearnLabelNames(const QueryContext& context, AttributeNames& names) {
  absl::flat_hash_set<std::string> seen;
  return ForEachShard(context, [&](store::StoreReader& reader) -> absl::Status {
    size_t looked_at = 0;
    return reader.ScanProcesses(context.request.range, [&](const store::ProcessRow& row) -> absl::Status {
      RETURN_IF_ERROR(CheckCancelledAt(context.request, ++looked_at));
      if (!row.attributes.empty() && seen.insert(row.attributes).second) names.Learn(DecodeAttributes(row.attributes));
      return absl::OkStatus();
    });
  });
}

// A process's own attributes become known when the process is joined, which may not have happened yet.
absl::Status CheckLabelNames(const QueryContext& context, AttributeNames& names) {
  if (context.request.selector.CheckNames(names).ok()) return absl::OkStatus();
  RETURN_IF_ERROR(LearnLabelNames(context, names));
  return context.request.selector.CheckNames(names);
}

}  // namespace tributary
