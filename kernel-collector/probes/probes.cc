#include "kernel-collector/probes/probes.h"

#include <fmt/format.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <fstream>
#include <map>
#include <sstream>
#include <vector>

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/status.h"
#include "embedded/sampler_bpf_object.h"
#include "kernel-collector/probes/cgroup_v1.h"
#include "kernel-collector/probes/cpu_list.h"
#include "kernel-collector/probes/memory_limit.h"
#include "kernel-collector/probes/perf_event.h"
#include "kernel-collector/probes/preflight.h"
#include "kernel-collector/probes/ring_size.h"
#include "kernel-collector/probes/sampler.h"
#include "kernel-collector/probes/sideband.h"
#include "kernel-collector/probes/wakeups.h"

namespace tributary {
namespace {

constexpr uint32_t kSampleRateMaxHz = 50'000;  // exact up to this rate, measured
constexpr uint64_t kCopiesBytesMin = 512 << 10, kCopiesBytesMax = 128 << 20;
constexpr int64_t kRestartNsMax = 2 * kNsPerMs;  // time that SetPeriod may take to spread the CPUs
constexpr int kLateStartsMax = 4;                // additional periods that StartSampling may take beyond the first
constexpr char kPinFolder[] = "/sys/fs/bpf/tributary";

std::string ReadSmallFile(const char* path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

absl::StatusOr<std::vector<int>> OnlineCpus() { return ParseCpuList(ReadSmallFile("/sys/devices/system/cpu/online")); }

uint32_t CopiesBytes(const ProbeOptions& options, size_t cpus) {
  if (options.copies_bytes != 0) return options.copies_bytes;
  return static_cast<uint32_t>(
      std::bit_ceil(std::clamp<uint64_t>(cpus * (128 << 10), kCopiesBytesMin, kCopiesBytesMax)));
}

// The kernel's configuration decides the number of bits of an address. Stacks lie in the upper half of the address
// space.
uint64_t UserAddressMask() { return std::bit_ceil(reinterpret_cast<uint64_t>(__builtin_frame_address(0))) - 1; }

void SleepUntil(MonotonicNs time) {
  timespec when = {.tv_sec = time.value / kNsPerSecond, .tv_nsec = time.value % kNsPerSecond};
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &when, nullptr) == EINTR) {
  }
}

std::string_view ContextName(trib_context context) {
#define TRIB_CONTEXT_NAME(NAME, name) name,
  constexpr std::string_view kNames[] = {TRIB_CONTEXTS(TRIB_CONTEXT_NAME)};
#undef TRIB_CONTEXT_NAME
  return kNames[context];
}

class KernelProbes : public Probes {
 public:
  KernelProbes(uint64_t period_ns, std::unique_ptr<Sampler> sampler, Fd wakeups, Metrics& metrics)
      : period_ns_(period_ns),
        sampler_(std::move(sampler)),
        wakeups_(std::move(wakeups)),
        sideband_(metrics, wakeups_.get()) {
    AddMetrics(metrics);
  }

  void PinProcesses() {
    if (sampler_->process_programs() == nullptr || !pinned_session().pinned()) return;
    auto pinned = LiveProcesses::Pin(kPinFolder, pinned_session().other_runs());
    if (pinned.ok()) {
      live_processes_ = *std::move(pinned);
    } else {
      LogWarning(
          "cannot pin the list of processes cause=\"{}\": the ends of processes that end while no collector "
          "runs are not reported",
          Message(pinned.status()));
    }
  }
  absl::Status OpenSideband(const std::vector<int>& cpus) {
    for (int cpu : cpus) {
      absl::Status status = sideband_.AddCpu(cpu);
      if (!status.ok() && !absl::IsNotFound(status)) return status;  // NotFound: the CPU went offline meanwhile
    }
    return absl::OkStatus();
  }

