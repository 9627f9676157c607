#pragma once

#include <memory>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "reducer/metadata/resource_joiner.h"
#include "reducer/query/demangle_cache.h"
#include "reducer/query/query_request.h"
#include "reducer/store/store.h"
#include "reducer/symbolizer/symbol_store.h"

namespace tributary {

// The inputs of one query. QueryEngine fills in a QueryContext and passes it to the function that computes the answer,
// for example MakeTop. Use it for one query, on one thread. The objects to which it refers must outlive it.
struct QueryContext {
  store::Store& store;
  SymbolStore& symbols;
  DemangleCache& demangled;
  const QueryRequest& request;
  const QueryLimits& limits;
  std::unique_ptr<ResourceCache> resources;  // nullptr: only the store's data about processes is known
  SampleTypeInfo type;                       // the sample type that the request names
  uint64_t gauge_minutes = 1;                // for a gauge: minutes in which the selection has samples of it; else 1
};

// Calls `visit` for each shard with a reader of that shard, which ends its work if the request is cancelled. Opens the
// next reader only after the previous one is closed. Stops at the first error and returns it.
absl::Status ForEachShard(store::Store& store, const QueryRequest& request,
                          absl::FunctionRef<absl::Status(store::StoreReader&)> visit);
inline absl::Status ForEachShard(const QueryContext& context,
                                 absl::FunctionRef<absl::Status(store::StoreReader&)> visit) {
  return ForEachShard(context.store, context.request, visit);
}

}  // namespace tributary
