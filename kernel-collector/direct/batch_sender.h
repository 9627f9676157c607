#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <random>
#include <span>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "base/arrival_wait.h"
#include "base/backoff.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/metrics.h"
#include "kernel-collector/direct/name_tables.h"
#include "kernel-collector/direct/request_maker.h"
#include "kernel-collector/direct/request_spool.h"
#include "kernel-collector/direct/sample_set.h"
#include "kernel-collector/direct/send_counters.h"
#include "otlp/sender.h"
#include "profile/accounting.h"

namespace tributary {

// Sends samples and process events to one receiver, oldest first. They wait in a queue of at most `queue_bytes_max`. If
// the queue is full, the oldest set is lost (batch_overflow). The newest set stays, even if it alone is larger. A
// sample waits until the symbol tables of its executables have arrived, at most kNamesWaitNs, and once for each
// executable. If a request fails and may be retried, the same request is sent again later. If the receiver refuses a
// request, its samples or events are lost (rejected).
//
// Each request repeats the names and stacks of its samples. So several sets are sent in one request, `sets_together`.
// The first set does not wait for others, and only kFirstNamesWaitNs for names. So the receiver has
// samples within 10 s, also on a busy node whose tables take longer. If half the queue is full, or the spool is in use,
// no set does.
//
// With a spool, a request that fails and all later ones go to the spool, until the spool is empty again. They also go
// there if half the queue is full. While the spool takes nothing, they wait in the queue; what a full queue loses then
// counts as spool_overflow. What an earlier collector has left in the spool is sent first.
//
// The law: the samples and the events that were pushed are sent, lost or waiting, at any moment (Totals).
//
// It has no thread and never sleeps: PassThread calls RunOnce and Flush on its own thread. All other functions may be
// called on any thread.
class BatchSender {
 public:
  static constexpr int64_t kNamesWaitNs = 10 * kNsPerSecond;
  static constexpr int64_t kFirstNamesWaitNs = 3 * kNsPerSecond;  // of the first set
  static constexpr int64_t kNamesPollNs = kNsPerSecond / 10;
  static constexpr int64_t kIdleNs = 3600 * kNsPerSecond;
  static constexpr int64_t kSpoolTickNs = 5 * kNsPerSecond;  // also the pause after the spool took nothing
  static constexpr int64_t kRetryMinNs = kNsPerSecond / 2, kRetryMaxNs = 30 * kNsPerSecond;
  static constexpr size_t kTablesWaitingMax = 1024;

  struct Options {
    size_t queue_bytes_max = 32u << 20;
    uint64_t table_bytes_max = 64u << 20;
    uint64_t new_table_bytes_max = 16u << 20;  // compressed, of tables that arrived and are not yet opened
    bool names = true;                         // false: frames get no names from symbol tables
    size_t sets_together = 1;                  // so many sets are sent in one request
    int64_t together_wait_ns = 0;              // the oldest set waits at most so long for the others
    int64_t send_timeout_ns = otlp::kSendTimeoutNs;
    otlp::ProfilesBuilder::Options builder;
    otlp::RequestIdentity identity;        // its sender and session
    otlp::RequestIdentity event_identity;  // the same for process events; another session
  };
  struct Receiver {
    std::unique_ptr<otlp::ProfilesSender> samples;
    otlp::LogsSender* events = nullptr;  // for process events; nullptr: none are pushed. A part of `samples`
  };
  // Called without a lock.
  struct Callbacks {
    std::function<void(const ExecutableId&)> need_symbols;  // the answer is AddSymbols. On the thread of RunOnce
    std::function<void()> progressed;  // samples or events were sent or lost. On the thread of RunOnce or Push
  };
  // `spool` may be nullptr. `clock` and `metrics` must outlive this object.
  BatchSender(Options options, Receiver receiver, std::unique_ptr<RequestSpool> spool, Callbacks callbacks,
              const Clock& clock, Metrics& metrics);

  // Call it before the first RunOnce. Returns the samples and events that the spool has of these sessions of earlier
  // collectors. The caller counts all their other samples and events as lost. So these are never sent.
  SampleCounts FindSpooled(std::span<const RequestSpool::Session> sessions);

  void Push(SampleSet set);
  // An error: there is no table. If too many tables wait for the thread, the table is left out and asked for again.
  void AddSymbols(const ExecutableId& id, absl::StatusOr<PackedTable> table);

