#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "reducer/metadata/labels.h"
#include "reducer/query/query.h"
#include "reducer/query/selector.h"
#include "reducer/store/store.h"

namespace tributary {

// Which of one shard's processes and threads a selector means. One thread; costs a byte a process (and a thread, when
// the selector speaks of threads).
class Selection {
 public:
  // Reads processes only when the selector needs them. ResourceExhausted: more of them than the limit.
  static absl::StatusOr<Selection> Make(store::StoreReader& reader, const Selector& selector, store::TimeRange range,
                                        const QueryLimits& limits);

  // Threads are told apart: only raw samples can answer, not sums.
  bool uses_threads() const { return uses_threads_; }
  bool Has(store::ProcessNo process) const { return Look(processes_, process.value, unknown_process_); }
  bool Has(store::ProcessNo process, store::ThreadNo thread) const {
    return Has(process) && (!uses_threads_ || Look(threads_, thread.value, unknown_thread_));
  }

 private:
  static bool Look(const std::vector<uint8_t>& selected, uint32_t number, bool otherwise) {
    return number < selected.size() ? selected[number] != 0 : otherwise;
  }

  bool uses_threads_ = false;
  // Of numbers without a row: as if every label were "".
  bool unknown_process_ = true, unknown_thread_ = true;
  std::vector<uint8_t> processes_, threads_;
};

}  // namespace tributary
