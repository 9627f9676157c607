#include "kernel-collector/uplink/batcher.h"

#include <algorithm>
#include <span>

#include "base/status.h"
#include "base/utf8.h"
#include "profile/eviction.h"

namespace tributary {
namespace {

// Returns whether at least an eighth of every table is free. Otherwise the next eviction would follow at once.
bool IsRoomy(const Dictionary& d) {
  const DictionaryLimits& max = d.limits();
  auto roomy = [](uint32_t used, uint32_t all) { return used <= all - all / 8; };
  return roomy(d.node_count(), max.nodes_max) && roomy(d.frame_count(), max.frames_max) &&
         roomy(d.string_count(), max.strings_max) && roomy(d.executable_count(), max.executables_max) &&
         roomy(d.process_count(), max.processes_max) && roomy(d.thread_count(), max.threads_max);
}

}  // namespace

Batcher::Batcher(BatchSink& sink, const Clock& clock, DictionaryLimits limits)
    : sink_(sink), clock_(clock), limits_(limits) {
  StartDictionary();
}

void Batcher::StartDictionary() {
  dictionary_ = std::make_shared<Dictionary>(limits_);
  dictionary_->SetNow(static_cast<uint32_t>(sequence_));
  ++generation_;
}

void Batcher::MakeRoom(size_t frames) {
  std::shared_ptr<const Dictionary> full = std::move(dictionary_);
  dictionary_ = EvictOldest(full);
  ++generation_;
  event_text_bytes_ = 0;  // an eviction drops all texts that only events have used
  if (!IsRoomy(*dictionary_) || !HasRoom(frames)) return StartDictionary();
  ++evictions_;
}

bool Batcher::HasRoom(size_t frames) const {
  const Dictionary& d = *dictionary_;
  const DictionaryLimits& limits = d.limits();
  // The maximum that one sample can define. Per frame: a frame with a name, a node, and an executable with its path.
  // Also: its process with five strings and an executable; its thread with a name.
  return d.node_count() + frames < limits.nodes_max && d.frame_count() + frames < limits.frames_max &&
         d.executable_count() + frames + 1 < limits.executables_max &&
         d.string_count() + 2 * frames + 7 < limits.strings_max && d.process_count() + 1 < limits.processes_max &&
         d.thread_count() + 1 < limits.threads_max;
}

ExecutableRef Batcher::Intern(CodeFile& executable) {
  if (executable.interned_generation != generation_) {
    executable.interned = dictionary_->InternExecutable(executable.id, executable.path);
    executable.interned_generation = generation_;
  }
  return executable.interned;
}

Frame Batcher::Intern(const ResolvedFrame& resolved) {
  Frame frame{.kind = resolved.kind,
              .is_caller = resolved.is_caller,
              .address = resolved.address,
              .position = resolved.position};
  if (resolved.executable != nullptr) frame.executable = Intern(*resolved.executable);
  if (!resolved.name.empty()) frame.name = dictionary_->InternString(CutUtf8(resolved.name, kFrameNameBytesMax));
  return frame;
}

ProcessRef Batcher::Intern(ProcessRun& run) {
  bool has_executable = run.executable != nullptr && run.executable->id.known();
  if (run.interned_generation == generation_ && run.interned_executable == has_executable) return run.interned;
  Process process;
  process.key = ProcessKey{run.pid, run.start_time_ns, run.exec_sequence};
  process.parent = run.parent;
  process.comm = dictionary_->InternString(run.comm);
  if (has_executable) process.executable = Intern(*run.executable);
  process.executable_path = dictionary_->InternString(run.executable_path);
  process.container_id = dictionary_->InternString(run.container_id);
  process.cgroup_path = dictionary_->InternString(run.cgroup_path);
  if (run.attributes != nullptr) process.attributes = dictionary_->InternString(*run.attributes);
  run.interned = dictionary_->InternProcess(process);
  run.interned_generation = generation_;
  run.interned_executable = has_executable;
  run.sampled = true;
  return run.interned;
}

void Batcher::Redefine(ProcessRun& run) {
  const bool defined = run.interned_generation == generation_;
  run.interned_generation = 0;
  if (defined && HasRoom(0)) Intern(run);
}

void Batcher::Append(const NamedSample& sample, ProcessRun& run, const ResolvedStack& stack) {
  // Receivers refuse deeper stacks. Only a runtime that adds many frames per address can exceed the limit.
  const std::span<const ResolvedFrame> frames(stack.frames);
  const size_t depth = std::min<size_t>(frames.size(), limits_.stack_depth_max);
  frames_.clear();
  for (const ResolvedFrame& frame : frames.last(depth)) frames_.push_back(Intern(frame));
  Sample out;
  out.time = sample.time;
  out.thread =
      dictionary_->InternThread(Thread{Intern(run), sample.tid, dictionary_->InternString(sample.thread_name)});
  out.node = dictionary_->InternStack(frames_);
  dictionary_->Use(out.node);
  dictionary_->Use(out.thread);
  out.ending = depth == frames.size() ? stack.ending : Ending::kTruncatedDepth;
  out.cpu = sample.cpu;
  out.type = sample.type;
  out.value = sample.value;
  samples_.push_back(out);
}

StringRef Batcher::InternEventText(std::string_view text) {
  const uint32_t before = dictionary_->string_count();
  const StringRef ref = dictionary_->InternString(text);
  if (dictionary_->string_count() > before) event_text_bytes_ += dictionary_->string(ref).size();
  return ref;
}

void Batcher::Append(const TrackedEvent& event) {
  events_.push_back({.time = event.time,
                     .kind = event.kind,
                     .pid = event.process.pid,
                     .parent = event.parent,
                     .start_time_ns = event.process.start_time_ns,
                     .uid = event.uid,
                     .name = InternEventText(event.name),
                     .executable_path = InternEventText(event.names.executable_path),
                     .container_id = InternEventText(event.names.container_id),
                     .cgroup_path = InternEventText(event.names.cgroup_path),
                     .events = event.events,
                     .processes = event.processes,
                     .end = event.end});
}

void Batcher::Flush(const Accounting& accounting) {
  // Samples that waited for their mapping come after younger samples.
  std::stable_sort(samples_.begin(), samples_.end(), [](const Sample& a, const Sample& b) { return a.time < b.time; });
  std::stable_sort(events_.begin(), events_.end(),
                   [](const ProcessEvent& a, const ProcessEvent& b) { return a.time < b.time; });
  Batch batch;
  batch.sequence = ++sequence_;
  dictionary_->SetNow(static_cast<uint32_t>(sequence_));
  batch.clock = clock_.Pair();
  batch.samples = std::exchange(samples_, {});
  batch.events = std::exchange(events_, {});
  batch.accounting = accounting;
  batch.dictionary = dictionary_;
  samples_sent_ += batch.samples.size();
  events_sent_ += CountRecords(batch).events();
  if (absl::Status status = sink_.Take(std::move(batch)); !status.ok()) {
    if (uint64_t held; refused_log_.Allow(clock_.Monotonic(), &held)) {
      LogWarning("a batch was not accepted cause={} suppressed={}", Message(status), held);
    }
  }
}

}  // namespace tributary
