#include "reducer/store/commit_counters.h"

#include <string>

namespace tributary::store {

CommitCounters::CommitCounters(Metrics& metrics)
    : samples_(metrics.AddCounter("tributary_reducer_committed_samples_total", "samples made durable")),
      batches_(metrics.AddCounter("tributary_reducer_committed_batches_total", "batches made durable")),
      duplicates_(metrics.AddCounter("tributary_reducer_duplicate_batches_total",
                                     "batches that were durable already: sent again after a reconnect")),
      need_dictionary_(metrics.AddCounter("tributary_reducer_need_dictionary_total",
                                          "batches refused because their definitions are not known (any more)")),
      clamped_times_(metrics.AddCounter("tributary_reducer_clamped_times_total",
                                        "samples with an impossible time, stored at their batch's time")),
      cut_stacks_(metrics.AddCounter("tributary_reducer_cut_stacks_total",
                                     "samples whose stack was cut because the day's trie is full")),
      commit_ns_(metrics.AddDurationCounter("tributary_reducer_commit_seconds_total", "time spent in commits")),
      closed_sessions_(metrics.AddCounter("tributary_reducer_closed_sessions_total",
                                          "reports of a node that a session of its earlier collector has ended")),
      closings_refused_(metrics.AddCounter(
          "tributary_reducer_closings_refused_total",
          "refused reports that a session has ended: of another node, the reporting session itself, or too many "
          "unknown sessions")),
      nameless_types_(metrics.AddCounter("tributary_reducer_nameless_types_total",
                                         "samples of a type that their batch does not define and this release does not "
                                         "know")),
      refused_types_(
          metrics.AddCounter("tributary_reducer_refused_types_total",
                             "samples stored without their type's name: a shard keeps at most 1024 types, and "
                             "at most 64 that one machine sent first")),
      refused_attributes_(
          metrics.AddCounter("tributary_reducer_refused_attributes_total",
                             "samples whose own attributes were left out: more than 32, or more than 1 KiB")) {
  for (uint8_t i = 0; i < kEndingCount; ++i) {
    endings_[i] = &metrics.AddCounter("tributary_reducer_samples_by_ending_total",
                                      "samples made durable, by how the walk of their stack ended",
                                      {{"ending", std::string(EndingName(static_cast<Ending>(i)))}});
  }
}

void CommitCounters::Add(const CommitTally& tally) {
  samples_.Add(tally.samples);
  batches_.Add(tally.batches);
  duplicates_.Add(tally.duplicates);
  need_dictionary_.Add(tally.need_dictionary);
  clamped_times_.Add(tally.clamped_times);
  cut_stacks_.Add(tally.cut_stacks);
  closed_sessions_.Add(tally.closed_sessions);
  closings_refused_.Add(tally.closings_refused);
  nameless_types_.Add(tally.nameless_types);
  refused_types_.Add(tally.refused_types);
  refused_attributes_.Add(tally.refused_attributes);
  for (size_t i = 0; i < kEndingCount; ++i) endings_[i]->Add(tally.endings[i]);
}

}  // namespace tributary::store
