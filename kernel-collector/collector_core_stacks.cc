#include "kernel-collector/collector_core.h"
#include "kernel-collector/processes/code_file_reader.h"
#include "kernel-collector/unwind/stack_ending.h"

namespace tributary {

bool CollectorCore::ResolveStack(const SampleRecord& record, size_t frames_to_trust, ProcessRun& run,
                                 const MappingTable::List* mappings, MayRead may_read) {
  const trib_sample& sample = *record.sample;
  const MonotonicNs time{static_cast<int64_t>(sample.time_ns)};
  auto unread = [this](const CodeFilePtr& executable) { ReadExecutable(executable); };
  unwinder_.Walk(record, frames_to_trust, run, mappings, unread, &walked_);
  resolver_.Resolve(RawStack{record.kernel(), walked_.user, sample.flags, time, may_read == MayRead::kYes}, run,
                    mappings, unread, &resolved_);
  // The kernel gets the present program of the pid, never a program that exec has replaced.
  bool is_current = processes_.Find(run.pid).get() == &run && !run.exited;
  if (is_current && run.complete && !run.stale) unwinder_.Learn(sample, run);

  const bool at_start = CutAboveStart();
  resolved_.ending = StackEnding(sample, walked_, at_start);
  // The walk ended near the beginning of its stack, without rows. But the function is not a known start, and it does
  // not call the program's own code.
  if (resolved_.ending == Ending::kComplete && walked_.stop != TRIB_STOP_END && !at_start && !CallsTheProgram(run)) {
    resolved_.ending = Ending::kFramePointerLost;
  }
  // Where the chain left all code, the address is no caller; a broken chain pointed to it.
  if (resolved_.ending == Ending::kNoMapping && walked_.user.size() > 1 &&
      resolved_.frames.front().kind == FrameKind::kUnknown) {
    resolved_.frames.erase(resolved_.frames.begin());
  }
  unnamed_frames_ = mixer_.Mix({.chains = record.chains,
                                .time = time,
                                .executable = record.resume != nullptr ? &record.resume->executable : nullptr,
                                .may_read = may_read},
                               run, &resolved_);
  return !walked_.wants_more && !resolved_.wants_executable;
}

bool CollectorCore::IsStart(const ResolvedFrame& frame) const {
  return frame.kind == FrameKind::kNative && frame.executable != nullptr &&
         unwinder_.IsStart(*frame.executable, LookupAddress(frame.address, frame.is_caller));
}

// An address above the function where a thread starts is no caller, but a leftover on its stack. Go's clone leaves the
// stack that way, without a row that says so. This function cuts such an address. Returns true if a start function is
// the outermost one now.
bool CollectorCore::CutAboveStart() {
  if (walked_.user.empty()) return false;
  if (IsStart(resolved_.frames.front())) return true;
  if (walked_.user.size() < 2 || walked_.stop == TRIB_STOP_END || walked_.stale) return false;
  const auto callee = resolved_.frames.begin() + static_cast<ptrdiff_t>(resolved_.outermost_frames);
  if (!IsStart(*callee)) return false;
  resolved_.frames.erase(resolved_.frames.begin(), callee);
  resolved_.uncovered_pages.clear();  // only the last frame can have them; earlier frames were walked by their code
  walked_.user.pop_back();
  walked_.stop = TRIB_STOP_END;
  walked_.wants_more = false;
  return true;
}

// Start-up code, in the program or in a library, calls main or a thread's function, and both belong to the program.
bool CollectorCore::CallsTheProgram(const ProcessRun& run) const {
  if (run.executable == nullptr) return true;
  return walked_.user.size() > 1 && resolved_.frames[resolved_.outermost_frames].executable == run.executable.get();
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
    RuntimeBinaryPtr runtime;
  };
  auto reading = std::make_shared<Reading>();
  reading->key = executable->key;
  reading->locations = executable->locations;
  bool taken = executor_.Submit(
      [reading, proc_root = options_.proc_root, runtimes = runtime_reader_, path = executable->path] {
        auto opened = OpenCodeFile(proc_root, reading->key, reading->locations);
        if (!opened.ok()) return;
        reading->ok = true;
        reading->id = opened->id;
        reading->segments = opened->file->segments();
        reading->runtime = runtimes->Read(*opened->file, path);
      },
      scope_.Wrap([this, reading, executable] {
        executable->state = reading->ok ? CodeFile::State::kReady : CodeFile::State::kFailed;
        if (!reading->ok) return;
        executable->id = reading->id;
        executable->segments = std::move(reading->segments);
        executable->runtime = std::move(reading->runtime);
        code_files_.Identified(*executable);
      }));
  if (taken) executable->state = CodeFile::State::kReading;
}

}  // namespace tributary
