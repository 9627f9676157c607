#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "reducer/query/number_states.h"
#include "reducer/query/process_matcher.h"
#include "reducer/query/query_context.h"
#include "reducer/store/store.h"

namespace tributary {

// Returns the middle of a minute. A process's resource (its labels) may change within a minute. The sum of that minute
// then counts for the resource that was valid at the middle.
inline UnixNs MiddleOf(UnixNs minute) { return UnixNs{minute.value + kNsPerMinute / 2}; }

// The processes and threads of one shard that match a selector. If a process's resource changed within the range, the
// process may match for a part of the range only. The memory depends on the processes of the range, at most
// QueryLimits::selection_bytes_max; a selector without matchers takes none. Used by one thread.
class Selection {
 public:
  // Reads the ids of processes, unless the selector is empty. Joins them with metadata only if the selector uses labels
  // that are read from metadata. ResourceExhausted: over selection_bytes_max. InvalidArgument: the type is a gauge, and
  // the selector has labels of threads.
  static absl::StatusOr<Selection> Make(store::StoreReader& reader, const QueryContext& context);
  // As Make, but keeps the selection in `context`, and returns the same one for the same context again. For queries
  // that may exceed their limits after the selection: selecting from 50 million processes takes seconds.
  static absl::StatusOr<std::shared_ptr<const Selection>> MakeOnce(store::StoreReader& reader,
                                                                   const QueryContext& context);

  // Restricts scans to the request's type, and to the machines with selected processes. The rows of such a scan may
  // belong to processes that are not selected.
  const store::ScanFilter& filter() const { return filter_; }

  // Returns true if `type` is the type of the request.
  bool Has(store::TypeNo type) const { return filter_.Has(type); }
  // Returns true if a process is selected at some times only.
  bool changes() const { return !spans_.empty(); }
  size_t bytes() const { return processes_.bytes() + threads_.bytes() + spans_bytes_; }
  // Returns true if the selector has labels of threads. Then the query must read raw samples, because sums do not
  // contain threads.
  bool uses_threads() const { return uses_threads_; }
  bool Has(store::ProcessNo process, UnixNs at) const {
    if (selects_all_) return true;
    const NumberState state = processes_.Get(process.value);
    if (state == NumberState::kUnread) return unknown_process_;
    return state == NumberState::kSometimes ? HasAt(process, at) : state == NumberState::kSelected;
  }
  bool Has(store::ProcessNo process, store::ThreadNo thread, UnixNs at) const {
    return Has(process, at) && (!uses_threads_ || HasThread(thread));
  }

 private:
  absl::Status ReadProcesses(store::StoreReader& reader, const QueryContext& context, ProcessMatcher& matcher);
  absl::Status ReadThreads(store::StoreReader& reader, const QueryContext& context, ProcessMatcher& matcher);
  absl::Status CheckBytes(const QueryContext& context, const ProcessMatcher& matcher) const;

  bool HasAt(store::ProcessNo process, UnixNs at) const;
  bool HasThread(store::ThreadNo thread) const {
    const NumberState state = threads_.Get(thread.value);
    return state == NumberState::kUnread ? unknown_thread_ : state == NumberState::kSelected;
  }

  store::ScanFilter filter_;
  bool selects_all_ = true, uses_threads_ = false;
  // The results for processes and threads that are not in the store: their labels all count as "".
  bool unknown_process_ = true, unknown_thread_ = true;
  NumberStates processes_, threads_;
  // Of the processes that are kSometimes in processes_.
  absl::flat_hash_map<store::ProcessNo, std::vector<SelectedSpan>> spans_;
  size_t spans_bytes_ = 0;
};

}  // namespace tributary
