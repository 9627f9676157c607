#include "reducer/query/process_matcher.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "base/status.h"

namespace tributary {
namespace {

// Bytes of a result for a text in a matcher's hash table.
constexpr size_t kKnownBytes = 16;

const std::vector<SelectedSpan>& Never() {
  static const std::vector<SelectedSpan> kNever = {{kTimeBegin, false}};
  return kNever;
}
const std::vector<SelectedSpan>& Always() {
  static const std::vector<SelectedSpan> kAlways = {{kTimeBegin, true}};
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

absl::StatusOr<const std::vector<SelectedSpan>*> ProcessMatcher::SpansOfResource(const store::ProcessIds& process) {
  ASSIGN_OR_RETURN(std::shared_ptr<const ResourceStates> states, resources_.Of(process));
  if (const auto known = by_states_.find(states.get()); known != by_states_.end()) return &known->second.spans;
  if (by_states_.size() >= ProcessResources::kPlacesMax) by_states_.clear();
  Answer& answer = by_states_[states.get()];
  for (const ResourceState& state : *states) {
    const bool selected = HoldsResource(state.resource->attributes);
    if (answer.spans.empty() || answer.spans.back().selected != selected)
      answer.spans.push_back({state.from, selected});
  }
  answer.states = std::move(states);
  return &answer.spans;
}

absl::StatusOr<const std::vector<SelectedSpan>*> ProcessMatcher::SpansOf(const store::ProcessIds& process) {
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
