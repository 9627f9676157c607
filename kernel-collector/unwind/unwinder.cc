#include "kernel-collector/unwind/unwinder.h"

#include <algorithm>

namespace tributary {

Unwinder::Unwinder(UnwindMaps& maps, RuntimeSlots& runtimes, Executor& executor, const Clock& clock, Metrics& metrics,
                   UnwindTables::Options options, std::shared_ptr<UnwindCompiler> compiler)
    : tables_(maps, executor, clock, metrics, std::move(options), std::move(compiler)),
      publisher_(maps, tables_, runtimes, executor, clock, metrics),
      walker_(tables_),
      continued_(metrics.AddCounter("tributary_collector_stacks_continued_total",
                                    "Stacks whose walk stopped in the kernel and was continued by the collector, over "
                                    "a copy of the stack's memory")),
      continued_short_(metrics.AddCounter("tributary_collector_stacks_copied_short_total",
                                          "Stacks that the collector could not walk to their end, because they were "
                                          "longer than the copy of the stack's memory")),
      stale_(metrics.AddCounter("tributary_collector_stacks_stale_total",
                                "Stacks that were cut, because the kernel walked them with a mapping that the process "
                                "had already replaced")) {}

void Unwinder::Walk(const SampleRecord& record, size_t frames_to_trust, const ProcessRun& run,
                    const MappingTable::List* snapshot, const std::function<void(const CodeFilePtr&)>& unread,
                    WalkedStack* out) {
  const trib_sample& sample = *record.sample;
  auto user = record.frames.subspan(sample.kernel_frames);
  out->user.assign(user.begin(), user.end());
  out->stop = static_cast<trib_stop>(sample.stop);
  out->wants_more = false;
  out->stale = frames_to_trust != kAllFrames;
  if (out->stale) {
    out->user.resize(std::min(frames_to_trust, out->user.size()));
    return;
  }
  if (record.resume == nullptr) return;
  auto find = [&](uint64_t address) {
    const Mapping* mapping = snapshot != nullptr ? MappingTable::Find(*snapshot, address) : nullptr;
    return mapping != nullptr ? mapping : run.mappings.Find(address);
  };
  walker_.Continue(record, find, unread, &result_);
  out->user.insert(out->user.end(), result_.frames.begin(), result_.frames.end());
  switch (result_.outcome) {
    case StackWalker::Outcome::kDone:
      out->stop = result_.stop;
      break;
    case StackWalker::Outcome::kWantsRows:
    case StackWalker::Outcome::kWantsFile:
      out->stop = TRIB_STOP_NO_PAGE;
      out->wants_more = true;
      return;
    case StackWalker::Outcome::kWantsMapping:
      out->stop = TRIB_STOP_NO_MAPPING;
      return;
  }
  continued_.Add();
  if (out->stop == TRIB_STOP_NO_PAGE) continued_short_.Add();
}

// The rows that led from such a frame to its caller belonged to a file that was no longer mapped there, so the frames
// beyond it cannot be trusted. For a table that was replaced long ago, it is unknown which mappings it contained, so it
// counts as made at time 0.
size_t Unwinder::FramesToTrust(const SampleRecord& record, const ProcessRun& run) {
  const trib_sample& sample = *record.sample;
  if (sample.table == 0 || run.replaced.empty()) return kAllFrames;
  const MonotonicNs known_at = publisher_.MadeAt(sample.table).value_or(MonotonicNs{0});
  auto user = record.frames.subspan(sample.kernel_frames);
  size_t trusted = kAllFrames;
  for (const ProcessRun::Replaced& replaced : run.replaced) {
    if (replaced.time <= known_at || replaced.time.value > static_cast<int64_t>(sample.time_ns)) continue;
    for (size_t i = 0; i < std::min(trusted, user.size()); ++i) {
      uint64_t address = user[i] & ~TRIB_FRAME_INTERRUPTED;
      if (address < replaced.start || address > replaced.end) continue;
      trusted = i + 1;
      break;
    }
  }
  if (trusted != kAllFrames) stale_.Add();
  return trusted;
}

void Unwinder::Learn(const trib_sample& sample, ProcessRun& run) {
  if (sample.table != 0) publisher_.Touch(run.pid, MonotonicNs{static_cast<int64_t>(sample.time_ns)});
  if (sample.stop != TRIB_STOP_NO_PROCESS && sample.stop != TRIB_STOP_NO_MAPPING) return;
  publisher_.Publish(run, sample.start_time_ns, sample.exec_id);
}

}  // namespace tributary
