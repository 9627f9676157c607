#pragma once

#include <cstdint>
#include <set>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "reducer/metadata/labels.h"
#include "reducer/query/machine_matcher.h"
#include "reducer/query/process_resources.h"
#include "reducer/query/query_context.h"
#include "reducer/query/selector.h"
#include "reducer/store/store.h"

namespace tributary {

// From `from` on, the process is selected or not selected.
struct SelectedSpan {
  UnixNs from;
  bool selected = false;

  friend auto operator<=>(const SelectedSpan&, const SelectedSpan&) = default;
};

// Evaluates a selector for the processes and threads of one shard. Evaluates each matcher once for each machine, each
// distinct text and each distinct place where processes run, so millions of short processes of a few programs cost a
// few evaluations. Keeps the result for each place, not its resource. Reads no text that no matcher needs. Used by one
// thread.
class ProcessMatcher {
 public:
  using Spans = std::vector<SelectedSpan>;

  // `reader` and `context` must outlive the object.
  static absl::StatusOr<ProcessMatcher> Make(store::StoreReader& reader, const QueryContext& context);

  bool uses_threads() const { return !of_thread_.empty(); }
  // Returns a filter that has all machines with processes for which the matchers may hold.
  store::ScanFilter MachineFilter() const { return of_machine_.FilterOf(resources_.machines()); }
  // Return the results for a process or thread without a description: its labels all count as "".
  bool HoldsUnknown() const;
  bool HoldsUnknownThread() const;

  // Returns from which times on the process is selected or not selected. If this does not change, returns one span. The
  // result is valid as long as the object. ResourceExhausted: the processes have too many different texts and places.
  absl::StatusOr<const Spans*> SpansOf(const store::ProcessIds& process);
  absl::StatusOr<bool> HoldsThread(const store::ThreadIds& thread);

  size_t bytes() const { return resources_.bytes() + known_bytes_; }  // of texts and results that are kept

 private:
  struct LabelMatcher {
    Label label;
    const Selector::Matcher* matcher;
    // For labels of texts: the results, by text.
    absl::flat_hash_map<store::StringId, bool> known{};
  };

  ProcessMatcher(ProcessResources resources, const QueryContext& context);
  absl::StatusOr<bool> HoldsText(LabelMatcher& of, const store::ProcessIds& process);
  absl::StatusOr<bool> HoldsProcess(const store::ProcessIds& process);
  absl::StatusOr<const Spans*> SpansOfResource(const store::ProcessIds& process);
  absl::StatusOr<const Spans*> Evaluate(const store::ProcessIds& process);
  bool HoldsResource(const Attributes& attributes) const;

  const QueryContext* context_;
  ProcessResources resources_;
  absl::flat_hash_map<store::MachineNo, bool> selected_machines_;
  MachineMatcher of_machine_;
  std::vector<LabelMatcher> of_pid_, of_text_, of_thread_;
  size_t known_bytes_ = 0;  // of the results in of_text_ and of_thread_
  std::vector<const Selector::Matcher*> of_resource_;
  std::vector<const Spans*> of_place_;  // by the place's number
  std::set<Spans> changing_;            // of places that are selected at some times only
};

}  // namespace tributary
