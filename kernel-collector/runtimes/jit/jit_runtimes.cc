#include "kernel-collector/runtimes/jit/jit_runtimes.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/status.h"
#include "kernel-collector/runtimes/jit/jit_process.h"

namespace tributary {
namespace {

constexpr size_t kProcessBytesMax = JitRuntimes::kProcessMibMax << 20;

// Returns the path of the jitdump that the process has mapped, or "". Runtimes map the file as code, so that profilers
// see it.
std::string DumpPath(const MappingTable::List& mappings) {
  for (const Mapping& mapping : mappings) {
    if (mapping.executable == nullptr) continue;
    const std::string_view path = mapping.executable->path;
    const std::string_view name = path.substr(path.rfind('/') + 1);
    if (name.starts_with("jit-") && name.ends_with(".dump")) return std::string(path);
  }
  return "";
}

}  // namespace

struct JitRuntimes::Reading {
  std::shared_ptr<JitProcess> process;
  std::shared_ptr<JitReader> reader;
  JitReader::Request request;
  JitReader::Result result;
};

JitRuntimes::JitRuntimes(std::string proc_root, Executor& executor, const Clock& clock, Metrics& metrics)
    : proc_root_(std::move(proc_root)),
      executor_(executor),
      clock_(clock),
      earned_at_(clock.Monotonic()),
      readings_(metrics.AddCounter("tributary_collector_jit_readings_total",
                                   "How often the files were read in which a process names its generated code (perf "
                                   "map and jitdump)")),
      read_bytes_(metrics.AddCounter("tributary_collector_jit_read_bytes_total",
                                     "Bytes that were read from perf maps and jitdumps")),
      malformed_(metrics.AddCounter("tributary_collector_jit_malformed_total",
                                    "Malformed lines of perf maps and malformed records of jitdumps")),
      functions_refused_(metrics.AddCounter(
          "tributary_collector_jit_functions_refused_total",
          "Functions of perf maps and jitdumps that were ignored, because the memory for names was full")),
      maps_refused_(metrics.AddCounter("tributary_collector_jit_files_refused_total",
                                       "How often a perf map or a jitdump was not used or not used completely, by kind",
                                       {{"file", "perf_map"}})),
      dumps_refused_(metrics.AddCounter(
          "tributary_collector_jit_files_refused_total",
          "How often a perf map or a jitdump was not used or not used completely, by kind", {{"file", "jitdump"}})),
      unnamed_(metrics.AddCounter("tributary_collector_jit_unnamed_frames_total",
                                  "Frames in generated code for which neither a perf map nor a jitdump had a name")),
      memory_(metrics.AddGauge("tributary_collector_jit_memory_bytes", "Memory for the names of generated code")) {}

JitRuntimes::~JitRuntimes() = default;

std::shared_ptr<const Runtime> JitRuntimes::Make(const ProcessRun& run) {
  return std::make_shared<JitProcess>(*this, run.pid, names_memory_);
}

void JitRuntimes::EarnBytes() {
  const MonotonicNs now = clock_.Monotonic();
  const int64_t earned = (now.value - earned_at_.value) / kNsPerMs * kReadBytesPerSecond / 1000;
  if (earned <= 0) return;
  AddBytesToRead(earned);
  earned_at_ = now;
}

void JitRuntimes::AddBytesToRead(int64_t bytes) { bytes_to_read_ = std::min(bytes_to_read_ + bytes, kReadBytesBurst); }

void JitRuntimes::Tick(ProcessTable& processes) {
  for (const auto& reading : std::exchange(finished_, {})) Finish(*reading, processes);
  for (const auto& waiting : std::exchange(children_, {})) {
    if (const auto child = waiting.lock()) AdoptNames(*child);
  }
  EarnBytes();
  std::deque<std::weak_ptr<JitProcess>> still;
  while (!wanted_.empty()) {
    const std::shared_ptr<JitProcess> process = wanted_.front().lock();
    wanted_.pop_front();
    if (process != nullptr && !Start(process, processes)) still.push_back(process);
  }
  wanted_ = std::move(still);
  memory_.Set(static_cast<double>(names_memory_->used()));
}

// A forked process runs its parent's code. Its own files name only what it has generated since. Returns null if the
// process was not forked, or if its parent has ended.
ProcessRunPtr JitRuntimes::FindParent(const ProcessRun& run, const ProcessTable& processes) const {
  if (run.began.value == 0 || run.exec_sequence != 0) return nullptr;
  ProcessRunPtr parent = processes.Find(run.parent);
  return parent != nullptr && parent->began <= run.began ? parent : nullptr;
}

// The caller must check that the parent is in the same container: another one may have opted out of profiling.
void JitRuntimes::SetParent(JitProcess& process, const ProcessRun& run, ProcessRun& parent) {
  if (parent.generated_code == nullptr) parent.generated_code = Make(parent);
  // All runtimes of generated code are made by Make.
  process.parent_ =
      std::const_pointer_cast<JitProcess>(std::static_pointer_cast<const JitProcess>(parent.generated_code));
  process.forked_at_ = run.began;
  AdoptNames(process);
}

// Gives a forked process the names of its parent, as soon as they were read after the fork. Names that the parent adds
// later are of its own code only.
void JitRuntimes::AdoptNames(JitProcess& child) {
  const std::shared_ptr<JitProcess> parent = child.parent_;
  const bool is_soon = parent->due_.value <= clock_.Monotonic().value + JitProcess::kWaitNs;
  if (parent->state_ != JitProcess::State::kEnded && parent->read_at_ < child.forked_at_ && is_soon) {
    parent->Want();
    if (children_.size() < kWaitingMax) return children_.push_back(child.weak_from_this());
  }
  child.parent_ = nullptr;
  if (parent->names_->forks >= JitNames::kForksMax) return;
  auto names = std::make_shared<JitNames>(*child.names_);
  names->parent = parent->names_;
  names->forks = parent->names_->forks + 1;
  child.names_ = std::move(names);
}

bool JitRuntimes::Start(const std::shared_ptr<JitProcess>& process, ProcessTable& processes) {
  const ProcessRunPtr run = processes.Find(process->pid_);
  if (run == nullptr || run->exited || run->generated_code != process) {
    process->state_ = JitProcess::State::kEnded;
    return true;
  }
  Pid unsure_parent;
  if (!process->is_parent_known_) {
    const ProcessRunPtr parent = FindParent(*run, processes);
    // A process without samples has no known cgroup. Then the reading compares the containers.
    if (parent != nullptr && !(run->cgroup_known && parent->cgroup_known)) {
      unsure_parent = parent->pid;
    } else {
      process->is_parent_known_ = true;
      if (parent != nullptr && parent->container_id == run->container_id) SetParent(*process, *run, *parent);
    }
  }
  if (clock_.Monotonic() < process->due_ || running_ >= kReadingsMax || bytes_to_read_ < kReadBytesMin) return false;
  if (std::string path = DumpPath(*run->mappings.snapshot()); !path.empty()) process->dump_path_ = std::move(path);
  auto reading = std::make_shared<Reading>();
  reading->process = process;
  reading->reader = process->reader_;
  reading->request = {.proc_root = proc_root_,
                      .pid = process->pid_,
                      .start_ticks = run->start_ticks,
                      .dump_path = process->dump_path_,
                      .parent = unsure_parent,
                      // Most files are small. So a part of the bytes is left for other readings.
                      .bytes_max = std::clamp(static_cast<uint64_t>(bytes_to_read_ / 4),
                                              static_cast<uint64_t>(kReadBytesMin), JitReader::kReadBytesMax),
                      .memory_bytes_max = kProcessBytesMax,
                      .wants_areas = process->wants_areas_ && clock_.Monotonic() >= process->areas_due_};
  if (run->start_ticks == 0 && run->start_time_ns != 0) {
    reading->request.start_ticks = static_cast<uint64_t>(run->start_time_ns / kNsPerTick);
  }
  if (!executor_.Submit(
          [reading, &clock = clock_] { reading->result = reading->reader->Read(reading->request, clock); },
          scope_.Wrap([this, reading] { finished_.push_back(reading); }))) {
    return false;
  }
  if (reading->request.wants_areas) {
    process->wants_areas_ = false;
    process->areas_due_ = MonotonicNs{clock_.Monotonic().value + kReadAgainMaxNs};
  }
  process->state_ = JitProcess::State::kReading;
  bytes_to_read_ -= static_cast<int64_t>(reading->request.bytes_max);
  ++running_;
  readings_.Add();
  return true;
}

// Counts and logs each refusal of a file once, until its reason changes.
void JitRuntimes::NoteRefused(const JitProcess& process, const absl::Status& status, Counter& counter,
                              std::string* last) {
  const std::string refusal = status.ok() || absl::IsNotFound(status) ? "" : Message(status);
  if (std::exchange(*last, refusal) == refusal || refusal.empty()) return;
  counter.Add();
  if (uint64_t suppressed; log_limit_.Allow(clock_.Monotonic(), &suppressed)) {
    LogInfo("a file with names of generated code is not used pid={} cause=\"{}\" suppressed={}", process.pid_.value,
            refusal, suppressed);
  }
}

void JitRuntimes::Finish(Reading& reading, const ProcessTable& processes) {
  // The executor may destroy the reading on another thread, which must not destroy the process.
  const std::shared_ptr<JitProcess> owned = std::move(reading.process);
  JitProcess& process = *owned;
  JitReader::Result& result = reading.result;
  --running_;
  AddBytesToRead(static_cast<int64_t>(reading.request.bytes_max - result.bytes));
  read_bytes_.Add(result.bytes);
  malformed_.Add(result.malformed);
  functions_refused_.Add(result.refused);
  NoteRefused(process, result.map, maps_refused_, &process.map_refusal_);
  NoteRefused(process, result.dump, dumps_refused_, &process.dump_refusal_);
  // A run that began before the reading's end, by an exec or under the same pid, may be the run that was read.
  const ProcessRunPtr run = processes.Find(process.pid_);
  const bool is_run = run != nullptr && run->generated_code.get() == &process;
  if (!result.process.ok() || !is_run || (run->exited && run->last_seen <= result.ended)) {
    process.state_ = JitProcess::State::kEnded;
    return;
  }
  auto names = std::make_shared<JitNames>();
  names->dump = std::move(result.dump_names);
  names->map = std::move(result.map_names);
  names->areas = reading.request.wants_areas ? std::move(result.areas) : process.names_->areas;
  names->parent = process.names_->parent;
  names->forks = process.names_->forks;
  process.names_ = std::move(names);
  process.state_ = JitProcess::State::kIdle;
  if (result.grew) process.unnamed_pages_.clear();
  if (result.is_complete) process.read_at_ = result.began;
  if (reading.request.parent.value != 0) {
    process.is_parent_known_ = true;
    const ProcessRunPtr parent = result.is_in_parents_container ? FindParent(*run, processes) : nullptr;
    if (parent != nullptr) SetParent(process, *run, *parent);
  }
  const bool has_file = !absl::IsNotFound(result.map) || !absl::IsNotFound(result.dump);
  process.interval_ns_ = has_file ? kReadAgainNs : std::min(2 * process.interval_ns_, kReadAgainMaxNs);
  process.due_ = result.is_complete ? MonotonicNs{result.ended.value + process.interval_ns_} : MonotonicNs{};
}

}  // namespace tributary
