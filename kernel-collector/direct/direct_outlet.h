#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "base/callback_scope.h"
#include "base/clock.h"
#include "base/loop.h"
#include "base/metrics.h"
#include "intake/metadata/metadata_feed.h"
#include "kernel-collector/direct/batch_sender.h"
#include "kernel-collector/direct/node_resources.h"
#include "kernel-collector/direct/receiver.h"
#include "kernel-collector/probes/pinned_session.h"
#include "kernel-collector/uplink/outlet.h"
#include "otlp/pass_thread.h"

namespace tributary {

struct DirectOptions {
  DirectReceiver receiver;
  otlp::Variables variables;
  size_t queue_bytes_max = 32u << 20;
  bool names = true;
  size_t batches_together = 1;           // so many batches are sent in one request
  int64_t together_wait_ns = 0;          // at most so long after the first of them
  int64_t metrics_interval_ns = 0;       // how often the metrics of this program are sent to the receiver; 0: never
  uint64_t table_bytes_max = 64u << 20;  // for names
  std::string spool_dir;                 // "": no spool. Printed samples never wait, so there it is not used
  uint64_t spool_bytes_max = 64u << 20;
  SessionInfo session;
};

// Sends a node's samples and process events as OTLP logs, or its samples as OTLP profiles, or prints them, without a
// reducer. Each batch waits kSettleNs, so that the attributes of its youngest processes and containers are known. Then
// it is copied, and the sender's thread names and sends the samples (BatchSender). Another thread sends the program's
// metrics, if an option asks for them. Only logs can contain process events. Otherwise they are counted: they are
// lost{not_taken}. Loop thread only.
class DirectOutlet : public Outlet, public BatchSink {
 public:
  static constexpr int64_t kSettleNs = kNsPerSecond;
  static constexpr size_t kSettlingMax = 8;  // batches; then the oldest is copied at once

  // Returns the errors of MakeDirectSender, OpenSpoolDirectory and RequestSpool::Open. `need_symbols` is called on the
  // loop's thread; the answer is SendSymbols or SendNoSymbols. Borrowed objects must outlive the outlet.
  static absl::StatusOr<std::unique_ptr<DirectOutlet>> Open(Loop& loop, DirectOptions options, PinnedSession& pins,
                                                            const intake::MetadataFeed& feed, const Clock& clock,
                                                            Metrics& metrics,
                                                            std::function<void(const ExecutableId&)> need_symbols);

  BatchSink& sink() override { return *this; }
  absl::Status Take(Batch batch) override;
  void Start() override { Pin(); }
  void OnSampling() override;
  void SendSymbols(const ExecutableId& id, PackedTable table) override;
  void SendNoSymbols(const ExecutableId& id, const absl::Status& why) override;
  void SendDigest(const ExecutableId&, const absl::StatusOr<SymbolDigest>&) override {}  // none is requested
  absl::Status ChangeCredentials(IntakeCredentialOptions) override {
    return absl::UnimplementedError("the credential options are taken only at the start");
  }
  void SetSampleRate(uint32_t) override {}  // the value of each sample is its period
  Totals totals() const override;
  std::string ToString() const override { return receiver_; }
  void Flush(int64_t timeout_ms, std::function<void(uint64_t undelivered_samples)> done) override;

 private:
  struct Settling {
    Batch batch;
    MonotonicNs since;
  };

  DirectOutlet(Loop& loop, const DirectOptions& options, PinnedSession& pins, const intake::MetadataFeed& feed,
               const Clock& clock, Metrics& metrics, std::function<void(const ExecutableId&)> need_symbols);
  void Settle();
  void SettleFirst();
  void ReportPredecessor();
  void Pin();
  void LogEarlier() const;
  void Cancel();
  void FlushMetrics(MonotonicNs deadline, std::function<void()> done);

  Loop& loop_;
  PinnedSession& pins_;
  const Clock& clock_;
  const NodeResources resources_;
  const std::array<uint8_t, 16> session_id_;
  const std::string receiver_;
  const std::function<void(const ExecutableId&)> need_symbols_;
  std::deque<Settling> settling_;
  uint64_t settling_samples_ = 0;
  bool takes_events_ = false;
  uint64_t events_not_taken_ = 0;
  Counter &lost_events_, &predecessor_lost_, &predecessor_lost_events_;
  std::unique_ptr<Timer> settle_timer_, deadline_timer_;
  CallbackScope scope_;
  std::unique_ptr<otlp::PassThread<otlp::MetricsExport>> metrics_thread_;  // null: metrics are not sent
  std::unique_ptr<otlp::PassThread<BatchSender>> thread_;                  // last: the thread uses the other members
};

}  // namespace tributary
