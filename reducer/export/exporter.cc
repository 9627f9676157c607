#include "reducer/export/exporter.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "base/status.h"
#include "base/version.h"
#include "otlp/grpc_transport.h"
#include "otlp/http_transport.h"
#include "otlp/otlp_profiles_sender.h"
#include "reducer/export/console_sender.h"
#include "reducer/export/export_loop.h"
#include "reducer/export/export_settings.h"
#include "reducer/export/file_sender.h"
#include "reducer/export/log_sender.h"
#include "reducer/export/metrics_export.h"
#include "reducer/export/metrics_resource.h"

namespace tributary {
namespace {

// A stop may take 5 s. First everything is stored. Then the last pass has this time before its call is cancelled.
constexpr int64_t kFlushNs = 3'500'000'000;
// A request in JSON has up to 3.7 times the bytes of the same request in protobuf. The limits of the builder count the
// bytes of protobuf.
constexpr size_t kJsonFactor = 4;

// Runs an ExportLoop or a MetricsExport on its own thread.
template <typename Loop>
class ExportThread : public Exporter {
 public:
  ExportThread(std::unique_ptr<Loop> loop, const Clock& clock)
      : loop_(std::move(loop)), clock_(clock), thread_([this] { Run(); }) {}

  ~ExportThread() override {
    {
      std::unique_lock lock(mutex_);
      stop_at_ = MonotonicNs{clock_.Monotonic().value + kFlushNs};
      stopping_ = true;
      loop_->EndBy(stop_at_);
      changed_.notify_all();
      changed_.wait_for(lock, std::chrono::nanoseconds(kFlushNs), [this] { return done_; });
    }
    loop_->Cancel();
    thread_.join();
  }

 private:
  void Run() {
    // If the console's reader is gone, or a file reaches the limit on file sizes, write must return an error and not
    // end the process.
    sigset_t of_write;
    sigemptyset(&of_write);
    sigaddset(&of_write, SIGPIPE);
    sigaddset(&of_write, SIGXFSZ);
    pthread_sigmask(SIG_BLOCK, &of_write, nullptr);

    std::unique_lock lock(mutex_);
    while (!stopping_) {
      lock.unlock();
      int64_t wait_ns = loop_->RunOnce();
      lock.lock();
      changed_.wait_for(lock, std::chrono::nanoseconds(wait_ns), [this] { return stopping_; });
    }
    lock.unlock();
    loop_->Flush(stop_at_);
    lock.lock();
    done_ = true;
    changed_.notify_all();
  }

