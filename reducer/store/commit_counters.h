#pragma once

#include <cstdint>

#include "base/metrics.h"
#include "profile/model.h"

namespace tributary::store {

// The amounts that a transaction adds to the counters after its commit.
struct CommitTally {
  uint64_t samples = 0, events = 0, batches = 0, duplicates = 0, need_dictionary = 0, clamped_times = 0, cut_stacks = 0;
  uint64_t closed_sessions = 0, closings_refused = 0, nameless_types = 0, refused_types = 0, refused_attributes = 0;
  uint64_t endings[kEndingCount] = {};
};

// The metrics of a ShardWriter, which are the same for every kind of store. Use an object on the writer's thread.
class CommitCounters {
 public:
  // `metrics` must outlive the object.
  explicit CommitCounters(Metrics& metrics);

  void Add(const CommitTally& tally);
  void AddTime(int64_t ns) { commit_ns_.Add(static_cast<uint64_t>(ns)); }  // of a commit, even of a failed one

 private:
  Counter &samples_, &events_, &batches_, &duplicates_, &need_dictionary_, &clamped_times_, &cut_stacks_, &commit_ns_;
  Counter &closed_sessions_, &closings_refused_, &nameless_types_, &refused_types_, &refused_attributes_;
  Counter* endings_[kEndingCount];
};

}  // namespace tributary::store
