#include "kernel-collector/collector_core.h"

#include <algorithm>
#include <cstring>

#include "kernel-collector/processes/code_file_reader.h"

namespace tributary {
namespace {

size_t WordsOf(const trib_sample& record) {
  return TRIB_SAMPLE_HEADER_BYTES / sizeof(uint64_t) + record.kernel_frames + record.user_frames;
}

RawStack StackOf(const trib_sample& record) {
  // Not `record.frames`: the array has no bound that the compiler knows.
  const auto* frames = reinterpret_cast<const uint64_t*>(&record) + TRIB_SAMPLE_HEADER_BYTES / sizeof(uint64_t);
  return {{frames, record.kernel_frames}, {frames + record.kernel_frames, record.user_frames}, record.flags};
}

std::string_view CommOf(const trib_sample& record) { return {record.comm, strnlen(record.comm, sizeof record.comm)}; }

bool IsKernelThread(const trib_sample& record) { return (record.flags & TRIB_FLAG_KERNEL_THREAD) != 0; }

}  // namespace

// Lets samples and process events meet in order of time.
class CollectorCore::Merger : public SidebandVisitor {
 public:
  explicit Merger(CollectorCore& core) : core_(core) {}
  void OnMmap(const MmapEvent& event) override {
    core_.TakeSamplesBefore(event.time.value);
    core_.processes_.OnMmap(event);
  }
  void OnFork(const ForkEvent& event) override {
    core_.TakeSamplesBefore(event.time.value);
    core_.processes_.OnFork(event);
  }
  void OnComm(const CommEvent& event) override {
    core_.TakeSamplesBefore(event.time.value);
    core_.processes_.OnComm(event);
  }
  void OnExit(const ExitEvent& event) override {
    core_.TakeSamplesBefore(event.time.value);
    core_.processes_.OnExit(event);
  }
  // Has no time: what was lost may concern any sample in hand.
  void OnLost(const LostEvent& event) override { core_.processes_.OnLost(event); }

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
      cgroups_(options_.proc_root, options_.cgroup_root, executor, clock, metrics),
      resolver_(options_.kernel),
      batcher_(sink, clock, options_.dictionary),
      scan_tokens_(options_.scans_per_second_max),
      scan_tokens_at_(clock.Monotonic()),
      held_total_(metrics.AddCounter("tributary_collector_samples_held_total",
                                     "samples that waited for a mapping, a file or a process to be read")),
      hold_expired_(metrics.AddCounter("tributary_collector_samples_hold_expired_total",
                                       "samples sent although what they waited for had not come")) {}

void CollectorCore::ScanAll() {
  size_t read = 0;
  for (Pid pid : reader_.ListProcesses()) {
    if (auto snapshot = reader_.Read(pid); snapshot.ok()) processes_.Merge(*snapshot);
    // Events go on meanwhile: their ring must not overrun before the first poll.
    if (++read % 64 == 0) probes_.DrainSideband(processes_);
  }
  probes_.DrainSideband(processes_);
}

void CollectorCore::Poll() {
  DrainProbes();
  RetryHeld(/*force=*/false);
  if (processes_.TakeLost()) SweepAfterLoss();
  processes_.DropExited(clock_.Monotonic());
}

void CollectorCore::DrainProbes() {
  drained_.clear();
  order_.clear();
  next_ = 0;
  probes_.DrainSamples([this](const trib_sample& record) {
    size_t offset = drained_.size(), words = WordsOf(record);
    drained_.resize(offset + words);
    std::memcpy(drained_.data() + offset, &record, words * sizeof(uint64_t));
    order_.push_back(offset);
  });
  std::stable_sort(order_.begin(), order_.end(),
                   [this](size_t a, size_t b) { return Record(drained_, a).time_ns < Record(drained_, b).time_ns; });
  Merger merger(*this);
  probes_.DrainSideband(merger);
  TakeSamplesBefore(INT64_MAX);
}

void CollectorCore::TakeSamplesBefore(int64_t time_ns) {
  while (next_ < order_.size()) {
    const trib_sample& record = Record(drained_, order_[next_]);
    if (static_cast<int64_t>(record.time_ns) >= time_ns) return;
    Take(record);
    ++next_;
  }
}

void CollectorCore::Take(const trib_sample& record) {
  MonotonicNs time{static_cast<int64_t>(record.time_ns)};
  ProcessRunPtr run =
      processes_.ForSample(Pid{static_cast<int32_t>(record.pid)}, static_cast<int64_t>(record.start_time_ns), time);
  if (IsKernelThread(record)) run->complete = run->scanned = true, run->stale = false;
  if (run->comm.empty() && record.pid == record.tid) run->comm = CommOf(record);
  if (TryAdd(record, *run, nullptr, /*force=*/false)) return;
  size_t words = WordsOf(record);
  if (held_.size() >= options_.held_samples_max || held_bytes_ + words * sizeof(uint64_t) > options_.held_bytes_max) {
    AddLost(LossReason::kHoldOverflow, 1);
    return;
  }
  held_total_.Add();
  held_bytes_ += words * sizeof(uint64_t);
  const auto* begin = reinterpret_cast<const uint64_t*>(&record);
  // A table that is not to be trusted is about to be replaced: it would only mislead.
  auto mappings = run->NeedsScan() ? nullptr : run->mappings.snapshot();
  Held held;
  held.words.assign(begin, begin + words);
  held.mappings = std::move(mappings);
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
    const trib_sample& record = Record(held.words, 0);
    bool expired = force || now >= held.until;
    if (!expired && held.for_mapping_only && held.mapping_changes == held.run->mapping_changes) {
      still.push_back(std::move(held));
      continue;
    }
    if (!TryAdd(record, *held.run, held.mappings.get(), expired)) {
      held.for_mapping_only = waits_for_mapping_only_;
      held.mapping_changes = held.run->mapping_changes;
      still.push_back(std::move(held));
      continue;
    }
    held_bytes_ -= held.words.size() * sizeof(uint64_t);
  }
  held_ = std::move(still);
}

bool CollectorCore::TryAdd(const trib_sample& record, ProcessRun& run, const MappingTable::List* mappings, bool force) {
  bool wait = AwaitCgroup(record, run);
  if (run.executable != nullptr && !run.executable->id.known()) wait |= AwaitExecutable(run.executable);
  resolver_.Resolve(
      StackOf(record), run, mappings, [this](const CodeFilePtr& executable) { ReadExecutable(executable); },
      &resolved_);
  wait |= resolved_.wants_executable;
  bool uncovered = !resolved_.uncovered_pages.empty();
  wait |= AwaitScan(run, uncovered);
  waits_for_mapping_only_ = !wait;
  wait |= uncovered;
  if (wait && !force) return false;
  if (wait) hold_expired_.Add();
  for (uint64_t page : resolved_.uncovered_pages) {
    if (run.uncovered_pages.size() < ProcessRun::kUncoveredPagesMax) run.uncovered_pages.insert(page);
  }
  NamedSample sample{MonotonicNs{static_cast<int64_t>(record.time_ns)}, Tid{static_cast<int32_t>(record.tid)},
                     CommOf(record), static_cast<uint16_t>(record.cpu), record.period_ns};
  batcher_.Add(sample, run, resolved_, [this] { return ReadAccounting(); });
  return true;
}

bool CollectorCore::AwaitScan(ProcessRun& run, bool uncovered) {
  if (run.scan_running) return true;
  // Of a run that exec has replaced, /proc shows nothing any more.
  if (!(run.NeedsScan() || uncovered) || run.exited) return false;
  ProcessRunPtr current = processes_.Find(run.pid);
  if (current.get() != &run) return false;
  MonotonicNs now = clock_.Monotonic();
  // A table that was followed without a loss has every mapping: looking again seldom helps.
  int64_t again_ns = run.NeedsScan() ? options_.scan_again_ns : 12 * options_.scan_again_ns;
  if (run.last_scan.value != 0 && now.value - run.last_scan.value < again_ns) return false;
  if (!TakeScanToken()) return true;
  auto snapshot = std::make_shared<absl::StatusOr<ProcSnapshot>>(absl::UnknownError(""));
  std::weak_ptr<bool> alive = alive_;
  bool taken = executor_.Submit([this_reader = reader_, pid = run.pid, snapshot] { *snapshot = this_reader.Read(pid); },
                                [this, current, snapshot, now, alive] {
                                  if (alive.expired()) return;
                                  current->scan_running = false;
                                  current->last_scan = now;
                                  if (snapshot->ok()) processes_.Merge(**snapshot);
                                });
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

bool CollectorCore::AwaitCgroup(const trib_sample& record, ProcessRun& run) {
  if (run.cgroup_known && run.cgroup_v2_id == record.cgroup_v2_id && run.cgroup_v1_id == record.cgroup_v1_id) {
    return false;
  }
  const CgroupName* name = cgroups_.Find({record.cgroup_v2_id, record.cgroup_v1_id}, run.pid);
  if (name == nullptr) return true;
  run.cgroup_known = true;
  run.cgroup_v2_id = record.cgroup_v2_id;
  run.cgroup_v1_id = record.cgroup_v1_id;
  run.cgroup_path = name->path;
  run.container_id = name->container_id;
  run.interned_generation = 0;
  return false;
}

bool CollectorCore::AwaitExecutable(const CodeFilePtr& executable) {
  if (executable->state == CodeFile::State::kUnread) ReadExecutable(executable);
  return executable->state == CodeFile::State::kReading;
}

void CollectorCore::ReadExecutable(const CodeFilePtr& executable) {
  struct Reading {
    FileKey key;
    std::vector<FileLocation> locations;
    bool ok = false;
    ExecutableId id;
    std::vector<ElfSegment> segments;
  };
  auto reading = std::make_shared<Reading>();
  reading->key = executable->key;
  reading->locations = executable->locations;
  std::weak_ptr<bool> alive = alive_;
  bool taken = executor_.Submit(
      [reading, proc_root = options_.proc_root] {
        auto opened = OpenCodeFile(proc_root, reading->key, reading->locations);
        if (!opened.ok()) return;
        reading->ok = true;
        reading->id = opened->id;
        reading->segments = opened->file->segments();
      },
      [this, reading, executable, alive] {
        if (alive.expired()) return;
        executable->state = reading->ok ? CodeFile::State::kReady : CodeFile::State::kFailed;
        if (!reading->ok) return;
        executable->id = reading->id;
        executable->segments = std::move(reading->segments);
        code_files_.Identified(*executable);
      });
  if (taken) executable->state = CodeFile::State::kReading;
}

void CollectorCore::SweepAfterLoss() {
  auto pids = std::make_shared<std::vector<Pid>>();
  MonotonicNs now = clock_.Monotonic();
  std::weak_ptr<bool> alive = alive_;
  executor_.Submit([reader = reader_, pids] { *pids = reader.ListProcesses(); },
                   [this, pids, now, alive] {
                     if (!alive.expired() && !pids->empty()) processes_.MergeList(*pids, now);
                   });
}

void CollectorCore::FlushBatch() { batcher_.Flush(ReadAccounting()); }

void CollectorCore::StopSampling() {
  probes_.StopSampling();
  DrainProbes();
}

void CollectorCore::FinalBatch() {
  DrainProbes();
  RetryHeld(/*force=*/true);
  FlushBatch();
}

Accounting CollectorCore::ReadAccounting() {
  Accounting accounting = probes_.ReadAccounting();
  for (size_t i = 0; i < kLossReasonCount; ++i) accounting.lost[i] += lost_[i];
  return accounting;
}

}  // namespace tributary
