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

// The instant that stands for a sum's minute where what a process belongs to changed within it.
inline UnixNs MiddleOf(UnixNs minute) { return UnixNs{minute.value + kNsPerMinute / 2}; }

// Which of one shard's processes and threads a selector means, and when: a process whose resource changed within the
// range is told apart by time. One thread; costs a byte a process (and a thread, when the selector speaks of threads).
class Selection {
 public:
  // Reads processes only when the selector needs them, and joins them only where it speaks of what they do not say
  // themselves. ResourceExhausted: more processes than the limit. InvalidArgument: a gauge, by thread.
  static absl::StatusOr<Selection> Make(store::StoreReader& reader, const QueryContext& context);

  // Whether samples of a type are asked for.
  bool Has(store::TypeNo type) const { return type == type_; }
  // Threads are told apart: only raw samples can answer, not sums.
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
  // Of numbers without a row: as if every label were "".
  bool unknown_process_ = true, unknown_thread_ = true;
  std::vector<uint8_t> processes_, threads_;
  absl::flat_hash_map<store::ProcessNo, std::vector<Span>> spans_;  // where processes_ says kSometimes
};

}  // namespace tributary
