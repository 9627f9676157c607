#pragma once

#include <cstdint>
#include <deque>
#include <span>

#include "base/types.h"
#include "reducer/store/store.h"

namespace tributary::ingest {

// Decides which days before yesterday the nodes of a shard may use now. The store writer needs the trie of each such
// day in memory, and keeps only as many tries as may be in use (store::kOldDaysAtOnce). Loading a full trie of 8
// million nodes takes seconds. If the nodes together used more days, each commit would load tries again, and the
// batches of all nodes would wait for it.
//
// At a time, two days have their turn: a day and the next day, because a batch around midnight has samples of both. A
// batch of other days waits. The days take turns: each day for which batches wait is in a queue once, no matter how
// many nodes and batches wait for it, so many batches of one day do not delay another day. A turn lasts two minutes.
// If no other day waits, it goes on. So each day gets its turn again after at most two minutes for each other day of
// the retention, and a node that returns after a long outage gets through.
//
// A batch with days that have no common turn comes only from a broken clock or a hostile node. All such batches share
// one place in the queue. Their turn is for one batch, and lasts two minutes for each two of its days. So in two
// minutes, the writer loads the tries of at most two days that wait. To make room for them, it may remove the tries of
// today and yesterday, and load these again: at most four tries in two minutes.
//
// Use it on one thread.
class OldDayTurns {
 public:
  // `turn_ns` 0: no limit.
  explicit OldDayTurns(int64_t turn_ns) : turn_ns_(turn_ns) {}

  // Returns 0 if a batch that has samples of these days may be stored now. Otherwise returns how many ns it must wait
  // before it asks again. `days`: days before yesterday, each of them once, in any order.
  int64_t Take(std::span<const store::Day> days, MonotonicNs now);

 private:
  static constexpr store::Day kManyDays{INT32_MAX};
  struct Turn {
    store::Day first{INT32_MIN};  // kManyDays: the turn of a batch with days that have no common turn
    MonotonicNs waits_since;
    bool Covers(store::Day from, store::Day to) const;
  };

  void Advance(MonotonicNs now);

  const int64_t turn_ns_;
  Turn turn_;
  MonotonicNs ends_;          // of `turn_`, if another turn waits
  bool used_up_ = false;      // a batch has used the turn of kManyDays
  std::deque<Turn> waiting_;  // at most one for each day of the retention, and one for kManyDays
};

}  // namespace tributary::ingest
