#pragma once

#include <memory>
#include <string_view>

#include "base/clock.h"
#include "base/log.h"
#include "kernel-collector/processes/process_table.h"
#include "kernel-collector/processes/stack_resolver.h"
#include "profile/batch.h"
#include "profile/dictionary.h"

namespace tributary {

// A sample with everything it needs, not yet numbered.
struct NamedSample {
  MonotonicNs time;
  Tid tid;
  std::string_view thread_name;
  uint16_t cpu = 0;
  SampleType type = SampleType::kCpu;
  uint64_t value = 0;  // in its type's unit
};

// Walks stacks into the dictionary's trie and fills batches. Before a sample could find the dictionary full it goes on
// with a new one without what was not used for longest, or with an empty one where that makes no room: no stack is ever
// cut by a table's cap. Loop thread only.
class Batcher {
 public:
  static constexpr size_t kSamplesMax = 50'000;

  Batcher(BatchSink& sink, const Clock& clock, DictionaryLimits limits = {});

  // Adds one sample; hands the batch on first when it, or the dictionary, has no room left. `accounting` is only read
  // in that case.
  template <typename ReadAccounting>
  void Add(const NamedSample& sample, ProcessRun& run, const ResolvedStack& stack, ReadAccounting&& accounting) {
    if (samples_.size() >= kSamplesMax || !HasRoom(stack.frames.size())) {
      Flush(accounting());
      if (!HasRoom(stack.frames.size())) MakeRoom(stack.frames.size());
    }
    Append(sample, run, stack);
  }

  // More is known of a process: said of the samples in this batch, too. Their definition stands; of two the later
  // counts.
  void Redefine(ProcessRun& run);

  // Hands on what there is, be it nothing: accounting goes with it. Samples are put in order of time.
  void Flush(const Accounting& accounting);

  uint64_t samples_sent() const { return samples_sent_; }  // in batches handed on
  size_t samples_waiting() const { return samples_.size(); }
  uint64_t batches() const { return sequence_; }
  uint64_t evictions() const { return evictions_; }
  const Dictionary& dictionary() const { return *dictionary_; }

 private:
  bool HasRoom(size_t frames) const;
  void StartDictionary();
  void MakeRoom(size_t frames);
  void Append(const NamedSample& sample, ProcessRun& run, const ResolvedStack& stack);
  Frame Intern(const ResolvedFrame& frame);
  ExecutableRef Intern(CodeFile& executable);
  ProcessRef Intern(ProcessRun& run);

  BatchSink& sink_;
  const Clock& clock_;
  DictionaryLimits limits_;
  std::shared_ptr<Dictionary> dictionary_;
  uint64_t generation_ = 0;
  uint64_t sequence_ = 0;
  uint64_t samples_sent_ = 0;
  uint64_t evictions_ = 0;
  std::vector<Sample> samples_;
  std::vector<Frame> frames_;  // of the sample at hand
  LogLimit refused_log_{kNsPerMinute};
};

}  // namespace tributary
