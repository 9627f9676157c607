#include "reducer/query/label_names.h"

#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "base/status.h"
#include "reducer/query/query_context.h"

namespace tributary {

absl::Status LearnLabelNames(const QueryContext& context, AttributeNames& names) {
  absl::flat_hash_set<std::string> seen;
  return ForEachShard(context.store, [&](store::StoreReader& reader) -> absl::Status {
    ASSIGN_OR_RETURN(std::vector<store::ProcessRow> rows, reader.Processes(context.request.range, nullptr));
    RETURN_IF_ERROR(CheckCancelled(context.request));
    for (const store::ProcessRow& row : rows) {
      if (!row.attributes.empty() && seen.insert(row.attributes).second) names.Learn(DecodeAttributes(row.attributes));
    }
    return absl::OkStatus();
  });
}

// A process's own attributes become known when the process is joined, which may not have happened yet.
absl::Status CheckLabelNames(const QueryContext& context, AttributeNames& names) {
  if (context.request.selector.CheckNames(names).ok()) return absl::OkStatus();
  RETURN_IF_ERROR(LearnLabelNames(context, names));
  return context.request.selector.CheckNames(names);
}

}  // namespace tributary