  absl::Status StartSampling() override;
  void StopSampling() override;
  size_t DrainSamples(const std::function<void(const SampleRecord& record)>& visit) override {
    ClearWakeups(wakeups_.get());
    return sampler_->Drain(visit);
  }
  void DrainProcessEvents(const std::function<void(const trib_process_event& event)>& visit) override {
    if (ProcessPrograms* programs = sampler_->process_programs(); programs != nullptr) programs->Drain(visit);
  }
  bool ListProcesses(const std::function<void(const trib_process_event& event)>& visit) override {
    ProcessPrograms* programs = sampler_->process_programs();
    if (programs == nullptr) return true;
    absl::Status status = programs->ListRunning(visit);
    if (!status.ok()) LogWarning("some processes that already run are not reported cause=\"{}\"", Message(status));
    return status.ok();
  }
  void AddEventsMade(uint64_t events) override {
    events_made_ += events;
    WriteEventsMade();
  }
  void DrainSideband(SidebandVisitor& visitor) override { sideband_.Drain(visitor, Clock::Real().Monotonic()); }
  void FollowHotplug() override;
  Accounting ReadAccounting() override;
  bool has_build_ids() const override { return sideband_.has_build_ids(); }
  UnwindMaps& unwind_maps() override { return sampler_->unwind_maps(); }
  PinnedSession& pinned_session() override { return sampler_->pinned_session(); }
  LiveProcesses& live_processes() override { return live_processes_; }
  int wakeup_fd() const override { return wakeups_.get(); }
  absl::Status SetPeriod(uint64_t period_ns) override;
  uint64_t ReadRunNs() override {
    const SampleCounts run_ns = sampler_->counters()->ReadTypes(TRIB_RUN_NS);
    return run_ns.total() + run_ns.events();
  }

 private:
  void AddMetrics(Metrics& metrics);
  // No program has captured these events. A missed event counts as captured, too.
  void WriteEventsMade() { sampler_->counters()->SetEventsMade(events_made_ + missed_events_->value()); }
  absl::Status SampleCpu(int cpu);
  void DropCpu(int cpu);

