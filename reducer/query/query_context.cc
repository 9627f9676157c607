#include "reducer/query/query_context.h"

#include "base/status.h"

namespace tributary {

absl::Status ForEachShard(store::Store& store, absl::FunctionRef<absl::Status(store::StoreReader&)> visit) {
  for (uint32_t shard = 0; shard < store.shard_count(); ++shard) {
    ASSIGN_OR_RETURN(const std::unique_ptr<store::StoreReader> reader, store.OpenReader(shard));
    RETURN_IF_ERROR(visit(*reader));
  }
  return absl::OkStatus();
}

}  // namespace tributary
