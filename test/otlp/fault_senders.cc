#include "test/otlp/fault_senders.h"

#include "intake/testing/fake_spool_storage_testing.h"
#include "kernel-collector/direct/batch_sender.h"
#include "kernel-collector/direct/direct_testing.h"
#include "kernel-collector/direct/spool_testing.h"
#include "otlp/metrics_export.h"
#include "otlp/otlp_logs_sender.h"
#include "otlp/otlp_profiles_sender.h"
#include "reducer/export/export_loop.h"
#include "reducer/export/log_sender.h"
#include "reducer/store/fake_store_testing.h"

namespace tributary::otlp {
namespace {

// Longer than all waits that a receiver can ask for.
constexpr int64_t kMetricsIntervalNs = 2 * 3600 * kNsPerSecond;

uint64_t CountOf(Metrics& metrics, std::string_view name, Metrics::Labels labels = {}) {
  return metrics.AddCounter(name, "", std::move(labels)).value();
}

class StoreSender : public FaultSender {
 public:
  StoreSender(bool logs, std::unique_ptr<Transport> transport, FakeClock& clock)
      : clock_(clock), label_(logs ? "otlp_logs" : "otlp") {
    store::FakeShard& shard = store_.shards[0];
    shard.processes.push_back({.no = store::ProcessNo{1}, .node_id = "n", .host_name = "h", .pid = Pid{5}});
    shard.threads.push_back({.no = store::ThreadNo{1}, .process = store::ProcessNo{1}, .tid = Tid{6}, .name = "t"});
    leaf_ = shard.AddNode(store::FakeShard::DayOf(clock.Unix()), store::NodeNo{0},
                          {.kind = FrameKind::kKernel, .address = 0x10});
    ExportLoop::Options options{.cursor_name = "test", .metric_label = label_, .sender = "reducer"};
    std::unique_ptr<ProfilesSender> sender;
    if (logs) {
      options.builder.size_of = ProfilesBuilder::SizeOf::kStackLogs;
      sender = std::make_unique<LogSender>(std::move(transport), LogRecords::kStacks, nullptr, clock,
                                           options.builder.bytes_soft);
    } else {
      sender = std::make_unique<OtlpProfilesSender>(std::move(transport));
    }
    loop_ = std::make_unique<ExportLoop>(
        std::move(options), store_, [](const ExecutableId&) { return nullptr; }, std::move(sender), clock, metrics_);
  }
  void Add(int samples) override {
    for (int i = 0; i < samples; ++i) {
      store_.shards[0].samples.push_back({.time = UnixNs{clock_.Unix().value + i},
                                          .process = store::ProcessNo{1},
                                          .thread = store::ThreadNo{1},
                                          .node = leaf_,
                                          .value = kPeriodNs});
      ++added_;
    }
  }
  int64_t RunOnce() override { return loop_->RunOnce(); }
  SentCounts counts() const override {
    SentCounts out{.sent = Of("samples"), .refused = Of("refused_samples"), .repeated = Of("repeated_samples")};
    out.requests = Of("requests");
    out.failures = Of("failures");
    out.rejected = Of("rejected_items");
    // The samples behind the saved cursor, which survives the process.
    out.waiting = added_ - static_cast<uint64_t>(store_.Cursor("test", 0));
    return out;
  }

 private:
  uint64_t Of(std::string_view name) const {
    return CountOf(metrics_, fmt::format("tributary_export_{}_total", name), {{"exporter", label_}});
  }

  const FakeClock& clock_;
  const std::string label_;
  mutable store::FakeStore store_{1};
  mutable Metrics metrics_;
  store::NodeNo leaf_;
  uint64_t added_ = 0;
  std::unique_ptr<ExportLoop> loop_;
};

class MetricsSender : public FaultSender {
 public:
  MetricsSender(std::unique_ptr<Transport> transport, FakeClock& clock) : clock_(clock), metrics_(clock) {
    MetricsExport::Options options{.name = "test"};
    options.interval_ns = kMetricsIntervalNs;
    loop_ = std::make_unique<MetricsExport>(std::move(options), metrics_, std::move(transport), clock);
  }
  // New values are due. The first ones are due at the start.
  void Add(int) override {
    if (std::exchange(is_first_, false)) return;
    clock_.Advance(kMetricsIntervalNs);
  }
  int64_t RunOnce() override { return loop_->RunOnce(); }
  SentCounts counts() const override {
    SentCounts out{.sent = Of("data_points"), .refused = Of("refused_data_points")};
    out.requests = Of("requests");
    out.failures = Of("failures");
    out.rejected = Of("rejected_data_points");
    return out;
  }
  bool counts_repeated() const override { return false; }

