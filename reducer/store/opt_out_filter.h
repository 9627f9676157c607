#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "profile/process_event.h"
#include "profile/row_batch.h"
#include "reducer/store/session_dictionary.h"

namespace tributary::store {

// The containers and pods whose samples and process events must not be stored (docs/opt-out.md). Any thread.
class OptOutList {
 public:
  // Returns true if nothing is opted out. Costs one read of an atomic.
  virtual bool IsEmpty() const = 0;
  // Returns true if samples of this container must not be stored. `container_id` or `cgroup_path` may be "". Notes that
  // the node has the container, so that the node can be told.
  virtual bool Drops(std::string_view node_id, std::string_view container_id, std::string_view cgroup_path) = 0;

 protected:
  ~OptOutList() = default;
};

// Decides which samples and events of one batch are dropped. Asks the list once for each process of the batch, and not
// at all while nothing is opted out. For the writers of all kinds of stores: a batch that arrives again is not asked
// for, because its samples are ignored.
class OptOutFilter {
 public:
  // `list` may be null: then nothing is dropped. All borrowed objects must outlive the filter.
  OptOutFilter(OptOutList* list, const RowBatch& batch, const SessionDictionary& dictionary);

  bool Drops(const Sample& sample) { return list_ != nullptr && DropsThread(sample.thread); }
  bool Drops(const ProcessEvent& event) { return list_ != nullptr && DropsEvent(event); }

 private:
  enum class Answer : uint8_t { kUnasked, kStored, kDropped };
  bool DropsThread(ThreadRef ref);
  bool DropsEvent(const ProcessEvent& event);

  OptOutList* const list_;  // null: it was empty when the batch began
  const std::string_view node_id_;
  const SessionDictionary& dictionary_;
  std::vector<Answer> processes_;  // index: ProcessRef; empty until the first sample, because events do not use it
  // The last event's texts and the answer: most events come in groups of one container.
  StringRef event_container_, event_cgroup_;
  Answer event_ = Answer::kUnasked;
};

}  // namespace tributary::store