  uint64_t period_ns_;
  std::unique_ptr<Sampler> sampler_;
  Fd wakeups_;  // epoll: the rings of samples, copies and process events, and the sideband's rings
  Sideband sideband_;
  uint64_t events_made_ = 0;
  std::shared_ptr<Counter> missed_events_ = std::make_shared<Counter>();
  LiveProcesses live_processes_;
  bool sampling_ = false;
  std::map<int, Fd> sampling_events_;  // by CPU
};

void KernelProbes::AddMetrics(Metrics& metrics) {
  auto counters = sampler_->counters();
  auto add = [&](std::string_view name, std::string_view help, trib_counter counter, Metrics::Labels labels = {}) {
    metrics.AddCallback(name, help, /*is_counter=*/true, std::move(labels),
                        [counters, counter] { return static_cast<double>(counters->Read(counter)); });
  };
  add("tributary_collector_captured_samples_total", "Captured samples: sampling ticks on busy CPUs", TRIB_CAPTURED);
  metrics.AddCallback("tributary_collector_process_events_total",
                      "Captured process events: starts, execs and ends of processes, and processes found running",
                      /*is_counter=*/true, {},
                      [counters] { return static_cast<double>(counters->ReadTypes(TRIB_CAPTURED).events()); });
  constexpr std::string_view kLostEvents = "tributary_collector_lost_process_events_total";
  constexpr std::string_view kLostEventsHelp = "Process events lost, by reason";
  metrics.AddCallback(kLostEvents, kLostEventsHelp, /*is_counter=*/true,
                      {{"reason", std::string(LossReasonName(LossReason::kRingFull))}},
                      [counters] { return static_cast<double>(counters->ReadTypes(TRIB_LOST_RING_FULL).events()); });
  metrics.AddCallback(kLostEvents, kLostEventsHelp, /*is_counter=*/true,
                      {{"reason", std::string(LossReasonName(LossReason::kMissed))}},
                      [missed = missed_events_] { return static_cast<double>(missed->value()); });
  add("tributary_collector_idle_ticks_total", "Sampling ticks on idle CPUs; they do not count as samples", TRIB_IDLE);
  constexpr std::string_view kLost = "tributary_collector_lost_samples_total";
  constexpr std::string_view kLostHelp = "Samples lost after capture, by reason";
  add(kLost, kLostHelp, TRIB_LOST_RING_FULL, {{"reason", std::string(LossReasonName(LossReason::kRingFull))}});
  add(kLost, kLostHelp, TRIB_LOST_STACK_ERROR, {{"reason", std::string(LossReasonName(LossReason::kStackError))}});
  metrics.AddCallback(kLost, kLostHelp, /*is_counter=*/true,
                      {{"reason", std::string(LossReasonName(LossReason::kBadRecord))}},
                      [bad = sampler_->bad_record_counter()] { return static_cast<double>(bad->value()); });
  add("tributary_collector_stack_copies_total",
      "Samples that arrived with a copy of their stack's memory, because the kernel could not walk the whole stack",
      TRIB_COPIES);
  add("tributary_collector_stack_copies_refused_total",
      "Samples that have no copy of their stack, because the ring buffer of stack copies was full; the samples are not "
      "lost",
      TRIB_COPY_RING_FULL);
  for (uint32_t i = 0; i < counters->contexts(); ++i) {
    const auto context = static_cast<trib_context>(i);
    metrics.AddCallback("tributary_collector_sampling_seconds_total",
                        "Time of the runs of BPF programs that took a sample, on all CPUs, by the context of the run",
                        /*is_counter=*/true, {{"context", std::string(ContextName(context))}}, [counters, context] {
                          return static_cast<double>(counters->Read(TRIB_RUN_NS, context)) / kNsPerSecond;
                        });
  }
  AddChainMetrics(sampler_->chain_counters(), metrics);
  add("tributary_collector_kernel_stack_failed_samples_total",
      "Samples that have no kernel stack, because reading it failed; the samples are not lost",
      TRIB_KERNEL_STACK_FAILED);
}

absl::Status KernelProbes::SampleCpu(int cpu) {
  ASSIGN_OR_RETURN(Fd event, OpenSamplingEvent(cpu, period_ns_, sampler_->program_fd()));
  sampling_events_[cpu] = std::move(event);
  return absl::OkStatus();
}

absl::Status KernelProbes::StartSampling() {
  TRIBUTARY_CHECK(!sampling_);
  ASSIGN_OR_RETURN(std::vector<int> cpus, OnlineCpus());
  for (int cpu : cpus) {
    absl::Status status = SampleCpu(cpu);
    if (!status.ok() && !absl::IsNotFound(status)) {
      sampling_events_.clear();
      return status;
    }
  }
  // CPUs that tick together would contend for locks only because of each other's interrupts.
  auto period_ns = static_cast<int64_t>(period_ns_), n = static_cast<int64_t>(sampling_events_.size());
  MonotonicNs slot = Clock::Real().Monotonic();
  int64_t late_ns_max = std::max(period_ns / n / 8, kNsPerMs);
  int retries = kLateStartsMax;
  for (auto& [cpu, event] : sampling_events_) {
    SleepUntil(slot);
    // After a late wake-up on a busy machine, the same place in the next period is just as good.
    for (; Clock::Real().Monotonic().value - slot.value > late_ns_max && retries > 0; --retries) {
      slot.value += period_ns;
      SleepUntil(slot);
    }
    slot.value += period_ns / n;
    if (absl::Status status = EnableEvent(event); !status.ok()) {
      sampling_events_.clear();
      return status;
    }
  }
  sampling_ = true;
  return absl::OkStatus();
}

void KernelProbes::StopSampling() {
  for (auto& [cpu, event] : sampling_events_) DisableEvent(event);
  sampling_events_.clear();
  sampling_ = false;
  if (ProcessPrograms* programs = sampler_->process_programs(); programs != nullptr) programs->Stop();
}

// A CPU's next tick comes after a whole new period, so the rest of the old period has no tick. The CPUs are spread only
// over a very short time. A whole period, as in StartSampling, would block the loop.
absl::Status KernelProbes::SetPeriod(uint64_t period_ns) {
  absl::Status result = absl::OkStatus();
  MonotonicNs slot = Clock::Real().Monotonic();
  for (auto& [cpu, event] : sampling_events_) {
    SleepUntil(slot);
    slot.value +=
        std::min(static_cast<int64_t>(period_ns), kRestartNsMax) / static_cast<int64_t>(sampling_events_.size());
    if (absl::Status status = SetEventPeriod(event, period_ns); !status.ok()) result = status;
  }
  period_ns_ = period_ns;
  sampler_->SetPeriod(period_ns);
  return result;
}

void KernelProbes::DropCpu(int cpu) {
  sampling_events_.erase(cpu);
  sideband_.RemoveCpu(cpu);
}

void KernelProbes::FollowHotplug() {
  absl::StatusOr<std::vector<int>> online = OnlineCpus();
  if (!online.ok()) return LogDebug("cannot read the list of online CPUs cause={}", Message(online.status()));
  std::vector<int> gone;
  for (int cpu : sideband_.cpus()) {
    if (!std::binary_search(online->begin(), online->end(), cpu) || sideband_.IsDead(cpu, Clock::Real().Monotonic()))
      gone.push_back(cpu);
  }
  for (int cpu : gone) {
    LogInfo("CPU went offline cpu={}", cpu);
    DropCpu(cpu);
  }
  for (int cpu : *online) {
    bool missing = !sideband_.has_cpu(cpu) || (sampling_ && !sampling_events_.contains(cpu));
    if (!missing) continue;
    absl::Status status = sideband_.AddCpu(cpu);
    if (status.ok() && sampling_ && !sampling_events_.contains(cpu)) {
      status = SampleCpu(cpu);
      if (status.ok()) status = EnableEvent(sampling_events_[cpu]);
      if (!status.ok()) sampling_events_.erase(cpu);
    }
    if (status.ok()) {
      sideband_.NoteGap();
      LogInfo("CPU came online cpu={}", cpu);
    } else {
      LogWarning("cannot sample a CPU cpu={} cause={}", cpu, Message(status));
    }
  }
}

Accounting KernelProbes::ReadAccounting() {
  ProcessPrograms* programs = sampler_->process_programs();
  if (programs != nullptr) {
    const uint64_t missed = programs->ReadMissed();
    if (missed != missed_events_->value()) {
      missed_events_->Add(missed - missed_events_->value());
      WriteEventsMade();
    }
  }
  Accounting accounting = sampler_->counters()->ReadAccounting();
  accounting.LostFor(LossReason::kBadRecord) = sampler_->bad_records();
  accounting.LostFor(LossReason::kMissed).AddEvents(missed_events_->value());
  if (programs != nullptr) accounting.LostFor(LossReason::kBadRecord).AddEvents(programs->bad_records());
  return accounting;
}

absl::Status CheckMemory(const Machine& machine, size_t cpus, uint64_t ring_bytes) {
  absl::Status enough =
      CheckMemoryLimit(MemoryLimit(ReadSmallFile("/proc/self/cgroup"), "/sys/fs/cgroup"), cpus, ring_bytes);
  if (enough.ok() || machine.ChargesMapsToCgroup()) return enough;
  // On this kernel, the BPF maps and rings are outside of the limit.
  LogWarning("the memory limit may be too small cause=\"{}\"", Message(enough));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<Probes>> Probes::Open(const ProbeOptions& options, Metrics& metrics) {
  if (options.sample_rate_hz == 0 || options.sample_rate_hz > kSampleRateMaxHz) {
    return Error(absl::StatusCode::kInvalidArgument,
                 fmt::format("sample rate {} Hz: must be 1 to {} Hz", options.sample_rate_hz, kSampleRateMaxHz));
  }
  const Machine machine = ReadMachine();
  RETURN_IF_ERROR(CheckMachine(machine));
  ASSIGN_OR_RETURN(std::vector<int> cpus, OnlineCpus());
  const uint32_t ring_bytes = SampleRingBytes(options.sample_rate_hz, cpus.size(), options.ring_seconds);
  RETURN_IF_ERROR(CheckMemory(machine, cpus.size(), ring_bytes));

  auto period_ns = static_cast<uint64_t>(kNsPerSecond / options.sample_rate_hz);
  Sampler::Options sampler_options{.period_ns = period_ns,
                                   .ring_bytes = ring_bytes,
                                   .copies_bytes = CopiesBytes(options, cpus.size()),
                                   .events_bytes = options.process_events ? EventRingBytes(cpus.size()) : 0,
                                   .contexts = options.contexts,
                                   .pin_folder = kPinFolder,
                                   .object = options.object.empty() ? embedded::sampler_bpf_object() : options.object};
  sampler_options.config.address_mask = UserAddressMask();
  sampler_options.config.kernel_stack_bytes = std::max<uint32_t>(16 << 10, static_cast<uint32_t>(getpagesize()));
  sampler_options.config.cgroup_v1 = ChooseCgroupV1(ReadSmallFile("/proc/self/cgroup"));
  sampler_options.config.sample_idle = options.idle;
  sampler_options.config.repeat_events = machine.InterruptsTracepoints();
  ASSIGN_OR_RETURN(std::unique_ptr<Sampler> sampler, Sampler::Load(sampler_options));

  Fd wakeups(epoll_create1(EPOLL_CLOEXEC));
  if (!wakeups.valid()) return ErrnoStatus("create", "an epoll instance", errno);
  RETURN_IF_ERROR(AddRareWakeup(wakeups.get(), sampler->samples_fd()));
  RETURN_IF_ERROR(AddWakeup(wakeups.get(), sampler->copies_fd()));
  if (sampler->process_programs() != nullptr) {
    RETURN_IF_ERROR(AddWakeup(wakeups.get(), sampler->process_programs()->wakeup_fd()));
  }
  auto probes = std::make_unique<KernelProbes>(period_ns, std::move(sampler), std::move(wakeups), metrics);
  RETURN_IF_ERROR(probes->OpenSideband(cpus));
  probes->PinProcesses();
  return probes;
}

bool Probes::SupportsRuntimes() { return ReadMachine().SupportsRuntimes(); }

absl::Status Probes::TryEvent() {
  ASSIGN_OR_RETURN(std::vector<int> cpus, OnlineCpus());
  return OpenSidebandEvent(cpus.front(), /*build_id=*/false).status();
}

}  // namespace tributary
