#include "reducer/query/query_context.h"

#include "base/status.h"

namespace tributary {

QueryContext QueryContext::ForOtherThread(const QueryLimits& other_limits) const {
  return {store,
          symbols,
          demangled,
          request,
          other_limits,
          resources == nullptr ? nullptr : std::make_unique<ResourceCache>(resources->joiner(), request.range),
          type,
          gauge_minutes};
}

absl::StatusOr<std::unique_ptr<store::StoreReader>> OpenShard(store::Store& store, uint32_t shard,
                                                              const QueryRequest& request) {
  RETURN_IF_ERROR(CheckCancelled(request));
  ASSIGN_OR_RETURN(std::unique_ptr<store::StoreReader> reader, store.OpenReader(shard));
  reader->CancelIf(request.is_cancelled);
  return reader;
}

// The reader's own message does not say what to do.
absl::Status ErrorOfShard(const absl::Status& status) {
  return absl::IsDeadlineExceeded(status) ? CancelledError() : status;
}

absl::Status ForEachShard(store::Store& store, const QueryRequest& request,
                          absl::FunctionRef<absl::Status(store::StoreReader&)> visit) {
  for (uint32_t shard = 0; shard < store.shard_count(); ++shard) {
    ASSIGN_OR_RETURN(const std::unique_ptr<store::StoreReader> reader, OpenShard(store, shard, request));
    RETURN_IF_ERROR(ErrorOfShard(visit(*reader)));
  }
  return absl::OkStatus();
}

}  // namespace tributary
