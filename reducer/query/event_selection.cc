#include "reducer/query/event_selection.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/status.h"
#include "profile/cgroup_path.h"

namespace tributary {
namespace {

// Asking whether a query is cancelled reads a clock, which takes as long as reading a few events.
constexpr size_t kEventsPerCheck = 256;

}  // namespace

absl::StatusOr<EventSelection> EventSelection::Make(const QueryContext& context) {
  EventSelection selection(context.resources.get());
  for (const Selector::Matcher& matcher : context.request.selector.matchers()) {
    const std::optional<Label> label = FindLabel(matcher.label);
    if (label && IsThreadLabel(*label)) {
      return Error(absl::StatusCode::kInvalidArgument,
                   "query: process events belong to whole processes, not to threads: remove the thread labels from the "
                   "selector");
    }
    const bool has_metadata = selection.resources_ != nullptr;
    if (label && MachineMatcher::IsFor(*label, has_metadata)) selection.of_machine_.Add(*label, matcher);
    if (label && (!has_metadata || !IsHostLabel(*label))) {
      selection.of_process_.push_back({*label, &matcher});
    } else {
      selection.of_resource_.push_back(&matcher);
    }
  }
  return selection;
}

absl::StatusOr<store::ScanFilter> EventSelection::FilterOf(store::StoreReader& reader) const {
  if (of_machine_.empty()) return store::ScanFilter();
  ASSIGN_OR_RETURN(const auto machines, reader.ListMachines());
  return of_machine_.FilterOf(machines);
}

const store::ProcessRow& EventSelection::ProcessOf(const store::ProcessEventRow& event) {
  process_.node_id = event.node_id;
  process_.host_name = event.host_name;
  process_.pid = event.pid;
  process_.parent = event.parent;
  process_.start_time_ns = event.start_time_ns;
  process_.comm = event.name;
  process_.executable_path = event.executable_path;
  process_.container_id = event.container_id;
  process_.cgroup_path = event.cgroup_path;
  return process_;
}

bool EventSelection::HoldsResource(const Attributes& attributes) const {
  return std::all_of(of_resource_.begin(), of_resource_.end(), [&](const Selector::Matcher* matcher) {
    const auto it = std::find_if(attributes.begin(), attributes.end(),
                                 [&](const Attribute& a) { return IsNormalizedAs(a.key, matcher->label); });
    return matcher->Holds(it == attributes.end() ? std::string_view() : std::string_view(it->value));
  });
}

bool EventSelection::Has(const store::ProcessEventRow& event) {
  if (of_process_.empty() && of_resource_.empty()) return true;
  const store::ProcessRow& process = ProcessOf(event);
  for (const LabelMatcher& of : of_process_) {
    if (!of.matcher->Holds(LabelValue(of.label, process))) return false;
  }
  if (of_resource_.empty()) return true;
  if (resources_ == nullptr) return HoldsResource({});
  const std::shared_ptr<const ResourceStates> states = resources_->Of(process);
  if (std::exchange(generation_, resources_->generation()) != resources_->generation()) answers_.clear();
  const std::shared_ptr<const Resource>& resource = ResourceAt(*states, event.time);
  if (const auto it = answers_.find(resource.get()); it != answers_.end()) return it->second.selected;
  const bool selected = HoldsResource(resource->attributes);
  answers_.emplace(resource.get(), Answer{resource, selected});
  return selected;
}

EventPlace EventSelection::PlaceOf(const store::ProcessEventRow& event) {
  CgroupPath cgroup = ParseCgroupPath(event.cgroup_path);
  EventPlace place{.container_id = std::string(event.container_id), .unit = std::move(cgroup.systemd_unit)};
  if (place.container_id.empty()) place.container_id = std::move(cgroup.container_id);
  if (resources_ == nullptr || (place.container_id.empty() && cgroup.pod_uid.empty())) return place;
  const std::shared_ptr<const ResourceStates> states = resources_->Of(ProcessOf(event));
  const Attributes& attributes = ResourceAt(*states, event.time)->attributes;
  place.container = FindAttribute(attributes, "k8s.container.name");
  if (place.container.empty()) place.container = FindAttribute(attributes, "container.name");
  place.pod = FindAttribute(attributes, "k8s.pod.name");
  place.name_space = FindAttribute(attributes, "k8s.namespace.name");
  return place;
}

absl::Status ScanEvents(store::StoreReader& reader, const QueryRequest& request, store::TimeRange range,
                        const store::ScanFilter& filter,
                        absl::FunctionRef<absl::Status(const store::ProcessEventRow&)> visit) {
  RETURN_IF_ERROR(CheckCancelled(request));
  size_t visited = 0;
  return reader.ScanEvents(range, filter, [&](const store::ProcessEventRow& event) -> absl::Status {
    if (++visited % kEventsPerCheck == 0) RETURN_IF_ERROR(CheckCancelled(request));
    return visit(event);
  });
}

}  // namespace tributary