  struct Totals {
    SampleCounts sent, waiting;  // in memory, or in the spool
    Accounting lost;             // only the losses
    // The same for what earlier collectors have left in the spool. It was not pushed, so the numbers above are without
    // it.
    SampleCounts earlier_sent, earlier_waiting, earlier_lost;
  };
  Totals totals() const;

  // Sends what is due. Returns the time until the next call in ns; 0: there is more to do at once. The caller must call
  // it earlier after Push and AddSymbols.
  int64_t RunOnce();
  // Sends everything, without waiting for names. Ends at the first request that fails, at `deadline`, or after Cancel.
  // Tables that have arrived are opened in at most a quarter of the time, because samples without names are better than
  // none. With a spool, the last quarter of the time is for writing what is then unsent. What the spool does not take
  // until `deadline` is lost: in_doubt if the receiver may have the request, else shutdown.
  void Flush(MonotonicNs deadline);
  // Makes the current request and all later ones fail at once.
  void Cancel();

 private:
  struct Waiting {
    SampleSet set;
    MonotonicNs since;
    bool asked = false;  // for the tables of its executables
  };

  void TakeTables(MonotonicNs deadline);
  std::vector<ExecutableId> WantedBy(const SampleSet& set) const;
  void AskForTables();
  bool AwaitsNames(const SampleSet& set, MonotonicNs now);
  // These need mutex_.
  bool IsHalfFull() const { return queue_bytes_ > options_.queue_bytes_max / 2; }
  int64_t PatienceNs() const;
  bool HasNames(const Waiting& waiting);  // or waits for no more of them
  size_t CountReady();

  int64_t IdleNs() const;
  bool TakeNext(bool flush);
  void MakeNext();
  void TickSpool();
  void CountFound(absl::FunctionRef<void()> work);
  bool ShouldSpill() const;
  bool IsOver(MonotonicNs deadline) const { return cancelled_ || clock_.Monotonic() >= deadline; }
  void Spill(bool flush, MonotonicNs deadline);
  bool AppendToSpool();
  void TakeDropped();
  enum class Step {
    kNothing,  // nothing is ready
    kSent,     // the receiver accepted or refused a request
    kFailed    // a request must be sent again
  };
  Step SendNext(MonotonicNs deadline, bool flush);
  Step SendSpooled(MonotonicNs deadline);
  bool Send(DirectRequest& request, bool earlier, MonotonicNs deadline);
  void CountAnswer(const DirectRequest& request, bool earlier, const otlp::SendResult& result);
  void Delay(const otlp::SendResult& failure);
  void GiveUp();
  void Lose(LossReason reason, SampleCounts counts);  // needs mutex_
  void WarnOfOverflow(const SampleCounts& lost);
  void UpdateGauges();  // needs mutex_

  const Options options_;
  const Receiver receiver_;
  const std::unique_ptr<RequestSpool> spool_;  // used only by the thread that calls RunOnce
  const Callbacks callbacks_;
  const Clock& clock_;

  mutable std::mutex mutex_;
  std::deque<Waiting> queue_;                                                    // guarded by mutex_
  size_t queue_bytes_ = 0;                                                       // with sets_; guarded by mutex_
  Totals totals_;                                                                // guarded by mutex_
  std::deque<std::pair<ExecutableId, absl::StatusOr<PackedTable>>> new_tables_;  // guarded by mutex_
  uint64_t new_table_bytes_ = 0;                                                 // guarded by mutex_
  std::atomic<bool> cancelled_{false};

  // Used only by the thread that calls RunOnce.
  NameTables tables_;
  ArrivalWait<ExecutableId> names_wait_{kNamesWaitNs};
  DirectRequestMaker maker_;
  // The sets of which requests are made, and the next of them. The request is empty if there is no set.
  std::vector<SampleSet> sets_;
  bool is_first_ = true;  // no set was taken yet. Guarded by mutex_
  DirectRequest made_;
  std::mt19937_64 random_{SeedOrRandom(0)};
  Backoff backoff_ns_{{.min = kRetryMinNs, .max = kRetryMaxNs}};
  MonotonicNs not_before_{0}, spill_not_before_{0};
  LogLimit overflow_log_{kNsPerMinute};  // guarded by mutex_
  LogLimit failure_log_{30 * kNsPerSecond}, refusal_log_{30 * kNsPerSecond};
  SendCounters counters_;
};

}  // namespace tributary