  const std::unique_ptr<Loop> loop_;
  const Clock& clock_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool stopping_ = false, done_ = false;  // guarded by mutex_
  MonotonicNs stop_at_;                   // written before stopping_, read after
  std::thread thread_;                    // last: the thread uses the other members
};

absl::StatusOr<std::unique_ptr<otlp::Transport>> MakeTransport(const ExportUrl& url, const OtlpSettings& settings,
                                                               const Clock& clock) {
  if (url.kind == ExportUrl::Kind::kOtlpHttp) {
    return otlp::HttpTransport::Make({.common = settings.transport, .path = url.path, .encoding = settings.encoding},
                                     clock);
  }
  return otlp::GrpcTransport::Make(settings.transport, url.signal);
}

std::string_view Parameter(const ExportUrl& url, std::string_view key) {
  const auto it = url.parameters.find(key);
  return it != url.parameters.end() ? std::string_view(it->second) : std::string_view();
}

// For requests in JSON.
void UseSmallRequests(otlp::ProfilesBuilder::Options* builder) {
  builder->bytes_soft /= kJsonFactor;
  builder->bytes_hard /= kJsonFactor;
}

// Makes the sender, and sets the options that depend on the kind of the receiver.
absl::StatusOr<std::unique_ptr<otlp::ProfilesSender>> MakeSender(const ExportUrl& url, const ExportVariables& variables,
                                                                 const ExportCommon& common, const Clock& clock,
                                                                 Metrics& metrics, ExportLoop::Options* options) {
  if (url.kind == ExportUrl::Kind::kConsole) {
    options->metric_label = "console";
    auto sender = std::make_unique<ConsoleSender>(STDOUT_FILENO, url.text);
    options->records = sender.get();
    return sender;
  }
  if (url.kind == ExportUrl::Kind::kFile) {
    options->metric_label = "file";
    if (url.file.format == FileOptions::Format::kOtlpJson) UseSmallRequests(&options->builder);
    return FileSender::Open(url.file, clock, metrics);
  }
  options->metric_label = "otlp";
  ASSIGN_OR_RETURN(OtlpSettings settings, ResolveOtlpSettings(url, variables));
  settings.transport.version = std::string(kVersion);
  options->send_timeout_ns = settings.timeout_ns;
  if (settings.encoding == otlp::Encoding::kJson) UseSmallRequests(&options->builder);
  ASSIGN_OR_RETURN(std::unique_ptr<otlp::Transport> transport, MakeTransport(url, settings, clock));
  const std::string_view samples = Parameter(url, "samples");
  if (url.signal.name == otlp::kLogsSignal.name) {
    const bool single = samples == "single";
    using SizeOf = otlp::ProfilesBuilder::SizeOf;
    options->metric_label = "otlp_logs";
    options->builder.size_of = single ? SizeOf::kSampleLogs : SizeOf::kStackLogs;
    auto sender = std::make_unique<LogSender>(std::move(transport),
                                              single ? otlp::LogRecords::kSamples : otlp::LogRecords::kStacks,
                                              common.joiner, clock, options->builder.bytes_soft);
    options->records = sender.get();
    return sender;
  }
  options->builder.aggregated = samples == "aggregated";
  return std::make_unique<otlp::OtlpProfilesSender>(std::move(transport));
}

absl::StatusOr<std::unique_ptr<Exporter>> MakeMetricsExporter(const ExportUrl& url, const ExportVariables& variables,
                                                              const Clock& clock, Metrics& metrics) {
  ASSIGN_OR_RETURN(OtlpSettings settings, ResolveOtlpSettings(url, variables));
  settings.transport.version = std::string(kVersion);
  MetricsExport::Options options;
  options.name = url.cursor_name;
  options.request.resource = ReducerResource(metrics.start());
  options.request.scope_version = std::string(kVersion);
  if (settings.encoding == otlp::Encoding::kJson) options.request.bytes_max /= otlp::kMetricsJsonFactor;
  options.interval_ns = settings.interval_ns;
  options.send_timeout_ns = settings.timeout_ns;
  ASSIGN_OR_RETURN(std::unique_ptr<otlp::Transport> transport, MakeTransport(url, settings, clock));
  auto loop = std::make_unique<MetricsExport>(std::move(options), metrics, std::move(transport), clock);
  return std::make_unique<ExportThread<MetricsExport>>(std::move(loop), clock);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Exporter>> MakeExporter(const ExportUrl& url, const ExportVariables& variables,
                                                       store::Store& store, SymbolStore& symbols,
                                                       const ExportCommon& common, const Clock& clock,
                                                       Metrics& metrics) {
  if (url.signal.name == otlp::kMetricsSignal.name) return MakeMetricsExporter(url, variables, clock, metrics);
  ExportLoop::Options options;
  ASSIGN_OR_RETURN(std::unique_ptr<otlp::ProfilesSender> sender,
                   MakeSender(url, variables, common, clock, metrics, &options));
  options.cursor_name = url.cursor_name;
  options.builder.scope_version = std::string(kVersion);
  options.sender = ReducerHostName();
  if (options.sender.empty()) options.sender = "unknown";
  options.joiner = common.joiner;
  options.rollouts = common.rollouts;
  options.metadata_wait_ns = common.metadata_wait_ns;
  const std::string_view interval = Parameter(url, "interval");
  options.interval_ns = common.interval_ns;
  if (!interval.empty()) {
    ASSIGN_OR_RETURN(options.interval_ns, ParseExportInterval(interval));
  }
  const std::string_view lag_max = Parameter(url, "lag_max");
  options.lag_max_ns = common.lag_max_ns;
  if (!lag_max.empty()) {
    ASSIGN_OR_RETURN(options.lag_max_ns, ParseExportLag(lag_max));
  }
  auto loop =
      std::make_unique<ExportLoop>(std::move(options), store, symbols.lookup(), std::move(sender), clock, metrics);
  return std::make_unique<ExportThread<ExportLoop>>(std::move(loop), clock);
}

}  // namespace tributary
