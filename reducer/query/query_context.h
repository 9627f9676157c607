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

// Everything that the answer to one query needs. The engine fills it and passes it to the function that makes the
// answer. One thread, one query. Borrowed objects must outlive it.
struct QueryContext {
  store::Store& store;
  SymbolStore& symbols;
  DemangleCache& demangled;
  const QueryRequest& request;
  const QueryLimits& limits;
  std::unique_ptr<ResourceCache> resources;  // nullptr: only the store's data about processes is known
  SampleTypeInfo type;                       // the type that the request means
  uint64_t gauge_minutes = 1;                // for a gauge: minutes in which the selection has samples of it; else 1
};

// Calls `visit` with a reader of each shard, one after the other. Only one reader is open at a time. Stops at the first
// error and returns it.
absl::Status ForEachShard(store::Store& store, absl::FunctionRef<absl::Status(store::StoreReader&)> visit);

}  // namespace tributary
