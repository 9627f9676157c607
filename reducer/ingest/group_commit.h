#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/backoff.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/metrics.h"
#include "base/refusals.h"
#include "reducer/ingest/batch_writer.h"
#include "reducer/store/store.h"

namespace tributary::ingest {

// Commits groups of batches. No batch can stop the commits of the other batches for ever:
//
//   - If the failure may pass without a change of the data (store::MayPass: a full disk, no memory, a lock, a file that
//     cannot be written), the same group is tried again with growing pauses, without an end. The batches wait.
//   - An I/O error of the disk (Aborted) is tried io_tries_max times, for about 40 s. Then it counts as lasting.
//   - A lasting failure (a damaged page, a violated constraint) may have its cause in one batch. So the batches are
//     committed one by one, and each batch that fails again is refused. Its collector counts the batch's samples as
//     lost{rejected}, and sends an empty batch with the same number in its place.
//
// If the whole file is damaged, the empty batch fails, too. Then a session loses one batch, and all later batches wait
// at the collector. Use the object on the writer's thread.
class GroupCommit {
 public:
  struct Options {
    int64_t retry_min_ms = 100, retry_max_ms = 5'000;
    int io_tries_max = 12;
    Refusals* refusals = nullptr;  // counts refused batches by node; nullptr: they are not counted by node
  };
  // Waits. Returns false if the writer stops: then the commit is given up.
  using Pause = std::function<bool(int64_t ms)>;

  // `name` appears in log messages. All borrowed objects must outlive this object.
  GroupCommit(std::string name, store::ShardWriter& writer, Options options, Pause pause, const Clock& clock,
              Metrics& metrics);

  // Returns one result for each batch, in the order of `group`. Returns nullopt if the commit was given up: then some
  // of the batches may be durable, but none of them is acknowledged.
  std::optional<std::vector<CommittedBatch>> Commit(std::span<const RowBatch> group);

 private:
  using Outcomes = absl::StatusOr<std::vector<store::ShardWriter::Outcome>>;
  // Returns the outcomes, or a lasting failure. nullopt: given up.
  std::optional<Outcomes> CommitOrFail(std::span<const RowBatch> group, int io_tries_max);
  std::optional<CommittedBatch> CommitAlone(const RowBatch& batch);
  CommittedBatch Refuse(const RowBatch& batch, const absl::Status& why);

  const std::string name_;
  store::ShardWriter& writer_;
  const Options options_;
  const Pause pause_;
  const Clock& clock_;
  Counter &failures_, &refused_batches_, &refused_samples_;
  LogLimit refused_log_{kNsPerMinute}, alone_log_{kNsPerMinute};
};

}  // namespace tributary::ingest
