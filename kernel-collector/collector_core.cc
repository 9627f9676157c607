#include "kernel-collector/collector_core.h"

#include <algorithm>
#include <cstring>

#include "kernel-collector/stored_record.h"

namespace tributary {
namespace {

std::string_view CommOf(const trib_sample& sample) { return {sample.comm, strnlen(sample.comm, sizeof sample.comm)}; }

bool IsKernelThread(const trib_sample& sample) { return (sample.flags & TRIB_FLAG_KERNEL_THREAD) != 0; }

bool IsInKnownCgroup(const trib_sample& sample, const ProcessRun& run) {
  return run.cgroup_known && run.cgroup_v2_id == sample.cgroup_v2_id && run.cgroup_v1_id == sample.cgroup_v1_id;
}

// Returns true if the kernel lacked data for its walk. ResolveStack gives it these data, also if the sample is dropped
// then: otherwise the kernel would copy the stack for every sample of the process, which costs more than a walk.
bool TeachesKernel(const SampleRecord& record) { return record.resume != nullptr; }

MonotonicNs TimeOf(const trib_sample& sample) { return MonotonicNs{static_cast<int64_t>(sample.time_ns)}; }

UnwindTables::Options UnwindOptions(const CoreOptions& options) {
  UnwindTables::Options unwind = options.unwind;
  unwind.proc_root = options.proc_root;
  return unwind;
}

}  // namespace

// Merges samples, process events and events of the sideband in order of time.
class CollectorCore::Merger : public SidebandVisitor {
 public:
  explicit Merger(CollectorCore& core) : core_(core) {}
  void OnMmap(const MmapEvent& event) override {
    core_.TakeBefore(event.time.value);
    core_.processes_.OnMmap(event);
  }
  void OnFork(const ForkEvent& event) override {
    core_.TakeBefore(event.time.value);
    core_.processes_.OnFork(event);
  }
  void OnComm(const CommEvent& event) override {
    core_.TakeBefore(event.time.value);
    core_.processes_.OnComm(event);
  }
  void OnExit(const ExitEvent& event) override {
    core_.TakeBefore(event.time.value);
    core_.processes_.OnExit(event);
  }
  void OnKernelCode(const KernelCodeEvent& event) override {
    core_.TakeBefore(event.time.value);
    core_.kernel_code_.OnKernelCode(event);
  }
  void OnCgroup(const CgroupEvent& event) override { core_.cgroups_.OnMade(event.id, event.path); }
  // The event has no time: the lost events may concern any sample that is being processed.
  void OnLost(const LostEvent& event) override {
    core_.processes_.OnLost(event);
    core_.kernel_code_.OnLost();
  }