 private:
  uint64_t Of(std::string_view name) const {
    return CountOf(metrics_, fmt::format("tributary_export_{}_total", name), {{"exporter", "otlp_metrics"}});
  }

  FakeClock& clock_;
  mutable Metrics metrics_;
  bool is_first_ = true;
  std::unique_ptr<MetricsExport> loop_;
};

class NodeSender : public FaultSender {
 public:
  NodeSender(bool logs, bool has_spool, std::unique_ptr<Transport> transport, const Clock& clock)
      : has_spool_(has_spool) {
    BatchSender::Options options{.names = false};
    BatchSender::Receiver receiver;
    if (logs) {
      options.builder.size_of = ProfilesBuilder::SizeOf::kStackLogs;
      auto sender = std::make_unique<OtlpLogsSender>(std::move(transport), LogRecords::kStacks);
      receiver.events = sender.get();
      receiver.samples = std::move(sender);
    } else {
      receiver.samples = std::make_unique<OtlpProfilesSender>(std::move(transport));
    }
    std::unique_ptr<RequestSpool> spool;
    if (has_spool) {
      spool = RequestSpool::Open(1 << 20, std::make_unique<BorrowedStorage>(disk_, faults_), clock, metrics_).value();
    }
    sender_ = std::make_unique<BatchSender>(
        std::move(options), std::move(receiver), std::move(spool),
        BatchSender::Callbacks{.need_symbols = [](const ExecutableId&) {}, .progressed = [] {}}, clock, metrics_);
  }
  void Add(int samples) override {
    for (int i = 0; i < samples; ++i) batches_.Add("prog", 0x2010, 1000 + i);
    sender_->Push(CopySamples(batches_.Take(), [](const Process&, const Dictionary&) { return Attributes(); }));
  }
  // With a spool, there is more to do at once after an attempt.
  int64_t RunOnce() override {
    int64_t wait_ns = sender_->RunOnce();
    while (has_spool_ && wait_ns == 0) wait_ns = sender_->RunOnce();
    return wait_ns;
  }
  int64_t tick_ns() const override { return has_spool_ ? BatchSender::kSpoolTickNs : 0; }
  SentCounts counts() const override {
    const BatchSender::Totals totals = sender_->totals();
    SentCounts out{.sent = totals.sent.total(),
                   .refused = totals.lost.LostFor(LossReason::kRejected).total(),
                   .waiting = totals.waiting.total()};
    out.repeated = CountOf(metrics_, "tributary_direct_repeated_samples_total");
    out.requests = CountOf(metrics_, "tributary_direct_requests_total");
    out.failures = CountOf(metrics_, "tributary_direct_failures_total");
    out.rejected = CountOf(metrics_, "tributary_direct_rejected_profiles_total");
    return out;
  }

 private:
  const bool has_spool_;
  mutable Metrics metrics_;
  intake::FakeSpoolStorage disk_{1};
  DiskFaults faults_;
  TestBatches batches_;
  std::unique_ptr<BatchSender> sender_;
};

}  // namespace

std::string_view NameOf(SenderKind kind) {
  static constexpr std::array<std::string_view, kSenderKinds.size()> kNames = {
      "the reducer's profiles", "the reducer's logs", "the reducer's metrics",
      "a node's profiles",      "a node's logs",      "the profiles of a node with a spool"};
  return kNames[static_cast<size_t>(kind)];
}

const Signal& SignalOf(SenderKind kind) {
  if (kind == SenderKind::kStoreMetrics) return kMetricsSignal;
  return kind == SenderKind::kStoreLogs || kind == SenderKind::kNodeLogs ? kLogsSignal : kProfilesSignal;
}

std::unique_ptr<FaultSender> MakeFaultSender(SenderKind kind, std::unique_ptr<Transport> transport, FakeClock& clock) {
  switch (kind) {
    case SenderKind::kStoreMetrics:
      return std::make_unique<MetricsSender>(std::move(transport), clock);
    case SenderKind::kStoreProfiles:
    case SenderKind::kStoreLogs:
      return std::make_unique<StoreSender>(kind == SenderKind::kStoreLogs, std::move(transport), clock);
    default:
      return std::make_unique<NodeSender>(kind == SenderKind::kNodeLogs, kind == SenderKind::kSpoolProfiles,
                                          std::move(transport), clock);
  }
}

}  // namespace tributary::otlp
