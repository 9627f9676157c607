#include "reducer/query/query_context.h"

#include "base/status.h"

namespace tributary {

absl::Status ForEachShard(store::Store& store, const QueryRequest& request,
                          absl::FunctionRef<absl::Status(store::StoreReader&)> visit) {
  for (uint32_t shard = 0; shard < store.shard_count(); ++shard) {
    RETURN_IF_ERROR(CheckCancelled(request));
    ASSIGN_OR_RETURN(const std::unique_ptr<store::StoreReader> reader, store.OpenReader(shard));
    reader->CancelIf(request.is_cancelled);
    const absl::Status visited = visit(*reader);
    // The reader's own message does not say what to do.
    if (absl::IsDeadlineExceeded(visited)) return CancelledError();
    RETURN_IF_ERROR(visited);
  }
  return absl::OkStatus();
}

}  // namespace tributary