 private:
  CollectorCore& core_;
};

CollectorCore::CollectorCore(Probes& probes, BatchSink& sink, Executor& executor, const Clock& clock, Metrics& metrics,
                             CoreOptions options)
    : probes_(probes),
      executor_(executor),
      clock_(clock),
      options_(std::move(options)),
      reader_(options_.proc_root, clock),
      code_files_(metrics),
      processes_(code_files_, metrics),
      cgroups_({.proc_root = options_.proc_root,
                .cgroup_root = options_.cgroup_root,
                .cgroup_v1 = options_.cgroup_v1,
                .takes_events = options_.takes_cgroup_events},
               executor, clock, metrics),
      resources_({.proc_root = options_.proc_root, .names = options_.resource_env},
                 options_.resource_executor != nullptr ? *options_.resource_executor : executor, clock, metrics),
      runtime_reader_(std::make_shared<RuntimeReader>(options_.runtimes, clock, metrics, options_.runtime_kinds)),
      runtime_slots_(probes.unwind_maps(), clock, metrics),
      runtime_objects_({.open_memory = options_.open_memory, .forget = options_.forget_memory},
                       options_.runtime_executor != nullptr ? *options_.runtime_executor : executor, clock, metrics),
      mixer_(runtime_slots_, runtime_objects_, metrics),
      unwinder_(probes.unwind_maps(), runtime_slots_, executor, clock, metrics, UnwindOptions(options_),
                options_.unwind_compiler),
      kernel_code_({.proc_root = options_.proc_root, .sys_root = options_.sys_root, .list_bpf = options_.list_bpf},
                   executor, clock, metrics),
      jit_(options_.proc_root, options_.resource_executor != nullptr ? *options_.resource_executor : executor, clock,
           metrics),
      resolver_(kernel_code_, &jit_),
      batcher_(sink, clock, options_.dictionary),
      events_({.events_per_second = options_.event_budget,
               .hold_ns = options_.hold_ns,
               .on_container = options_.on_container},
              probes, processes_, cgroups_, clock, metrics),
      scan_tokens_(options_.scans_per_second_max),
      scan_tokens_at_(clock.Monotonic()),
      held_total_(
          metrics.AddCounter("tributary_collector_samples_held_total",
                             "Samples that had to wait until the collector had read a mapping, a file or a process")),
      hold_expired_(metrics.AddCounter(
          "tributary_collector_samples_hold_expired_total",
          "Samples that waited for a mapping, a file or a process, and were sent before the collector had read it")),
      unnamed_frames_total_(metrics.AddCounter("tributary_collector_runtime_frames_unnamed_total",
                                               "Frames of language runtimes that were sent without a name")),
      opted_out_(metrics.AddCounter("tributary_collector_lost_samples_total", "Samples lost after capture, by reason",
                                    {{"reason", std::string(LossReasonName(LossReason::kOptedOut))}})) {
  for (uint8_t i = 0; i < kEndingCount; ++i) {
    endings_[i] =
        &metrics.AddCounter("tributary_collector_samples_by_ending_total", "Samples, by how their stack walk ended",
                            {{"ending", std::string(EndingName(static_cast<Ending>(i)))}});
  }
  processes_.SetDropped([this](Pid pid) {
    unwinder_.Forget(pid);
    runtime_objects_.Forget(pid);
  });
  kernel_code_.SetDrain([this] { DrainProbes(); });
}

void CollectorCore::ScanAll() {
  kernel_code_.ReadNow();
  size_t read = 0;
  for (Pid pid : reader_.ListProcesses()) {
    if (auto snapshot = reader_.Read(pid); snapshot.ok()) processes_.Merge(*snapshot);
    // Events continue to arrive: their ring must not overrun before the first poll.
    if (++read % 64 == 0) DrainProbes();
  }
  DrainProbes();
  events_.ReportRunning([this] { DrainProbes(); });
}

void CollectorCore::Poll() {
  DrainProbes();
  events_.Poll();
  for (const ProcessRunPtr& run : processes_.TakeChanged()) unwinder_.Forget(run->pid);
  for (const ProcessRunPtr& run : resources_.Settle(processes_)) batcher_.Redefine(*run);
  unwinder_.Tick();
  kernel_code_.Tick();
  jit_.Tick(processes_);
  RetryHeld(/*force=*/false);
  runtime_objects_.Tick();
  if (processes_.TakeLost()) SweepAfterLoss();
  if (MonotonicNs now = clock_.Monotonic(); now.value - dropped_at_.value >= kNsPerSecond) {
    dropped_at_ = now;
    processes_.DropExited(now);
  }
}

void CollectorCore::DrainProbes() {
  drained_.clear();
  order_.clear();
  drained_events_.clear();
  next_ = next_event_ = 0;
  probes_.DrainSamples([this](const SampleRecord& record) {
    size_t begin = drained_.size();
    StoreRecord(record, &drained_);
    order_.push_back({TimeOf(*record.sample).value, begin, drained_.size()});
  });
  std::stable_sort(order_.begin(), order_.end(),
                   [](const Drained& a, const Drained& b) { return a.time_ns < b.time_ns; });
  probes_.DrainProcessEvents([this](const trib_process_event& event) { drained_events_.push_back(event); });
  std::stable_sort(drained_events_.begin(), drained_events_.end(),
                   [](const auto& a, const auto& b) { return a.time_ns < b.time_ns; });
  Merger merger(*this);
  probes_.DrainSideband(merger);
  TakeBefore(INT64_MAX);
}

void CollectorCore::TakeBefore(int64_t time_ns) {
  for (; next_event_ < drained_events_.size(); ++next_event_) {
    const trib_process_event& event = drained_events_[next_event_];
    if (static_cast<int64_t>(event.time_ns) >= time_ns) break;
    events_.Take(event);
  }
  while (next_ < order_.size() && order_[next_].time_ns < time_ns) {
    auto [time, begin, end] = order_[next_++];
    Take(ViewRecord(drained_.data() + begin), std::span(drained_).subspan(begin, end - begin));
  }
}

void CollectorCore::Take(const SampleRecord& record, std::span<const uint64_t> words) {
  const trib_sample& sample = *record.sample;
  ProcessRunPtr run = processes_.ForSample(Pid{static_cast<int32_t>(sample.pid)},
                                           static_cast<int64_t>(sample.start_time_ns), TimeOf(sample));
  if (!TeachesKernel(record) && IsInKnownCgroup(sample, *run) && DropsOptedOut(record, *run)) return;
  if (IsKernelThread(sample)) {
    run->complete = run->scanned = true, run->stale = false;
  } else {
    resources_.OnSample(run, TimeOf(sample), processes_);
  }
  if (run->comm.empty() && sample.pid == sample.tid) run->comm = CommOf(sample);
  const size_t frames_to_trust = unwinder_.FramesToTrust(record, *run);
  if (TryAdd(record, frames_to_trust, *run, nullptr, /*force=*/false)) return;
  if (held_.size() >= options_.held_samples_max || held_bytes_ + words.size_bytes() > options_.held_bytes_max) {
    SampleCounts one;
    one.Add(record.type(), 1);
    AddLost(LossReason::kHoldOverflow, one);
    return;
  }
  held_total_.Add();
  held_bytes_ += words.size_bytes();
  // A table that cannot be trusted is about to be replaced: it would only mislead.
  auto mappings = run->NeedsScan() ? nullptr : run->mappings.snapshot();
  Held held;
  held.words.assign(words.begin(), words.end());
  held.mappings = std::move(mappings);
  held.frames_to_trust = frames_to_trust;
  held.until = MonotonicNs{clock_.Monotonic().value + options_.hold_ns};
  held.for_mapping_only = waits_for_mapping_only_;
  held.mapping_changes = run->mapping_changes;
  held.run = std::move(run);
  held_.push_back(std::move(held));
}

void CollectorCore::RetryHeld(bool force) {
  MonotonicNs now = clock_.Monotonic();
  std::deque<Held> still;
  for (Held& held : held_) {
    bool expired = force || now >= held.until;
    if (!expired && held.for_mapping_only && held.mapping_changes == held.run->mapping_changes) {
      still.push_back(std::move(held));
      continue;
    }
    if (!TryAdd(ViewRecord(held.words.data()), held.frames_to_trust, *held.run, held.mappings.get(), expired)) {
      held.for_mapping_only = waits_for_mapping_only_;
      held.mapping_changes = held.run->mapping_changes;
      still.push_back(std::move(held));
      continue;
    }
    held_bytes_ -= held.words.size() * sizeof(uint64_t);
  }
  held_ = std::move(still);
}

bool CollectorCore::TryAdd(const SampleRecord& record, size_t frames_to_trust, ProcessRun& run,
                           const MappingTable::List* mappings, bool force) {
  const trib_sample& sample = *record.sample;
  bool wait = AwaitCgroup(sample, run);
  if (!wait && !TeachesKernel(record) && DropsOptedOut(record, run)) return true;
  MayRead may_read = MayRead::kYes;
  if (!opt_outs_.empty()) {
    may_read = wait ? MayRead::kNotYet : opt_outs_.contains(run.container_id) ? MayRead::kNo : MayRead::kYes;
  }
  if (run.executable != nullptr && !run.executable->id.known()) wait |= AwaitExecutable(run.executable);
  wait |= !ResolveStack(record, frames_to_trust, run, mappings, may_read);
  bool uncovered = !resolved_.uncovered_pages.empty();
  wait |= AwaitScan(run, uncovered);
  waits_for_mapping_only_ = !wait;
  wait |= uncovered;
  if (wait && !force) return false;
  if (DropsOptedOut(record, run)) return true;
  if (wait) hold_expired_.Add();
  for (uint64_t page : resolved_.uncovered_pages) {
    if (run.uncovered_pages.size() < ProcessRun::kUncoveredPagesMax) run.uncovered_pages.insert(page);
  }
  endings_[static_cast<size_t>(resolved_.ending)]->Add();
  if (unnamed_frames_ > 0) unnamed_frames_total_.Add(unnamed_frames_);
  mixer_.CountSample();
  NamedSample named{TimeOf(sample), Tid{static_cast<int32_t>(sample.tid)},
                    CommOf(sample), static_cast<uint16_t>(sample.cpu),
                    record.type(),  sample.value};
  batcher_.Add(named, run, resolved_, [this] { return ReadAccounting(); });
  return true;
}

bool CollectorCore::AwaitScan(ProcessRun& run, bool uncovered) {
  if (run.scan_running) return true;
  // /proc shows nothing any more of a run that exec has replaced.
  if (!(run.NeedsScan() || uncovered) || run.exited) return false;
  ProcessRunPtr current = processes_.Find(run.pid);
  if (current.get() != &run) return false;
  MonotonicNs now = clock_.Monotonic();
  // A table without lost events has every mapping, so another scan seldom helps.
  int64_t again_ns = run.NeedsScan() ? options_.scan_again_ns : 12 * options_.scan_again_ns;
  if (run.last_scan.value != 0 && now.value - run.last_scan.value < again_ns) return false;
  if (!TakeScanToken()) return true;
  auto snapshot = std::make_shared<absl::StatusOr<ProcSnapshot>>(absl::UnknownError(""));
  bool taken = executor_.Submit([this_reader = reader_, pid = run.pid, snapshot] { *snapshot = this_reader.Read(pid); },
                                scope_.Wrap([this, current, snapshot, now] {
                                  if (snapshot->ok()) DrainProbes();  // events from before the scan: it builds on them
                                  current->scan_running = false;
                                  current->last_scan = now;
                                  if (snapshot->ok()) processes_.Merge(**snapshot);
                                }));
  run.scan_running = taken;
  return true;
}

bool CollectorCore::TakeScanToken() {
  MonotonicNs now = clock_.Monotonic();
  int64_t earned = (now.value - scan_tokens_at_.value) * options_.scans_per_second_max / kNsPerSecond;
  if (earned > 0) {
    scan_tokens_ = std::min<int64_t>(scan_tokens_ + earned, options_.scans_per_second_max);
    scan_tokens_at_ = now;
  }
  if (scan_tokens_ <= 0) return false;
  --scan_tokens_;
  return true;
}

bool CollectorCore::AwaitCgroup(const trib_sample& sample, ProcessRun& run) {
  if (IsInKnownCgroup(sample, run)) return false;
  if (run.cgroup_moves > ProcessRun::kCgroupMovesMax) return false;
  const CgroupName* name = cgroups_.Find({sample.cgroup_v2_id, sample.cgroup_v1_id}, run.pid);
  if (name == nullptr) return true;
  run.cgroup_known = true;
  ++run.cgroup_moves;
  run.cgroup_v2_id = sample.cgroup_v2_id;
  run.cgroup_v1_id = sample.cgroup_v1_id;
  run.cgroup_path = name->path;
  run.container_id = name->container_id;
  run.interned_generation = 0;
  if (options_.on_container && !run.container_id.empty()) options_.on_container(run.container_id);
  return false;
}

void CollectorCore::SweepAfterLoss() {
  auto pids = std::make_shared<std::vector<Pid>>();
  MonotonicNs now = clock_.Monotonic();
  executor_.Submit([reader = reader_, pids] { *pids = reader.ListProcesses(); }, scope_.Wrap([this, pids, now] {
    if (pids->empty()) return;
    processes_.MergeList(*pids, now);
    events_.ForgetMissing(*pids, now);
  }));
}

// The ends of processes may be among the lost events. A sweep keeps processes that have just started, so another sweep
// follows when the processes from before the loss are old enough.
void CollectorCore::SweepAfterLostEvents(const Accounting& totals) {
  const MonotonicNs now = clock_.Monotonic();
  const uint64_t lost = totals.LostFor(LossReason::kRingFull).events() + totals.LostFor(LossReason::kMissed).events();
  if (lost > events_lost_) {
    events_lost_ = lost;
    sweep_again_at_ = MonotonicNs{now.value + EventTracker::kMissingGraceNs};
    SweepAfterLoss();
  } else if (sweep_again_at_ && now > *sweep_again_at_) {
    sweep_again_at_.reset();
    SweepAfterLoss();
  }
}

void CollectorCore::FlushBatch() {
  const auto accounting = [this] { return ReadAccounting(); };
  events_.AddTo(batcher_, accounting);
  const Accounting totals = accounting();
  SweepAfterLostEvents(totals);
  batcher_.Flush(totals);
}

void CollectorCore::StopSampling() {
  probes_.StopSampling();
  DrainProbes();
}

void CollectorCore::FinalBatch() {
  DrainProbes();
  RetryHeld(/*force=*/true);
  events_.Finish();
  FlushBatch();
}

Accounting CollectorCore::ReadAccounting() {
  Accounting accounting = probes_.ReadAccounting();
  accounting += lost_;
  accounting.LostFor(LossReason::kEventOverflow).AddEvents(events_.lost());
  accounting.LostFor(LossReason::kOptedOut).AddEvents(events_.opted_out());
  return accounting;
}

}  // namespace tributary
