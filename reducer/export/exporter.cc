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

namespace tributary {
namespace {

// A stop may take 5 s. First everything is stored. Then the last pass has this time before its call is cancelled.
constexpr int64_t kFlushNs = 3'500'000'000;
// A request in JSON has up to 3.7 times the bytes of the same request in protobuf. The limits of the builder count the
// bytes of protobuf.
constexpr size_t kJsonFactor = 4;

// Runs an ExportLoop on its own thread.
class ExportThread : public Exporter {
 public:
  ExportThread(std::unique_ptr<ExportLoop> loop, const Clock& clock)
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
    // If the console's reader is gone, write must return an error and not end the process.
    sigset_t pipe;
    sigemptyset(&pipe);
    sigaddset(&pipe, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe, nullptr);

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

  const std::unique_ptr<ExportLoop> loop_;
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

// Makes the sender, and sets the options that depend on the kind of the receiver.
absl::StatusOr<std::unique_ptr<otlp::ProfilesSender>> MakeSender(const ExportUrl& url, const ExportVariables& variables,
                                                                 const Clock& clock, ExportLoop::Options* options) {
  if (url.kind == ExportUrl::Kind::kConsole) {
    options->metric_label = "console";
    auto sender = std::make_unique<ConsoleSender>(STDOUT_FILENO, url.layout);
    options->events = sender.get();
    return sender;
  }
  options->metric_label = "otlp";
  ASSIGN_OR_RETURN(OtlpSettings settings, ResolveOtlpSettings(url, variables));
  settings.transport.version = std::string(kVersion);
  options->send_timeout_ns = settings.timeout_ns;
  if (settings.encoding == otlp::Encoding::kJson) {
    options->builder.bytes_soft /= kJsonFactor;
    options->builder.bytes_hard /= kJsonFactor;
  }
  ASSIGN_OR_RETURN(std::unique_ptr<otlp::Transport> transport, MakeTransport(url, settings, clock));
  return std::make_unique<otlp::OtlpProfilesSender>(std::move(transport));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Exporter>> MakeExporter(const ExportUrl& url, const ExportVariables& variables,
                                                       store::Store& store, SymbolStore& symbols,
                                                       const ExportMetadata& metadata, const Clock& clock,
                                                       Metrics& metrics) {
  ExportLoop::Options options;
  ASSIGN_OR_RETURN(std::unique_ptr<otlp::ProfilesSender> sender, MakeSender(url, variables, clock, &options));
  options.cursor_name = url.cursor_name;
  options.builder.scope_version = std::string(kVersion);
  options.joiner = metadata.joiner;
  options.metadata_wait_ns = metadata.wait_ns;
  auto loop =
      std::make_unique<ExportLoop>(std::move(options), store, symbols.lookup(), std::move(sender), clock, metrics);
  return std::make_unique<ExportThread>(std::move(loop), clock);
}

}  // namespace tributary
