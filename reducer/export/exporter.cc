#include "reducer/export/exporter.h"

#include <unistd.h>

#include <chrono>
#include <future>
#include <optional>
#include <utility>

#include "base/status.h"
#include "base/version.h"
#include "otlp/json_limits.h"
#include "otlp/make_transport.h"
#include "otlp/metrics_export.h"
#include "otlp/otlp_profiles_sender.h"
#include "otlp/pass_thread.h"
#include "otlp/program_resource.h"
#include "reducer/export/console_sender.h"
#include "reducer/export/export_loop.h"
#include "reducer/export/export_settings.h"
#include "reducer/export/file_sender.h"
#include "reducer/export/log_sender.h"

namespace tributary {
namespace {

// A stop may take 5 s. First everything is stored. Then the last pass has this time before its call is cancelled.
constexpr int64_t kFlushNs = 3'500'000'000;

// Runs an ExportLoop or a MetricsExport on a PassThread, and gives its last pass kFlushNs.
template <typename Work>
class ThreadExporter : public Exporter {
 public:
  ThreadExporter(std::unique_ptr<Work> work, const Clock& clock) : clock_(clock), thread_(std::move(work)) {
    thread_.Start();
  }

  // The thread's destructor cancels a call that is still in progress.
  ~ThreadExporter() override {
    const MonotonicNs stop_at{clock_.Monotonic().value + kFlushNs};
    thread_.work().EndBy(stop_at);
    thread_.Flush(stop_at, [this] { flushed_.set_value(); });
    flushed_.get_future().wait_for(std::chrono::nanoseconds(kFlushNs));
  }

 private:
  const Clock& clock_;
  std::promise<void> flushed_;
  otlp::PassThread<Work> thread_;  // last: the thread uses the other members
};

absl::StatusOr<std::unique_ptr<otlp::Transport>> TransportTo(const ExportUrl& url, const OtlpSettings& settings,
                                                             const Clock& clock) {
  const bool is_http = url.kind == ExportUrl::Kind::kOtlpHttp;
  return otlp::MakeTransport(settings, url.signal, is_http ? std::optional(url.path) : std::nullopt, clock);
}

std::string_view Parameter(const ExportUrl& url, std::string_view key) {
  const auto it = url.parameters.find(key);
  return it != url.parameters.end() ? std::string_view(it->second) : std::string_view();
}

// Makes the sender, and sets the options that depend on the kind of the receiver.
absl::StatusOr<std::unique_ptr<otlp::ProfilesSender>> MakeSender(const ExportUrl& url, const ExportVariables& variables,
                                                                 const ExportCommon& common, const Clock& clock,
                                                                 Metrics& metrics, ExportLoop::Options* options) {
  if (url.kind == ExportUrl::Kind::kConsole) {
    options->metric_label = "console";
    options->builder.exact_bytes = false;  // the text repeats each stack, so a request must have few samples
    options->builder.fold_interpreters = true;
    auto sender = std::make_unique<ConsoleSender>(STDOUT_FILENO, url.text);
    options->records = sender.get();
    return sender;
  }
  if (url.kind == ExportUrl::Kind::kFile) {
    options->metric_label = "file";
    if (url.file.format == FileOptions::Format::kOtlpJson) otlp::FitJson(&options->builder);
    options->builder.fold_interpreters = url.file.format == FileOptions::Format::kFolded;
    return FileSender::Open(url.file, clock, metrics);
  }
  options->metric_label = "otlp";
  ASSIGN_OR_RETURN(const OtlpSettings settings, ResolveOtlpSettings(url, variables));
  options->send_timeout_ns = settings.timeout_ns;
  if (settings.encoding == otlp::Encoding::kJson) otlp::FitJson(&options->builder);
  ASSIGN_OR_RETURN(std::unique_ptr<otlp::Transport> transport, TransportTo(url, settings, clock));
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
  options->builder.generation = settings.generation;
  return std::make_unique<otlp::OtlpProfilesSender>(std::move(transport), settings.generation);
}

absl::StatusOr<std::unique_ptr<Exporter>> MakeMetricsExporter(const ExportUrl& url, const ExportVariables& variables,
                                                              const Clock& clock, Metrics& metrics) {
  ASSIGN_OR_RETURN(const OtlpSettings settings, ResolveOtlpSettings(url, variables));
  otlp::MetricsExport::Options options =
      otlp::MetricsExportOptions(settings, "tributary-reducer", otlp::HostName(), metrics);
  options.name = url.cursor_name;
  options.interval_ns = settings.interval_ns;
  ASSIGN_OR_RETURN(std::unique_ptr<otlp::Transport> transport, TransportTo(url, settings, clock));
  auto loop = std::make_unique<otlp::MetricsExport>(std::move(options), metrics, std::move(transport), clock);
  return std::make_unique<ThreadExporter<otlp::MetricsExport>>(std::move(loop), clock);
}

}  // namespace

absl::StatusOr<int64_t> LagMaxOf(const ExportUrl& url, int64_t common_ns) {
  if (url.kind == ExportUrl::Kind::kConsole || url.kind == ExportUrl::Kind::kFile) return 0;
  const std::string_view lag_max = Parameter(url, "lag_max");
  if (lag_max.empty()) return common_ns;
  return ParseExportLag(lag_max);
}

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
  options.sender = otlp::HostName();
  if (options.sender.empty()) options.sender = "unknown";
  options.joiner = common.joiner;
  options.rollouts = common.rollouts;
  options.metadata_wait_ns = common.metadata_wait_ns;
  const std::string_view interval = Parameter(url, "interval");
  options.interval_ns = common.interval_ns;
  if (!interval.empty()) {
    ASSIGN_OR_RETURN(options.interval_ns, ParseExportInterval(interval));
  }
  ASSIGN_OR_RETURN(options.lag_max_ns, LagMaxOf(url, common.lag_max_ns));
  auto loop =
      std::make_unique<ExportLoop>(std::move(options), store, symbols.lookup(), std::move(sender), clock, metrics);
  return std::make_unique<ThreadExporter<ExportLoop>>(std::move(loop), clock);
}

}  // namespace tributary
