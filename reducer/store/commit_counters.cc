#include "reducer/store/commit_counters.h"

#include <string>

namespace tributary::store {

CommitCounters::CommitCounters(Metrics& metrics, Refusals* refusals)
    : refusals_(refusals),
      samples_(metrics.AddCounter("tributary_reducer_committed_samples_total", "Samples that were stored durably")),
      events_(metrics.AddCounter("tributary_reducer_committed_events_total",
                                 "Process events that were stored durably; a sum of events counts as all its events")),
      batches_(metrics.AddCounter("tributary_reducer_committed_batches_total", "Batches that were stored durably")),
      duplicates_(metrics.AddCounter("tributary_reducer_duplicate_batches_total",
                                     "Batches that a collector sent again, although they were already stored; they are "
                                     "not stored twice")),
      need_dictionary_(metrics.AddCounter("tributary_reducer_need_dictionary_total",
                                          "Batches that were refused, because definitions or an earlier batch were "
                                          "missing; collectors send them again")),
      clamped_times_(
          metrics.AddCounter("tributary_reducer_clamped_times_total",
                             "Samples and process events with an impossible time; they got the time of their batch, "
                             "or the reducer's time if the time of the whole batch was impossible")),
      cut_stacks_(
          metrics.AddCounter("tributary_reducer_cut_stacks_total",
                             "Samples whose stack was cut, because the shard's tree of stacks for the sample's day was "
                             "full, or because the node had used up its share of this tree")),
      commit_ns_(metrics.AddDurationCounter("tributary_reducer_commit_seconds_total",
                                            "Time spent in commits to the store, including failed commits")),
      too_old_samples_(metrics.AddCounter(
          "tributary_reducer_too_old_samples_total",
          "Samples that were older than --retention when they arrived; they were not stored and count as lost")),
      too_old_events_(metrics.AddCounter(
          "tributary_reducer_too_old_events_total",
          "Process events that were older than --retention-events when they arrived; they were not stored and count as "
          "lost; a sum of events counts as all its events")),
      opted_out_samples_(metrics.AddCounter(
          "tributary_reducer_opted_out_samples_total",
          "Samples of containers whose pod or namespace opted out of profiling; they were not stored, and count as "
          "lost for the reason opted_out")),
      opted_out_events_(metrics.AddCounter(
          "tributary_reducer_opted_out_events_total",
          "Process events of containers whose pod or namespace opted out of profiling; they were not stored, and count "
          "as lost for the reason opted_out; a sum of events counts as all its events")),
      sums_only_(metrics.AddCounter("tributary_reducer_sums_only_samples_total",
                                    "Samples that were older than --retention-raw when they arrived; they are stored "
                                    "only in sums per minute, and "
                                    "exporters do not get them")),
      closed_sessions_(metrics.AddCounter("tributary_reducer_closed_sessions_total",
                                          "Reports of nodes that the session of an earlier collector has ended")),
      closings_refused_(
          metrics.AddCounter("tributary_reducer_closings_refused_total",
                             "Refused reports that a session has ended: the session belongs to another node, is the "
                             "reporting session itself, or is unknown and above a limit of its session or node")),
      nameless_types_(metrics.AddCounter(
          "tributary_reducer_nameless_types_total",
          "Samples of a type that neither their batch nor this release defines; they were stored without a type name")),
      refused_types_(metrics.AddCounter("tributary_reducer_refused_types_total",
                                        "Samples stored without their type's name, because of a limit: in addition to "
                                        "the built-in types, a shard stores at most 1024 type names, and one machine "
                                        "can add at most 64 of them")),
      refused_attributes_(metrics.AddCounter("tributary_reducer_refused_attributes_total",
                                             "Samples stored without their own attributes, because they had more than "
                                             "32 attributes or more than 1 KiB in all")),
      reduced_definitions_(metrics.AddCounter("tributary_reducer_history_quota_definitions_total",
                                              "Names and executables that were not stored, because their node had sent "
                                              "more definitions than --node-definition-bytes-per-day allows")),
      reduced_samples_(metrics.AddCounter("tributary_reducer_history_quota_samples_total",
                                          "Samples stored without their process, because their node had sent more "
                                          "definitions than --node-definition-bytes-per-day allows")),
      unnumbered_samples_(metrics.AddCounter("tributary_reducer_unnumbered_samples_total",
                                             "Samples stored without their process, because the shard had no free "
                                             "number for a new process")),
      expired_over_share_(metrics.AddCounter("tributary_reducer_expired_over_share_rows_total",
                                             "Rows of nodes with more than their share of the store that were removed, "
                                             "because the store was above --store-bytes-max")),
      expiry_stalls_(metrics.AddCounter("tributary_reducer_expiry_stalls_total",
                                        "Runs of maintenance that found a shard above its size limit, and could not "
                                        "make it smaller by removing samples")) {
  for (uint8_t i = 0; i < kEndingCount; ++i) {
    endings_[i] = &metrics.AddCounter("tributary_reducer_samples_by_ending_total",
                                      "Samples that were stored durably, by the ending of their stack walk",
                                      {{"ending", std::string(EndingName(static_cast<Ending>(i)))}});
  }
}

void CommitCounters::Add(const CommitTally& tally) {
  samples_.Add(tally.samples);
  events_.Add(tally.events);
  batches_.Add(tally.batches);
  duplicates_.Add(tally.duplicates);
  need_dictionary_.Add(tally.need_dictionary);
  clamped_times_.Add(tally.clamped_times);
  cut_stacks_.Add(tally.cut_stacks);
  too_old_samples_.Add(tally.too_old_samples);
  too_old_events_.Add(tally.too_old_events);
  opted_out_samples_.Add(tally.opted_out_samples);
  opted_out_events_.Add(tally.opted_out_events);
  sums_only_.Add(tally.sums_only);
  closed_sessions_.Add(tally.closed_sessions);
  closings_refused_.Add(tally.closings_refused);
  nameless_types_.Add(tally.nameless_types);
  refused_types_.Add(tally.refused_types);
  refused_attributes_.Add(tally.refused_attributes);
  reduced_definitions_.Add(tally.reduced_definitions);
  reduced_samples_.Add(tally.reduced_samples);
  unnumbered_samples_.Add(tally.unnumbered_samples);
  for (size_t i = 0; i < kEndingCount; ++i) endings_[i]->Add(tally.endings[i]);
  if (refusals_ == nullptr) return;
  for (const auto& [node_and_reason, amount] : tally.refused) {
    refusals_->Add(node_and_reason.first, node_and_reason.second, amount);
  }
}

}  // namespace tributary::store
