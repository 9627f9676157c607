#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "base/arrival_wait.h"
#include "base/backoff.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/metrics.h"
#include "kernel-collector/direct/name_tables.h"
#include "kernel-collector/direct/sample_set.h"
#include "kernel-collector/direct/set_requests.h"
#include "otlp/sender.h"
#include "profile/accounting.h"

namespace tributary {

// Sends samples to one receiver, oldest first. Samples wait in a queue of at most `queue_bytes_max`. If the queue is
// full, the oldest samples are lost (batch_overflow). The newest set stays, even if it alone is larger. A sample waits
// until the symbol tables of its executables have arrived, at most kNamesWaitNs, and once for each executable. If a
// request fails and may be retried, the same request is sent again later. If the receiver refuses a request, its
// samples are lost (rejected).
//
// The law: the samples that were pushed are sent, lost or waiting, at any moment (Totals).
//
// It has no thread and never sleeps: SenderThread calls RunOnce and Flush on its own thread. All other functions may be
// called on any thread.
class BatchSender {
 public:
  static constexpr int64_t kNamesWaitNs = 10 * kNsPerSecond;
  static constexpr int64_t kNamesPollNs = kNsPerSecond / 10;
  static constexpr int64_t kIdleNs = 3600 * kNsPerSecond;
  static constexpr int64_t kRetryMinNs = kNsPerSecond / 2, kRetryMaxNs = 30 * kNsPerSecond;
  static constexpr size_t kTablesWaitingMax = 1024;

  struct Options {
    size_t queue_bytes_max = 32u << 20;
    uint64_t table_bytes_max = 64u << 20;
    uint64_t new_table_bytes_max = 16u << 20;  // compressed, of tables that arrived and are not yet opened
    bool names = true;                         // false: frames get no names from symbol tables
    int64_t send_timeout_ns = otlp::kSendTimeoutNs;
    otlp::ProfilesBuilder::Options builder;
    otlp::RequestIdentity identity;  // its sender and session
  };
  // Called on the thread that calls RunOnce, without a lock.
  struct Callbacks {
    std::function<void(const ExecutableId&)> need_symbols;  // the answer is AddSymbols
    std::function<void()> progressed;                       // samples were sent or lost
  };
  // `clock` and `metrics` must outlive this object.
  BatchSender(Options options, std::unique_ptr<otlp::ProfilesSender> sender, Callbacks callbacks, const Clock& clock,
              Metrics& metrics);

  void Push(SampleSet set);
  // An error: there is no table. If too many tables wait for the thread, the table is left out and asked for again.
  void AddSymbols(const ExecutableId& id, absl::StatusOr<PackedTable> table);

  struct Totals {
    SampleCounts sent, waiting;
    Accounting lost;  // only the losses
  };
  Totals totals() const;

  // Sends what is due. Returns the time until the next call in ns; 0: there is more to do at once. The caller must call
  // it earlier after Push and AddSymbols.
  int64_t RunOnce();
  // Sends all samples, without waiting for names. Ends at the first request that fails, at `deadline`, or after Cancel.
  // Tables that have arrived are opened in at most a quarter of the time, because samples without names are better than
  // none. The samples that are then unsent are lost: in_doubt if the receiver may have the request, else shutdown.
  void Flush(MonotonicNs deadline);
  // Makes the current request and all later ones fail at once.
  void Cancel();

 private:
  struct Waiting {
    SampleSet set;
    MonotonicNs since;
    bool asked = false;  // for the tables of its executables
  };
  struct Current {
    explicit Current(Waiting from) : waiting(std::move(from)) {}
    Waiting waiting;
    std::optional<SetRequests> requests;  // of waiting.set
    SetRequests::Made made;               // the request that is being sent
  };

  void TakeTables(MonotonicNs deadline);
  void AskForTables();
  bool AwaitsNames(const SampleSet& set, MonotonicNs now);
  bool TakeNext(bool flush);
  bool SendCurrent(MonotonicNs deadline);
  bool Send(int64_t timeout_ns);
  void Delay(const otlp::SendResult& failure);
  void GiveUp();
  void Lose(LossReason reason, SampleCounts samples);  // needs mutex_
  void UpdateGauges();                                 // needs mutex_

  const Options options_;
  const std::unique_ptr<otlp::ProfilesSender> sender_;
  const Callbacks callbacks_;
  const Clock& clock_;

  mutable std::mutex mutex_;
  std::deque<Waiting> queue_;                                                    // guarded by mutex_
  size_t queue_bytes_ = 0;                                                       // with current_; guarded by mutex_
  Totals totals_;                                                                // guarded by mutex_
  std::deque<std::pair<ExecutableId, absl::StatusOr<PackedTable>>> new_tables_;  // guarded by mutex_
  uint64_t new_table_bytes_ = 0;                                                 // guarded by mutex_
  std::atomic<bool> cancelled_{false};

  // Used only by the thread that calls RunOnce.
  NameTables tables_;
  ArrivalWait<ExecutableId> names_wait_{kNamesWaitNs};
  std::unique_ptr<Current> current_;
  otlp::RequestIdentity identity_;  // of current_->made
  uint64_t next_number_ = 0;        // of the first sample of the next request
  bool in_doubt_ = false;           // the receiver may have accepted current_->made
  std::mt19937_64 random_{SeedOrRandom(0)};
  Backoff backoff_ns_{{.min = kRetryMinNs, .max = kRetryMaxNs}};
  MonotonicNs not_before_{0};
  LogLimit failure_log_{30 * kNsPerSecond}, refusal_log_{30 * kNsPerSecond};

  Counter &sent_, &requests_, &failures_, &repeated_, &rejected_profiles_, &dropped_strings_;
  std::vector<Counter*> lost_;
  Counter& left_out_tables_;
  Gauge &waiting_gauge_, &queue_bytes_gauge_;
};

}  // namespace tributary
