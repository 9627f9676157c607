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
#include "reducer/export/console_sender.h"
#include "reducer/export/export_loop.h"
#include "reducer/export/export_url.h"
#if TRIBUTARY_HAS_GRPC
#include "otlp/grpc_transport.h"
#include "otlp/otlp_sender.h"
#endif

namespace tributary {
namespace {

// A stop may take 5 s. First everything is stored. Then the last pass has this time before its call is cancelled.
constexpr int64_t kFlushNs = 3'500'000'000;

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

// Sets `*events` if the sender can send process events.
absl::StatusOr<std::unique_ptr<otlp::ProfilesSender>> MakeSender(const ExportUrl& url, EventSender** events) {
  if (url.kind == ExportUrl::Kind::kConsole) {
    auto sender = std::make_unique<ConsoleSender>(STDOUT_FILENO, url.layout);
    *events = sender.get();
    return sender;
  }
#if TRIBUTARY_HAS_GRPC
  const otlp::TransportOptions options{.target = url.target, .tls = url.tls, .version = std::string(kVersion)};
  ASSIGN_OR_RETURN(std::unique_ptr<otlp::Transport> transport,
                   otlp::GrpcTransport::Make(options, otlp::kProfilesSignal));
  return std::make_unique<otlp::OtlpSender>(std::move(transport));
#else
  return absl::UnimplementedError(
      "this reducer was built without gRPC: to export OTLP, build it with the CMake option TRIBUTARY_GRPC=ON");
#endif
}

}  // namespace

absl::StatusOr<std::unique_ptr<Exporter>> MakeExporter(std::string_view text, store::Store& store, SymbolStore& symbols,
                                                       const ExportMetadata& metadata, const Clock& clock,
                                                       Metrics& metrics) {
  ASSIGN_OR_RETURN(ExportUrl url, ParseExportUrl(text));
  ExportLoop::Options options;
  ASSIGN_OR_RETURN(std::unique_ptr<otlp::ProfilesSender> sender, MakeSender(url, &options.events));
  options.cursor_name = url.cursor_name;
  options.metric_label = url.kind == ExportUrl::Kind::kOtlp ? "otlp" : "console";
  options.builder.scope_version = std::string(kVersion);
  options.joiner = metadata.joiner;
  options.metadata_wait_ns = metadata.wait_ns;
  auto loop =
      std::make_unique<ExportLoop>(std::move(options), store, symbols.lookup(), std::move(sender), clock, metrics);
  return std::make_unique<ExportThread>(std::move(loop), clock);
}

}  // namespace tributary
