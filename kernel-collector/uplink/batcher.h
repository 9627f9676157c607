#pragma once

#include <memory>
#include <string_view>

#include "base/clock.h"
#include "base/log.h"
#include "kernel-collector/events/tracked_event.h"
#include "kernel-collector/processes/process_table.h"
#include "kernel-collector/processes/stack_resolver.h"
#include "profile/batch.h"
#include "profile/dictionary.h"

namespace tributary {

// The data of a sample, except its process and its stack.
struct NamedSample {
  MonotonicNs time;
  Tid tid;
  std::string_view thread_name;
  uint16_t cpu = 0;
  SampleType type = SampleType::kCpu;
  uint64_t value = 0;  // in the unit of its type
};

// Collects samples and process events in batches, and adds the samples' stacks to the dictionary's trie. If the
// dictionary may not have enough space for a sample or an event, the batcher first replaces the dictionary by a copy
// without the least recently used entries. If the copy is nearly full too, the new dictionary is empty. So the limits
// of the dictionary's tables never cut a stack. Loop thread only.
class Batcher {
 public:
  static constexpr size_t kSamplesMax = 50'000;
  // Of the texts that events have added to one dictionary. A user who starts programs with distinct long paths would
  // otherwise fill the whole table of strings, 256 MiB.
  static constexpr size_t kEventTextBytesMax = 16u << 20;

  Batcher(BatchSink& sink, const Clock& clock, DictionaryLimits limits = {});

  // Adds one sample. If the batch or the dictionary is full, first flushes the batch with the result of `accounting`.
  template <typename ReadAccounting>
  void Add(const NamedSample& sample, ProcessRun& run, const ResolvedStack& stack, ReadAccounting&& accounting) {
    if (samples_.size() >= kSamplesMax || !HasRoom(stack.frames.size())) {
      Flush(accounting());
      if (!HasRoom(stack.frames.size())) MakeRoom(stack.frames.size());
    }
    Append(sample, run, stack);
  }

  // Adds one process event, in the same way. A process event refers to no process of the dictionary: most processes are
  // never sampled.
  template <typename ReadAccounting>
  void AddEvent(const TrackedEvent& event, ReadAccounting&& accounting) {
    if (events_.size() >= kProcessEventsPerBatchMax || !HasRoomForEvent()) {
      Flush(accounting());
      if (!HasRoomForEvent()) MakeRoom(0);
    }
    Append(event);
  }

  // Call it when the data of a process has changed. If the dictionary contains the process and has enough space, adds a
  // new definition of the process. The reducer uses the newest definition, also for samples that are already in the
  // current batch.
  void Redefine(ProcessRun& run);

  // Sorts samples and events of the current batch by time, and passes the batch to the sink. An empty batch is passed
  // too, because it contains the accounting.
  void Flush(const Accounting& accounting);

  uint64_t samples_sent() const { return samples_sent_; }  // in flushed batches
  uint64_t events_sent() const { return events_sent_; }    // also in flushed batches, those in sums included
  size_t samples_waiting() const { return samples_.size(); }
  uint64_t batches() const { return sequence_; }
  uint64_t evictions() const { return evictions_; }
  const Dictionary& dictionary() const { return *dictionary_; }

 private:
  bool HasRoom(size_t frames) const;
  bool HasRoomForEvent() const { return HasRoom(0) && event_text_bytes_ < kEventTextBytesMax; }
  void StartDictionary();
  void MakeRoom(size_t frames);
  void Append(const NamedSample& sample, ProcessRun& run, const ResolvedStack& stack);
  void Append(const TrackedEvent& event);
  StringRef InternEventText(std::string_view text);
  Frame Intern(const ResolvedFrame& frame);
  ExecutableRef Intern(CodeFile& executable);
  ProcessRef Intern(ProcessRun& run);

  BatchSink& sink_;
  const Clock& clock_;
  DictionaryLimits limits_;
  std::shared_ptr<Dictionary> dictionary_;
  uint64_t generation_ = 0;
  size_t event_text_bytes_ = 0;  // that events have added to the dictionary
  uint64_t sequence_ = 0;
  uint64_t samples_sent_ = 0;
  uint64_t events_sent_ = 0;
  uint64_t evictions_ = 0;
  std::vector<Sample> samples_;
  std::vector<ProcessEvent> events_;
  std::vector<Frame> frames_;  // of the current sample
  LogLimit refused_log_{kNsPerMinute};
};

}  // namespace tributary
