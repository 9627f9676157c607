#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/heap.h"
#include "base/status.h"
#include "reducer/metadata/resource_joiner.h"
#include "reducer/query/demangle_cache.h"
#include "reducer/query/query_request.h"
#include "reducer/query/shard_threads.h"
#include "reducer/store/store.h"
#include "reducer/symbolizer/symbol_store.h"

namespace tributary {

class Selection;

// The inputs of one query. QueryEngine fills in a QueryContext and passes it to the function that computes the answer,
// for example MakeTop. Use it for one query, on one thread (see ForOtherThread). The objects to which it refers must
// outlive it.
struct QueryContext {
  store::Store& store;
  SymbolStore& symbols;
  DemangleCache& demangled;
  const QueryRequest& request;
  const QueryLimits& limits;
  std::unique_ptr<ResourceCache> resources;  // nullptr: only the store's data about processes is known
  SampleTypeInfo type;                       // the sample type that the request names
  uint64_t gauge_minutes = 1;                // for a gauge: minutes in which the selection has samples of it; else 1
  ShardThreads* threads = nullptr;           // nullptr: shards are read one after the other
  // The selection of the shard that is read, once Selection::MakeOnce has made it. A second attempt to read the shard
  // uses it too.
  mutable std::shared_ptr<const Selection> selection = nullptr;
  mutable size_t selection_bytes = 0;

  // The same query with other limits, which must outlive the result. The result has no `threads` and no selection.
  QueryContext ForOtherThread(const QueryLimits& other_limits) const;
};

// Opens a reader, which ends its work if the request is cancelled.
absl::StatusOr<std::unique_ptr<store::StoreReader>> OpenShard(store::Store& store, uint32_t shard,
                                                              const QueryRequest& request);
// Returns the error that a query returns for an error of a reader.
absl::Status ErrorOfShard(const absl::Status& status);

// Calls `visit` for each shard with a reader of that shard, which ends its work if the request is cancelled. Opens the
// next reader only after the previous one is closed. Stops at the first error and returns it.
absl::Status ForEachShard(store::Store& store, const QueryRequest& request,
                          absl::FunctionRef<absl::Status(store::StoreReader&)> visit);
inline absl::Status ForEachShard(const QueryContext& context,
                                 absl::FunctionRef<absl::Status(store::StoreReader&)> visit) {
  return ForEachShard(context.store, context.request, visit);
}

// As ForEachShard, for queries whose work for a shard is large. `read` makes a part of the answer of each shard, for
// several shards at the same time, each on a thread and with a context of its own. Then `merge` is called with each
// part and its reader, in the order of the shards, on the caller's thread. So that a query does not take more memory
// with more threads, n shards that are read at the same time have an nth of the limits each. If that is not enough, the
// shards are read one after the other. A shard whose selection is known keeps its reader, so that both are of the same
// data.
template <typename Part>
absl::Status ForEachShardPart(const QueryContext& context,
                              absl::FunctionRef<absl::StatusOr<Part>(store::StoreReader&, const QueryContext&)> read,
                              absl::FunctionRef<absl::Status(store::StoreReader&, Part)> merge) {
  struct Shard {
    std::optional<QueryContext> context;
    std::unique_ptr<store::StoreReader> reader;
    absl::StatusOr<Part> part;
  };
  const uint32_t shards = context.store.shard_count();
  uint32_t together = context.threads == nullptr ? 1 : static_cast<uint32_t>(context.threads->together());
  for (uint32_t first = 0; first < shards;) {
    const uint32_t count = std::min(together, shards - first);
    const QueryLimits limits = context.limits.DividedBy(count);
    std::vector<Shard> batch;
    for (uint32_t i = 0; i < count; ++i) {
      batch.push_back({context.ForOtherThread(limits), nullptr, absl::UnknownError("not read")});
      ASSIGN_OR_RETURN(batch.back().reader, OpenShard(context.store, first + i, context.request));
    }
    const auto work = [&](size_t i) { batch[i].part = read(*batch[i].reader, *batch[i].context); };
    const auto is_over = [](const Shard& shard) { return absl::IsResourceExhausted(shard.part.status()); };
    if (count > 1) context.threads->Run(count, work);
    const bool again = count > 1 && std::ranges::any_of(batch, is_over);
    if (again) {
      together = 1;
      for (Shard& shard : batch) {
        shard.part = absl::UnknownError("not read");
        std::shared_ptr<const Selection> selection = std::move(shard.context->selection);
        // No limit counts selections that wait for their turn.
        if (shard.context->selection_bytes > limits.selection_bytes_max / 4) selection = nullptr;
        if (selection == nullptr) {
          shard.reader.reset();
        } else {
          shard.reader->ForgetTexts();
        }
        shard.context.emplace(context.ForOtherThread(context.limits)).selection = std::move(selection);
      }
      // The freed memory of several threads must not add to that of the next attempt. A trim keeps other threads
      // waiting, so it must be worth it.
      if (FreeHeapBytes() >= context.limits.selection_bytes_max / 4) TrimHeap();
    }
    for (size_t i = 0; i < batch.size(); ++i) {
      Shard& shard = batch[i];
      if (shard.reader == nullptr) {
        ASSIGN_OR_RETURN(shard.reader, OpenShard(context.store, first + static_cast<uint32_t>(i), context.request));
      }
      if (count == 1 || again) work(i);
      RETURN_IF_ERROR(ErrorOfShard(shard.part.status()));
      RETURN_IF_ERROR(ErrorOfShard(merge(*shard.reader, *std::move(shard.part))));
      shard.part = absl::UnknownError("merged");  // frees its memory
      shard.context.reset();
      shard.reader.reset();
    }
    first += count;
  }
  return absl::OkStatus();
}

}  // namespace tributary
