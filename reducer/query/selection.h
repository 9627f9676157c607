#pragma once

#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "reducer/metadata/labels.h"
#include "reducer/metadata/resource_joiner.h"
#include "reducer/query/query_context.h"
#include "reducer/store/store.h"

namespace tributary {

// Returns the middle of a minute. A process's resource (its labels) may change within a minute. The sum of that minute
// then counts for the resource that was valid at the middle.
inline UnixNs MiddleOf(UnixNs minute) { return UnixNs{minute.value + kNsPerMinute / 2}; }

// The processes and threads of one shard that match a selector. If a process's resource changed within the range, the
// process may match for a part of the range only. Used by one thread. Uses one byte of memory per process (and per
// thread, if the selector has labels of threads).
class Selection {
 public:
  // Reads processes only if the selector is not empty. Joins them with metadata only if the selector uses labels that
  // are read from metadata. ResourceExhausted: the range has more than `processes_max` processes. InvalidArgument: the
  // type is a gauge, and the selector has labels of threads.
  static absl::StatusOr<Selection> Make(store::StoreReader& reader, const QueryContext& context);

  // Returns true if `type` is the type of the request.
  bool Has(store::TypeNo type) const { return type == type_; }
  // Returns true if the selector has labels of threads. Then the query must read raw samples, because sums do not
  // contain threads.
  bool uses_threads() const { return uses_threads_; }
  bool Has(store::ProcessNo process, UnixNs at) const {
    const uint8_t selected = Look(processes_, process.value, unknown_process_);
    return selected <= 1 ? selected != 0 : HasAt(process, at);
  }
  bool Has(store::ProcessNo process, store::ThreadNo thread, UnixNs at) const {
    return Has(process, at) && (!uses_threads_ || Look(threads_, thread.value, unknown_thread_) != 0);
  }

 private:
  class Maker;
  static constexpr uint8_t kSometimes = 2;
  struct Span {
    UnixNs from;
    bool selected = false;
  };

  static uint8_t Look(const std::vector<uint8_t>& selected, uint32_t number, bool otherwise) {
    return number < selected.size() ? selected[number] : static_cast<uint8_t>(otherwise);
  }
  bool HasAt(store::ProcessNo process, UnixNs at) const;

  store::TypeNo type_;
  bool uses_threads_ = false;
  // The results for processes and threads that are not in the store: their labels all count as "".
  bool unknown_process_ = true, unknown_thread_ = true;
  std::vector<uint8_t> processes_, threads_;
  absl::flat_hash_map<store::ProcessNo, std::vector<Span>> spans_;  // of processes that are kSometimes in processes_
};

}  // namespace tributary
