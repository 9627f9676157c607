#include "reducer/query/gauge_mean.h"

#include <algorithm>

#include "absl/container/flat_hash_set.h"
#include "base/status.h"
#include "reducer/query/selection.h"

namespace tributary {

absl::StatusOr<uint64_t> CountGaugeMinutes(const QueryContext& context) {
  absl::flat_hash_set<int64_t> minutes;
  const absl::Status visited = ForEachShard(context, [&](store::StoreReader& reader) -> absl::Status {
    ASSIGN_OR_RETURN(Selection selection, Selection::Make(reader, context));
    return reader.ScanSums(context.request.range, selection.filter(),
                           [&](const store::SumColumns& columns) -> absl::Status {
                             RETURN_IF_ERROR(CheckCancelled(context.request));
                             if (!selection.Has(columns.type) || minutes.contains(columns.minute.value))
                               return absl::OkStatus();
                             const auto is_selected = [&](store::ProcessNo process) {
                               return selection.Has(process, MiddleOf(columns.minute));
                             };
                             if (std::any_of(columns.processes.begin(), columns.processes.end(), is_selected)) {
                               minutes.insert(columns.minute.value);
                             }
                             return absl::OkStatus();
                           });
  });
  RETURN_IF_ERROR(visited);
  return std::max<uint64_t>(minutes.size(), 1);
}

}  // namespace tributary
