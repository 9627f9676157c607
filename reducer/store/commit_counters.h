#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "base/metrics.h"
#include "base/refusals.h"
#include "profile/model.h"

namespace tributary::store {

// The amounts that a transaction adds to the counters after its commit.
struct CommitTally {
  uint64_t samples = 0, events = 0, batches = 0, duplicates = 0, need_dictionary = 0, clamped_times = 0, cut_stacks = 0;
  uint64_t too_old_samples = 0, too_old_events = 0, opted_out_samples = 0, opted_out_events = 0, sums_only = 0;
  uint64_t closed_sessions = 0, closings_refused = 0, nameless_types = 0, refused_types = 0, refused_attributes = 0;
  uint64_t reduced_definitions = 0, reduced_samples = 0, unnumbered_samples = 0;
  uint64_t endings[kEndingCount] = {};
  // For Refusals. Key: the node's id, and the reason, which must be a constant.
  std::map<std::pair<std::string, std::string_view>, uint64_t> refused;

  uint64_t too_old() const { return too_old_samples + too_old_events; }
  void Refuse(std::string_view node_id, std::string_view reason, uint64_t amount) {
    if (amount != 0) refused[{std::string(node_id), reason}] += amount;
  }
};

// The metrics of a ShardWriter, which are the same for every kind of store. Use an object on the writer's thread.
class CommitCounters {
 public:
  // `metrics` and `refusals` must outlive the object. `refusals` may be null.
  CommitCounters(Metrics& metrics, Refusals* refusals);

  void Add(const CommitTally& tally);
  // Of a run of maintenance: removed rows of nodes over their share; whether no further removal would help.
  void AddExpiry(uint64_t rows_over_share, bool stalled) {
    expired_over_share_.Add(rows_over_share);
    expiry_stalls_.Add(stalled ? 1 : 0);
  }
  void AddTime(int64_t ns) { commit_ns_.Add(static_cast<uint64_t>(ns)); }  // of a commit, even of a failed one

 private:
  Refusals* const refusals_;
  Counter &samples_, &events_, &batches_, &duplicates_, &need_dictionary_, &clamped_times_, &cut_stacks_, &commit_ns_;
  Counter &too_old_samples_, &too_old_events_, &opted_out_samples_, &opted_out_events_, &sums_only_;
  Counter &closed_sessions_, &closings_refused_, &nameless_types_, &refused_types_, &refused_attributes_;
  Counter &reduced_definitions_, &reduced_samples_, &unnumbered_samples_, &expired_over_share_, &expiry_stalls_;
  Counter* endings_[kEndingCount];
};

}  // namespace tributary::store
