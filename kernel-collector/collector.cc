#include "kernel-collector/collector.h"

#include <algorithm>
#include <csignal>
#include <functional>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/heap.h"
#include "base/log.h"
#include "base/log_metrics.h"
#include "base/process_metrics.h"
#include "base/resident.h"
#include "base/status.h"
#include "kernel-collector/direct/direct_outlet.h"
#include "kernel-collector/privileges.h"
#include "kernel-collector/probes/bpf_code.h"
#include "kernel-collector/probes/cgroup_v1.h"
#include "kernel-collector/probes/ring_size.h"
#include "kernel-collector/processes/code_file_reader.h"
#include "kernel-collector/processes/proc_cgroup.h"
#include "kernel-collector/processes/proc_files.h"
#include "kernel-collector/runtimes/process_memory.h"
#include "kernel-collector/unwind/sandboxed_compiler.h"
#include "kernel-collector/uplink/session_info.h"
#include "kernel-collector/uplink/uplink.h"

namespace tributary {
namespace {

size_t CpuCount() { return static_cast<size_t>(std::max(OnlineCpuCount(), 1)); }

// Rings that fill faster are read sooner, but not more often than this.
constexpr int64_t kWakeupNs = 10 * kNsPerMs;
constexpr uint64_t kHotplugMs = 2000;
constexpr uint64_t kBudgetMs = 1000;
constexpr uint64_t kSummaryMs = 60'000;
constexpr uint64_t kStopPollMs = 20;
// Threads that may be stuck in reads of processes' memory. If more are stuck, no more code objects are read.
constexpr size_t kRuntimeStuckMax = 4;
// How long a stop waits for the files of held samples. The rest of its time is for the reducer.
constexpr int64_t kStopHoldNs = 500 * kNsPerMs;
// Limits of the metadata of the node's containers, including containers gone within the last hour.
constexpr size_t kMetadataEntitiesMax = 2 * DockerMetadata::kContainersMax;
constexpr size_t kMetadataBytesMax = 8u << 20;
// Limits the CPU time for symbol tables that are made for this node alone.
constexpr int64_t kLocalTableBytesPerSecond = 16 << 20;  // compressed

// Programs can be listed only until CAP_SYS_ADMIN is given up, which happens before the first request for the list. So
// the list from the start is kept for that request. Later programs are known by their events. Only programs that are
// added while events are lost have an uncertain end.
std::function<std::vector<BpfCode>()> ListBpfFromNowOn() {
  auto at_start = std::make_shared<std::vector<BpfCode>>(ListBpfCode());
  return [at_start] { return at_start->empty() ? ListBpfCode() : std::exchange(*at_start, {}); };
}

}  // namespace

Collector::Collector(const CollectorOptions& options,
                     std::function<absl::StatusOr<Options::Outcome>(CollectorOptions*)> parse, Metrics& metrics)
    : options_(options),
      parse_(std::move(parse)),
      metrics_(metrics),
      ring_bytes_(
          SampleRingBytes(static_cast<uint32_t>(options.sample_rate_hz), CpuCount(), ProbeOptions().ring_seconds)),
      service_(loop_),
      rate_hz_(static_cast<uint32_t>(options.sample_rate_hz)) {}

Collector::~Collector() = default;

absl::Status Collector::Run() {
  RETURN_IF_ERROR(Build());
  // Before any worker gets its first job, which starts a thread.
  RETURN_IF_ERROR(DropPrivileges(Probes::TryEvent));
  core_->ScanAll();
  TrimHeap();          // BTF and the text of /proc are no longer needed
  ReleaseCodePages();  // nor is the code that loaded programs and read them
  metadata_->Start();
  outlet_->Start();
  RETURN_IF_ERROR(probes_->StartSampling());
  sampling_ = true;
  outlet_->OnSampling();
  StartTimers();
  LogInfo("sampling rate_hz={} processes={} intake={} build_ids={}", options_.sample_rate_hz, core_->processes().size(),
          outlet_->ToString(), probes_->has_build_ids() ? "event" : "file");
  if (metrics_server_ != nullptr) LogInfo("metrics url={}", metrics_server_->url());
  service_.ReloadOnHangup({.metric = "tributary_collector_reloads_total",
                           .in_force = options_.values,
                           .reload = [this] { return Reload(); }},
                          metrics_);
  service_.SetStatus(fmt::format("sampling at {} Hz", rate_hz_));
  service_.Ready();
  loop_.Run();
  return absl::OkStatus();
}

absl::Status Collector::Build() {
  const Clock& clock = Clock::Real();
  ProbeOptions probe_options;
  probe_options.sample_rate_hz = static_cast<uint32_t>(options_.sample_rate_hz);
  probe_options.process_events = options_.event_budget > 0;
  AddProcessMetrics(metrics_, "kernel-collector");
  // Before the probes, which take over the data that an earlier collector left. A start that fails must not have taken
  // it.
  ASSIGN_OR_RETURN(metrics_server_,
                   MetricsServer::Open(loop_, options_.metrics_listen, metrics_, [this] { return NotReady(); }));
  ASSIGN_OR_RETURN(probes_, Probes::Open(probe_options, metrics_));
  budget_ = std::make_unique<CpuBudget>(
      CpuBudget::Options{.budget = options_.cpu_budget, .period_ns = kNsPerSecond / options_.sample_rate_hz}, clock,
      metrics_,
      CpuBudget::Callbacks{.bpf_run_ns = [this] { return probes_->ReadRunNs(); },
                           .set_period = [this](int64_t period_ns) { return SetPeriod(period_ns); }});
  worker_ = std::make_unique<Worker>(loop_);
  Counter& stuck = metrics_.AddCounter("tributary_collector_resource_reads_stuck_total",
                                       "How often other reads had waited over half a second for the read of one "
                                       "process's own attributes (OTEL_*); they are then done on another thread");
  resource_worker_ = std::make_unique<Worker>(
      loop_, Worker::Options{.stuck_max = ResourceReader::kStuckMax, .on_stuck = [&stuck] { stuck.Add(); }});
  Counter& runtime_stuck = metrics_.AddCounter("tributary_collector_runtime_reads_stuck_total",
                                               "How often other reads had waited over half a second for the read of "
                                               "one process's code objects; they are then done on another thread");
  runtime_worker_ = std::make_unique<Worker>(
      loop_, Worker::Options{.stuck_max = kRuntimeStuckMax, .on_stuck = [&runtime_stuck] { runtime_stuck.Add(); }});
  symbol_worker_ = std::make_unique<Worker>(loop_);
  service_worker_ = std::make_unique<Worker>(loop_);

  CoreOptions core_options;
  core_options.proc_root = options_.proc_root;
  core_options.cgroup_root = options_.cgroup_root;
  // The same choice as in the probes.
  auto own_cgroups = ReadSmallFile("/proc/self/cgroup", 64u << 10);
  if (own_cgroups.ok()) {
    core_options.cgroup_v1 = CgroupV1Name(ChooseCgroupV1(*own_cgroups));
    core_options.takes_cgroup_events = !HasLegacyController(ParseProcCgroup(*own_cgroups), "perf_event");
  }
  core_options.unwind.memory_bytes_max = static_cast<uint64_t>(options_.unwind_memory_bytes);
  core_options.unwind_compiler =
      std::make_shared<SandboxedCompiler>(options_.proc_root, SandboxedCompiler::SpawnSelf, metrics_);
  core_options.sys_root = options_.sys_root;
  if (options_.runtimes != 0 && !Probes::SupportsRuntimes()) {
    LogWarning("functions of language runtimes have no names: on arm64, this needs Linux 6.0 or later");
  } else if (options_.runtimes != 0) {
    core_options.runtimes = options_.runtimes;
    // A stuck read may outlive this object.
    auto reader = std::make_shared<ProcessMemoryReader>(clock, metrics_);
    core_options.open_memory = [reader](Pid pid, const std::string& group) { return reader->Open(pid, group); };
    core_options.forget_memory = [reader](Pid pid) { reader->Forget(pid); };
    core_options.runtime_executor = runtime_worker_.get();
  }
  core_options.event_budget = static_cast<uint32_t>(options_.event_budget);
  core_options.resource_env = options_.resource_env;
  core_options.resource_executor = resource_worker_.get();
  core_options.list_bpf = ListBpfFromNowOn();
  core_options.on_container = [this](std::string_view id) { metadata_->OnContainerSeen(id); };

  ASSIGN_OR_RETURN(const SessionInfo session,
                   MakeSessionInfo({.node_id = options_.node_id,
                                    .host_dir = options_.metadata.host_dir,
                                    .proc_root = options_.proc_root,
                                    .sys_root = options_.sys_root,
                                    .sample_rate_hz = static_cast<uint32_t>(options_.sample_rate_hz)}));
  feed_ = std::make_unique<intake::MetadataFeed>(
      intake::MetadataFeed::Options{.entities_max = kMetadataEntitiesMax, .bytes_max = kMetadataBytesMax}, clock,
      metrics_);
  metadata_ = std::make_unique<NodeMetadata>(NodeMetadata::Options{.session = session,
                                                                   .metadata = options_.metadata,
                                                                   .proc_root = options_.proc_root,
                                                                   .sys_root = options_.sys_root,
                                                                   .node_id_given = !options_.node_id.empty()},
                                             *service_worker_, loop_, clock, *feed_, metrics_);
  RETURN_IF_ERROR(OpenOutlet(session));
  core_ = std::make_unique<CollectorCore>(*probes_, OpenRecording(session), *worker_, clock, metrics_,
                                          std::move(core_options));
  SymbolServer::Options symbol_options{.proc_root = options_.proc_root,
                                       .debug_information = options_.upload_debug_info};
  if (!options_.sends_to_reducers()) {
    // The tables stay on this node.
    symbol_options.for_this_node = true;
    symbol_options.bytes_per_second = kLocalTableBytesPerSecond;
  }
  symbols_ = std::make_unique<SymbolServer>(
      std::move(symbol_options),
      SymbolServer::Parts{.executables = core_->code_files(),
                          .maker = std::make_shared<SymbolMaker>(SymbolMaker::SpawnSelf, metrics_),
                          .executor = *symbol_worker_},
      clock, metrics_,
      SymbolServer::Callbacks{
          .send = [this](const ExecutableId& id, PackedTable t) { outlet_->SendSymbols(id, std::move(t)); },
          .send_none = [this](const ExecutableId& id, const absl::Status& why) { outlet_->SendNoSymbols(id, why); },
          .only_function = [this](const ExecutableId& id) { return core_->kernel_code().NameOf(id); },
          .send_digest = [this](const ExecutableId& id,
                                const absl::StatusOr<SymbolDigest>& digest) { outlet_->SendDigest(id, digest); }});
  core_->kernel_code().SetChanged([this] { symbols_->SetKernel(core_->kernel_code().layout()); });
  ReadVdso();
  return absl::OkStatus();
}

absl::Status Collector::OpenOutlet(const SessionInfo& session) {
  auto need_symbols = [this](const ExecutableId& id) { symbols_->Request(id); };
  if (!options_.sends_to_reducers()) {
    DirectOptions direct{.receiver = options_.receiver,
                         .variables = options_.otlp_variables,
                         .queue_bytes_max = static_cast<size_t>(options_.intake_memory_bytes),
                         .names = options_.names,
                         .batches_together = static_cast<size_t>(options_.batches_per_request),
                         .together_wait_ns = options_.batch_interval_ns * options_.batches_per_request,
                         .metrics_interval_ns = options_.metrics_interval_ns,
                         .table_bytes_max = static_cast<uint64_t>(options_.names_memory_bytes),
                         .spool_dir = options_.spool_dir,
                         .spool_bytes_max = static_cast<uint64_t>(options_.spool_bytes_max),
                         .session = session};
    ASSIGN_OR_RETURN(outlet_, DirectOutlet::Open(loop_, std::move(direct), probes_->pinned_session(), *feed_,
                                                 Clock::Real(), metrics_, need_symbols));
    return absl::OkStatus();
  }
  UplinkOptions options;
  options.delivery.reducers = options_.reducers;
  options.delivery.client.session = session;
  options.delivery.client.metadata = feed_.get();
  options.delivery.memory_bytes_max = static_cast<size_t>(options_.intake_memory_bytes);
  options.delivery.in_doubt_timeout_ms = options_.in_doubt_timeout_ns / kNsPerMs;
  options.delivery.client.upgrade_wait_ms = options_.upgrade_wait_ns / kNsPerMs;
  options.credentials = options_.credentials;
  options.spool_dir = options_.spool_dir;
  options.spool_bytes_max = static_cast<uint64_t>(options_.spool_bytes_max);
  ASSIGN_OR_RETURN(
      outlet_, Uplink::Open(
                   loop_, std::move(options), probes_->pinned_session(), Clock::Real(), metrics_, need_symbols,
                   [this](const ExecutableId& id) { symbols_->RequestDigest(id); },
                   [this](intake::OptOutLists::Containers containers) { core_->SetOptOuts(std::move(containers)); }));
  return absl::OkStatus();
}

BatchSink& Collector::OpenRecording(const SessionInfo& session) {
  if (options_.record_intake_output_path.empty()) return outlet_->sink();
  auto recording = intake::RecordingSink::Open({.path = options_.record_intake_output_path, .metadata = feed_.get()},
                                               session, outlet_->sink(), Clock::Real(), metrics_);
  if (!recording.ok()) {
    LogWarning("cannot create the recording cause=\"{}\": samples are sent, but not recorded",
               Message(recording.status()));
    return outlet_->sink();
  }
  LogInfo("recording path={}", options_.record_intake_output_path);
  recording_ = *std::move(recording);
  return *recording_;
}

void Collector::ReadVdso() {
  auto own = ReadOwnVdso();
  if (!own.ok()) {
    LogInfo("frames in the vdso will have no names cause=\"{}\"", Message(own.status()));
    return;
  }
  auto vdso = std::make_shared<CodeFile>();
  vdso->id = own->id;
  vdso->path = "[vdso]";
  vdso->segments = own->segments;
  vdso->memory = own->bytes;
  vdso->state = CodeFile::State::kReady;
  core_->code_files().SetVdso(std::move(vdso));
  symbols_->SetVdso(own->id, own->bytes);
}

void Collector::StartTimers() {
  sigterm_ = std::make_unique<SignalWatcher>(loop_, SIGTERM, [this] { Stop(); });
  sigint_ = std::make_unique<SignalWatcher>(loop_, SIGINT, [this] { Stop(); });
  sigusr1_ = std::make_unique<SignalWatcher>(loop_, SIGUSR1, [this] { LogMetrics(metrics_); });
  poll_timer_ = std::make_unique<Timer>(loop_, [this] { Poll(); });
  batch_timer_ = std::make_unique<Timer>(loop_, [this] { core_->FlushBatch(); });
  hotplug_timer_ = std::make_unique<Timer>(loop_, [this] { probes_->FollowHotplug(); });
  summary_timer_ = std::make_unique<Timer>(loop_, [this] { LogTotals("totals", outlet_->totals().waiting_samples); });
  wakeup_ = std::make_unique<ReadWatcher>(loop_, probes_->wakeup_fd(), [this] { OnWakeup(); });
  wakeup_timer_ = std::make_unique<Timer>(loop_, [this] { wakeup_->Start(); });
  wakeup_->Start();
  budget_timer_ = std::make_unique<Timer>(loop_, [this] { budget_->Tick(); });
  poll_timer_->StartEvery(SampleRingPollMs(ring_bytes_, budget_->period_ns(), CpuCount()));
  budget_timer_->StartEvery(kBudgetMs);
  batch_timer_->StartEvery(static_cast<uint64_t>(options_.batch_interval_ns / kNsPerMs));
  hotplug_timer_->StartEvery(kHotplugMs);
  summary_timer_->StartEvery(kSummaryMs);
}

absl::Status Collector::SetPeriod(int64_t period_ns) {
  RETURN_IF_ERROR(probes_->SetPeriod(static_cast<uint64_t>(period_ns)));
  poll_timer_->StartEvery(SampleRingPollMs(ring_bytes_, period_ns, CpuCount()));
  return absl::OkStatus();
}

absl::StatusOr<Reloader::Reloaded> Collector::Reload() {
  CollectorOptions fresh;
  RETURN_IF_ERROR(parse_(&fresh).status());
  LogWarnings(fresh);
  if (options_.sends_to_reducers()) RETURN_IF_ERROR(outlet_->ChangeCredentials(fresh.credentials));
  Reloader::Reloaded reloaded{
      .values = std::move(fresh.values), .log_level = fresh.log.options.level, .refused = NeedRestart(options_)};
  const uint32_t rate_hz = static_cast<uint32_t>(fresh.sample_rate_hz),
                 max_hz = SampleRingRateMaxHz(ring_bytes_, CpuCount());
  if (fresh.sample_rate_hz > options_.sample_rate_hz && rate_hz > max_hz) {
    LogWarning(
        "--sample-rate is not changed: the ring buffer of samples is large enough for at most {} Hz. Restart "
        "kernel-collector to sample at a higher rate",
        max_hz);
    reloaded.refused.push_back("sample-rate");
  } else if (rate_hz != rate_hz_) {
    rate_hz_ = rate_hz;
    budget_->SetConfiguredPeriod(kNsPerSecond / rate_hz);
    outlet_->SetSampleRate(rate_hz);
    service_.SetStatus(fmt::format("sampling at {} Hz", rate_hz));
  }
  return reloaded;
}

void Collector::OnWakeup() {
  const MonotonicNs now = Clock::Real().Monotonic();
  const int64_t wait_ns = woken_at_.value + kWakeupNs - now.value;
  if (wait_ns > 0) {
    wakeup_->Stop();
    wakeup_timer_->StartOnce(static_cast<uint64_t>(wait_ns / kNsPerMs) + 1);
    return;
  }
  woken_at_ = now;
  Poll();
}

void Collector::Poll() {
  core_->Poll();
  symbols_->Tick();
  if (!stopping_) return;
  bool waited_enough = Clock::Real().Monotonic().value - stop_began_.value >= kStopHoldNs;
  if (core_->held() == 0 || waited_enough) FinishStop();
}

void Collector::Stop() {
  if (stopping_) {
    LogInfo("second signal received: stopping without waiting for acknowledgements");
    loop_.Stop();
    return;
  }
  stopping_ = true;
  service_.Stopping();
  stop_began_ = Clock::Real().Monotonic();
  batch_timer_->Stop();
  hotplug_timer_->Stop();
  budget_timer_->Stop();
  summary_timer_->Stop();
  wakeup_timer_->Stop();
  wakeup_->Stop();
  core_->StopSampling();
  poll_timer_->StartEvery(kStopPollMs);
}

void Collector::FinishStop() {
  poll_timer_->Stop();
  core_->FinalBatch();
  outlet_->Flush(options_.shutdown_timeout_ns / kNsPerMs, [this](uint64_t unacked) {
    LogTotals("stopped", unacked);
    loop_.Stop();
  });
}

void Collector::LogTotals(std::string_view event, uint64_t unacked_samples) {
  Accounting totals = core_->ReadAccounting();
  const Outlet::Totals of_outlet = outlet_->totals();
  totals += of_outlet.lost;
  std::string lost;
  for (uint8_t i = 0; i < kLossReasonCount; ++i) {
    if (totals.lost[i].total() == 0) continue;
    lost += fmt::format(" lost_{}={}", LossReasonName(static_cast<LossReason>(i)), totals.lost[i].total());
  }
  const SampleCounts all_lost = totals.TotalLost();
  LogInfo(
      "{} captured={} sent={} unacked={} held={} lost={}{} batches={} bytes_sent={} processes={} executables={} "
      "events={} events_sent={} events_lost={}",
      event, totals.captured.total(), of_outlet.sent_samples.value_or(core_->batcher().samples_sent()), unacked_samples,
      core_->held(), all_lost.total(), lost, core_->batcher().batches(), of_outlet.bytes_sent,
      core_->processes().size(), core_->code_files().size(), totals.captured.events(),
      of_outlet.sent_events.value_or(core_->batcher().events_sent()), all_lost.events());
}

std::string Collector::NotReady() const {
  if (stopping_) return "kernel-collector is stopping.";
  return sampling_ ? outlet_->NotReady() : "kernel-collector has not started sampling yet.";
}

}  // namespace tributary
