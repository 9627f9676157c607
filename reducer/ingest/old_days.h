#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "profile/row_batch.h"
#include "reducer/store/age_rules.h"
#include "reducer/store/store.h"

namespace tributary::ingest {

// Limits how many old days each node may use. A day is old for a batch if samples or events of this day are older than
// single samples may be. The store writer must load the day's trie for them, describe their processes anew, and write
// sums for each of their minutes. So a node with old samples costs much more than others. A node counts as using a day
// until it has sent nothing of this day for an hour. A node that was away for a week sends its days one after another,
// so the days that it has finished make room for the next ones.
//
// Costs a loop over the batch's times, which takes about a nanosecond per sample. Memory is used only for nodes that
// use old days. Use it on one thread.
class OldDays {
 public:
  struct Options {
    store::AgeRules::Ages ages;
    uint32_t node_days_max = 4;  // 0: no limit
    size_t nodes_max = 65'536;   // a further node with an old day must wait until another node uses none any more
  };
  explicit OldDays(const Options& options) : options_(options) {}

  // Returns 0 if the batch may be stored, and counts its days as used from now on. Otherwise returns for how long it
  // must wait. A batch with more than `node_days_max` old days may be stored while its node uses no old day.
  int64_t Take(std::string_view node_id, const RowBatch& batch, UnixNs unix_now, MonotonicNs now);

  size_t nodes() const { return nodes_.size(); }

 private:
  struct Use {
    store::Day day;
    MonotonicNs last;
  };
  using Uses = std::vector<Use>;

  std::vector<store::Day> DaysOf(const RowBatch& batch, UnixNs unix_now) const;
  void ForgetUnused(MonotonicNs now);

  const Options options_;
  absl::flat_hash_map<std::string, Uses> nodes_;
  MonotonicNs next_walk_;
};

}  // namespace tributary::ingest
