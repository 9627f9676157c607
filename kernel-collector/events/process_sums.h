#pragma once

#include <cstddef>
#include <cstdint>
#include <list>

#include "absl/container/flat_hash_map.h"
#include "base/types.h"
#include "kernel-collector/events/text_table.h"
#include "profile/process_event.h"

namespace tributary {

// What all processes of one sum have in common: every name, the user, and how they ended. So a sum never shows a name
// that one of its processes did not have.
struct SumKey {
  Texts texts;
  uint32_t uid = 0;
  uint8_t exit_code = 0, signal = 0;
  bool core_dumped = false, oom_killed = false;

  friend bool operator==(const SumKey&, const SumKey&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const SumKey& k) {
    return H::combine(std::move(h), k.texts, k.uid, k.exit_code, k.signal, k.core_dumped, k.oom_killed);
  }
};

// Several short processes, summed up.
struct ProcessSum {
  SumKey key;
  uint32_t events = 0;     // starts, execs and exits
  uint32_t processes = 0;  // processes that ended
  MonotonicNs time;        // when the last of them ended
  ProcessEnd end;          // the ending of all; times added, the largest peak
};

// The sums that wait to be sent, at most `sums_max`, and at most `bytes_max` with their texts. A text counts for each
// sum that has it. Each sum holds a reference to its texts in `texts`, which must
// outlive this object. Not thread-safe.
class ProcessSums {
 public:
  ProcessSums(TextTable& texts, size_t sums_max, size_t bytes_max = SIZE_MAX)
      : texts_(texts), sums_max_(sums_max), bytes_max_(bytes_max) {}

  // Adds a process that ended at `time`, with its number of events. Returns false, and adds nothing, if this needs a
  // new sum above `sums_max` or `bytes_max` (which refused() counts), or if a number of the sum would overflow.
  bool Add(const SumKey& key, const ProcessEnd& end, MonotonicNs time, uint32_t events);
  bool Contains(const SumKey& key) const { return index_.contains(key); }
  void Remove(const ProcessSum& sum);

  const std::list<ProcessSum>& sums() const { return sums_; }  // the oldest first
  size_t size() const { return sums_.size(); }
  size_t bytes() const { return sums_.size() * kSumBytes; }  // without the texts
  uint64_t events() const { return events_; }                // of all sums
  uint64_t refused() const { return refused_; }

 private:
  using Position = std::list<ProcessSum>::iterator;
  // The list's node, and the slot in the hash table at the lowest load.
  static constexpr size_t kSumBytes = sizeof(ProcessSum) + 32 + 2 * (sizeof(SumKey) + sizeof(Position) + 1);

  size_t BytesOf(const SumKey& key) const { return kSumBytes + texts_.BytesOf(key.texts); }

  TextTable& texts_;
  const size_t sums_max_, bytes_max_;
  size_t bytes_with_texts_ = 0;
  std::list<ProcessSum> sums_;
  absl::flat_hash_map<SumKey, Position> index_;
  uint64_t events_ = 0;
  uint64_t refused_ = 0;
};

SumKey MakeSumKey(const Texts& texts, uint32_t uid, const ProcessEnd& end);

}  // namespace tributary
