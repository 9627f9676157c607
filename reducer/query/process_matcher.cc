#include "reducer/query/process_matcher.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "base/status.h"

namespace tributary {
namespace {

// Bytes of a result for a text in a matcher's hash table, and of a list of spans without its spans.
constexpr size_t kKnownBytes = 16, kSpansBytes = 96;

const ProcessMatcher::Spans& Never() {
  static const ProcessMatcher::Spans kNever = {{kTimeBegin, false}};
  return kNever;
}
const ProcessMatcher::Spans& Always() {
  static const ProcessMatcher::Spans kAlways = {{kTimeBegin, true}};
  return kAlways;
}

// The text of a process that the label is read from.
store::StringId TextIdOf(Label label, const store::ProcessIds& process) {
  if (label == Label::kProcessCommand) return process.comm;
  if (label == Label::kContainerId) return process.container_id;
  return process.executable_path;
}

// Returns a row in which all texts that a label may be read from have this value.
store::ProcessRow RowWith(std::string_view text) {
  store::ProcessRow row;
  row.comm = row.executable_path = row.container_id = text;
  return row;
}

}  // namespace

ProcessMatcher::ProcessMatcher(ProcessResources resources, const QueryContext& context)
    : context_(&context), resources_(std::move(resources)) {
  const bool has_metadata = context.resources != nullptr;
  for (const Selector::Matcher& matcher : context.request.selector.matchers()) {
    const std::optional<Label> label = FindLabel(matcher.label);
    if (!label || (has_metadata && IsHostLabel(*label))) {
      of_resource_.push_back(&matcher);
    } else if (IsThreadLabel(*label)) {
      of_thread_.push_back({*label, &matcher});
    } else if (MachineMatcher::IsFor(*label, has_metadata)) {
      of_machine_.Add(*label, matcher);
    } else {
      (*label == Label::kProcessPid ? of_pid_ : of_text_).push_back({*label, &matcher});
    }
  }
}

absl::StatusOr<ProcessMatcher> ProcessMatcher::Make(store::StoreReader& reader, const QueryContext& context) {
  ASSIGN_OR_RETURN(ProcessResources resources, ProcessResources::Make(reader, context));
  ProcessMatcher matcher(std::move(resources), context);
  if (matcher.of_machine_.empty()) return matcher;
  for (const auto& [no, row] : matcher.resources_.machines()) {
    matcher.selected_machines_[no] = matcher.of_machine_.Holds(row);
  }
  return matcher;
}

bool ProcessMatcher::HoldsUnknown() const {
  const auto holds_none = [](const LabelMatcher& of) { return of.matcher->Holds(""); };
  return of_machine_.HoldsUnknown() && std::ranges::all_of(of_pid_, holds_none) &&
         std::ranges::all_of(of_text_, holds_none) && HoldsResource({});
}

bool ProcessMatcher::HoldsUnknownThread() const {
  return std::ranges::all_of(of_thread_, [](const LabelMatcher& of) { return of.matcher->Holds(""); });
}

bool ProcessMatcher::HoldsResource(const Attributes& attributes) const {
  return std::ranges::all_of(of_resource_, [&](const Selector::Matcher* matcher) {
    const auto found =
        std::ranges::find_if(attributes, [&](const Attribute& a) { return IsNormalizedAs(a.key, matcher->label); });
    return matcher->Holds(found == attributes.end() ? std::string_view() : std::string_view(found->value));
  });
}

absl::StatusOr<bool> ProcessMatcher::HoldsText(LabelMatcher& of, const store::ProcessIds& process) {
  const store::StringId id = TextIdOf(of.label, process);
  const auto [known, added] = of.known.try_emplace(id);
  if (!added) return known->second;
  known_bytes_ += kKnownBytes;
  ASSIGN_OR_RETURN(const std::string_view text, resources_.TextOf(id));
  known->second = of.matcher->Holds(LabelValue(of.label, RowWith(text)));
  return known->second;
}

absl::StatusOr<bool> ProcessMatcher::HoldsProcess(const store::ProcessIds& process) {
  if (!of_machine_.empty()) {
    const auto machine = selected_machines_.find(process.machine);
    if (machine == selected_machines_.end() ? !of_machine_.HoldsUnknown() : !machine->second) return false;
  }
  for (LabelMatcher& of : of_text_) {
    ASSIGN_OR_RETURN(const bool holds, HoldsText(of, process));
    if (!holds) return false;
  }
  if (of_pid_.empty()) return true;
  store::ProcessRow row;
  row.pid = process.pid;
  return std::ranges::all_of(of_pid_,
                             [&row](const LabelMatcher& of) { return of.matcher->Holds(LabelValue(of.label, row)); });
}

absl::StatusOr<const ProcessMatcher::Spans*> ProcessMatcher::Evaluate(const store::ProcessIds& process) {
  ASSIGN_OR_RETURN(const ResourceStates states, resources_.Join(process));
  Spans spans;
  for (const ResourceState& state : states) {
    const bool selected = HoldsResource(state.resource->attributes);
    if (spans.empty() || spans.back().selected != selected) spans.push_back({state.from, selected});
  }
  if (spans.size() == 1) return spans.front().selected ? &Always() : &Never();
  const auto [known, added] = changing_.insert(std::move(spans));
  if (added) RETURN_IF_ERROR(resources_.Keep(kSpansBytes + known->size() * sizeof(SelectedSpan)));
  return &*known;
}

absl::StatusOr<const ProcessMatcher::Spans*> ProcessMatcher::SpansOfResource(const store::ProcessIds& process) {
  ASSIGN_OR_RETURN(const ProcessResources::Place place, resources_.PlaceOf(process));
  if (place.is_new) {
    ASSIGN_OR_RETURN(const Spans* spans, Evaluate(process));
    of_place_.push_back(spans);
  }
  return of_place_[place.no];
}

absl::StatusOr<const ProcessMatcher::Spans*> ProcessMatcher::SpansOf(const store::ProcessIds& process) {
  ASSIGN_OR_RETURN(const bool holds, HoldsProcess(process));
  if (!holds) return &Never();
  if (of_resource_.empty()) return &Always();
  if (context_->resources == nullptr) return HoldsResource({}) ? &Always() : &Never();
  return SpansOfResource(process);
}

absl::StatusOr<bool> ProcessMatcher::HoldsThread(const store::ThreadIds& thread) {
  store::ThreadRow row;
  row.tid = thread.tid;
  for (LabelMatcher& of : of_thread_) {
    if (of.label == Label::kThreadId) {
      if (!of.matcher->Holds(LabelValue(of.label, row))) return false;
      continue;
    }
    const auto [known, added] = of.known.try_emplace(thread.name);
    if (added) {
      known_bytes_ += kKnownBytes;
      ASSIGN_OR_RETURN(row.name, resources_.TextOf(thread.name));
      known->second = of.matcher->Holds(LabelValue(of.label, row));
    }
    if (!known->second) return false;
  }
  return true;
}

}  // namespace tributary
