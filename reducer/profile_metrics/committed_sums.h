#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "absl/status/statusor.h"
#include "profile/sample_types.h"
#include "reducer/profile_metrics/frame_labels.h"
#include "reducer/store/store.h"

namespace tributary {

// The samples that one shard committed after a cursor, summed up while they are read. A sum needs no symbols and no
// metadata, so it can wait for both to arrive. All samples of one process and minute are one sum of 48 bytes, or one
// for each of their stacks. A value stops at 2^64 - 1. Used by one thread.
struct CommittedSums {
  struct Sum {
    SampleTypeInfo const* type = nullptr;  // a key of `types`
    store::ProcessNo process;
    UnixNs minute;        // its start
    store::Day day;       // these two are 0 if no metric uses frames of the type
    store::NodeNo stack;  // of the day's trie
    uint64_t value = 0, count = 0;
  };
  static_assert(sizeof(Sum) == 48);
  // The types to read. The value is true if the sums need stacks.
  using Types = std::map<SampleTypeInfo, bool>;

  std::vector<Sum> sums;  // sorted by type, process and minute
  size_t samples = 0;     // rows that were read, of all types
  store::CommittedScan scan;

  // Reads about `samples_max` samples. `types` must outlive the result.
  static absl::StatusOr<CommittedSums> Read(store::StoreReader& reader, const store::Cursor& cursor, size_t samples_max,
                                            const Types& types);

  // A time with samples, and its processes. The store indexes processes by slots (store_times.h). Each run covers
  // adjacent slots that have samples, so a sample that arrives hours late does not add the slots in between.
  struct Run {
    store::TimeRange range;
    store::ProcessSet processes;
  };
  std::vector<Run> Runs() const;       // sorted by time
  FrameLabels::Leaves Leaves() const;  // the stacks of each day, each once
};

}  // namespace tributary
