#include "reducer/ingest/group_commit.h"

#include <utility>

#include "base/status.h"
#include "reducer/store/damage.h"

namespace tributary::ingest {

GroupCommit::GroupCommit(std::string name, store::ShardWriter& writer, Options options, Pause pause, const Clock& clock,
                         Metrics& metrics)
    : name_(std::move(name)),
      writer_(writer),
      options_(options),
      pause_(std::move(pause)),
      clock_(clock),
      failures_(metrics.AddCounter("tributary_reducer_commit_failures_total",
                                   "Commits to the store that failed; if the number grows, the disk is full or broken, "
                                   "or a file is damaged")),
      refused_batches_(metrics.AddCounter("tributary_reducer_poisoned_batches_total",
                                          "Batches that the store could not commit even alone; they were refused, and "
                                          "their collectors count their samples as lost{rejected}")),
      refused_samples_(metrics.AddCounter("tributary_reducer_poisoned_samples_total",
                                          "Samples and process events of the refused batches; a batch that is refused "
                                          "again counts again")) {}

std::optional<std::vector<CommittedBatch>> GroupCommit::Commit(std::span<const RowBatch> group) {
  std::optional<Outcomes> outcomes = CommitOrFail(group, options_.io_tries_max);
  if (!outcomes) return std::nullopt;
  std::vector<CommittedBatch> done;
  done.reserve(group.size());
  if (outcomes->ok()) {
    for (size_t i = 0; i < group.size(); ++i) done.push_back(Committed(group[i], (**outcomes)[i]));
    return done;
  }
  if (uint64_t suppressed; alone_log_.Allow(clock_.Monotonic(), &suppressed)) {
    LogWarning("{}: cannot commit a group of {} batches: {}. Each batch is now committed alone suppressed={}", name_,
               group.size(), Message(store::AdviseOnDamage(outcomes->status())), suppressed);
  }
  for (const RowBatch& batch : group) {
    std::optional<CommittedBatch> one = CommitAlone(batch);
    if (!one) return std::nullopt;
    done.push_back(*std::move(one));
  }
  return done;
}

std::optional<GroupCommit::Outcomes> GroupCommit::CommitOrFail(std::span<const RowBatch> group, int io_tries_max) {
  Backoff pause_ms({.min = options_.retry_min_ms, .max = options_.retry_max_ms});
  int io_tries = 0;
  for (bool failed = false;; failed = true) {
    Outcomes outcomes = writer_.Commit(group);
    if (outcomes.ok()) {
      if (failed) LogInfo("{}: writing works again, the reducer lost no samples", name_);
      return outcomes;
    }
    failures_.Add();
    const bool io_error = absl::IsAborted(outcomes.status());
    if (!store::MayPass(outcomes.status()) && !(io_error && ++io_tries < io_tries_max)) return outcomes;
    if (!failed) {
      LogError("{}: cannot write: {}. Meanwhile, samples wait in the collectors' memory and spools{}", name_,
               Message(outcomes.status()),
               absl::IsResourceExhausted(outcomes.status())
                   ? "; free disk space before you restart the reducer: it does not start on a full disk"
                   : "; check the data directory");
    }
    if (!pause_(pause_ms.Next())) return std::nullopt;
  }
}

std::optional<CommittedBatch> GroupCommit::CommitAlone(const RowBatch& batch) {
  const std::optional<Outcomes> outcomes = CommitOrFail({&batch, 1}, 1);  // the group has waited already
  if (!outcomes) return std::nullopt;
  if (!outcomes->ok()) return Refuse(batch, outcomes->status());
  return Committed(batch, (**outcomes)[0]);
}

CommittedBatch GroupCommit::Refuse(const RowBatch& batch, const absl::Status& why) {
  const uint64_t samples = CountRecords(batch.samples, batch.events).total();
  refused_batches_.Add();
  refused_samples_.Add(samples);
  if (options_.refusals != nullptr) options_.refusals->Add(batch.node->node_id, "poisoned_batch");
  if (uint64_t suppressed; refused_log_.Allow(clock_.Monotonic(), &suppressed)) {
    LogError("{}: a batch cannot be stored and is refused node={} sequence={} samples={} cause=\"{}\" suppressed={}",
             name_, EscapeForDisplay(batch.node->node_id), batch.sequence, samples, Message(store::AdviseOnDamage(why)),
             suppressed);
  }
  CommittedBatch refused = Committed(batch, {.sequence = 0, .need_dictionary = true});
  refused.refused_sequence = batch.sequence;
  refused.refused = true;
  return refused;
}

}  // namespace tributary::ingest
