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

// Returns the instant that stands for a sum's minute if a process's resource changed within the minute.
inline UnixNs MiddleOf(UnixNs minute) { return UnixNs{minute.value + kNsPerMinute / 2}; }

// The processes and threads of one shard that a selector selects, and when: a process whose resource changed within the
// range is split by time. Used by one thread. Costs one byte per process (and per thread, if the selector uses
// threads).
class Selection {
 public:
  // Reads processes only if the selector needs them. Joins them only if the selector uses labels that the processes do
  // not have themselves. ResourceExhausted: more processes than the limit. InvalidArgument: a gauge, selected by
  // thread.
  static absl::StatusOr<Selection> Make(store::StoreReader& reader, const QueryContext& context);

  // Returns true if the request asks for samples of this type.
  bool Has(store::TypeNo type) const { return type == type_; }
  // Returns true if the selector uses threads: then only raw samples can answer, not sums.
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
  // For numbers without a row: the result as if every label were "".
  bool unknown_process_ = true, unknown_thread_ = true;
  std::vector<uint8_t> processes_, threads_;
  absl::flat_hash_map<store::ProcessNo, std::vector<Span>> spans_;  // of processes that are kSometimes in processes_
};

}  // namespace tributary
