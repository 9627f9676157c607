#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "reducer/metadata/labels.h"
#include "reducer/query/event_place.h"
#include "reducer/query/machine_matcher.h"
#include "reducer/query/query_context.h"
#include "reducer/query/selector.h"

namespace tributary {

// Applies a selector to process events, and joins events with metadata. An event has the resource that its container,
// cgroup or machine had at the event's time. The attributes that a process reports about itself (OTEL_*) are not part
// of this resource, because most processes end before anything reads them. Used by one thread.
class EventSelection {
 public:
  // InvalidArgument: the selector has labels of threads. `context` must outlive the EventSelection.
  static absl::StatusOr<EventSelection> Make(const QueryContext& context);

  // Returns a filter that has all machines with selected events. Other events may pass it too.
  absl::StatusOr<store::ScanFilter> FilterOf(store::StoreReader& reader) const;
  bool Has(const store::ProcessEventRow& event);
  EventPlace PlaceOf(const store::ProcessEventRow& event);

 private:
  struct LabelMatcher {
    Label label;
    const Selector::Matcher* matcher;
  };
  struct Answer {
    std::shared_ptr<const Resource> resource;  // kept alive, because its address is the key
    bool selected = false;
  };
  explicit EventSelection(ResourceCache* resources) : resources_(resources) {}
  const store::ProcessRow& ProcessOf(const store::ProcessEventRow& event);
  bool HoldsResource(const Attributes& attributes) const;

  ResourceCache* resources_;
  MachineMatcher of_machine_;  // those of of_process_ that read only the machine
  std::vector<LabelMatcher> of_process_;
  std::vector<const Selector::Matcher*> of_resource_;
  absl::flat_hash_map<const Resource*, Answer> answers_;  // cleared with the cache of resources_
  uint64_t generation_ = 0;                               // of answers_
  store::ProcessRow process_;                             // the event that is looked at, as the joiner takes it
};

// Visits the events of one shard in `range` that `filter` has. Returns DeadlineExceeded if the request is cancelled. A
// caller that reads in EventWindows passes no filter: the windows would grow while the machines are silent, and then be
// too large for the caller's limits.
absl::Status ScanEvents(store::StoreReader& reader, const QueryRequest& request, store::TimeRange range,
                        const store::ScanFilter& filter,
                        absl::FunctionRef<absl::Status(const store::ProcessEventRow&)> visit);

}  // namespace tributary
