#include "reducer/query/selection.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/status.h"

namespace tributary {
namespace {

struct LabelMatcher {
  Label label;
  const Selector::Matcher* matcher;
};

template <typename Row>
bool Holds(const std::vector<LabelMatcher>& matchers, const Row& row) {
  return std::all_of(matchers.begin(), matchers.end(),
                     [&row](const LabelMatcher& m) { return m.matcher->Holds(LabelValue(m.label, row)); });
}

void Mark(std::vector<uint8_t>& selected, uint32_t number, uint8_t value, bool otherwise) {
  if (number >= selected.size()) selected.resize(size_t{number} + 1, otherwise ? 1 : 0);
  selected[number] = value;
}

// Returns the shard's number of a type, or a number that no samples have if the shard does not know the type.
absl::StatusOr<store::TypeNo> FindType(store::StoreReader& reader, const SampleTypeInfo& type) {
  ASSIGN_OR_RETURN(const auto types, reader.SampleTypes());
  const auto found = std::find_if(types.begin(), types.end(), [&](const auto& known) { return known.second == type; });
  return found != types.end() ? found->first : store::TypeNo{UINT32_MAX};
}

}  // namespace

// Sorts a selector's matchers by the data that they need (process, thread or resource), and evaluates them.
class Selection::Maker {
 public:
  Maker(const Selector& selector, ResourceCache* resources) : resources_(resources) {
    for (const Selector::Matcher& matcher : selector.matchers()) {
      const std::optional<Label> label = FindLabel(matcher.label);
      if (label && IsThreadLabel(*label)) {
        of_thread_.push_back({*label, &matcher});
      } else if (label && (resources == nullptr || !IsHostLabel(*label))) {
        of_process_.push_back({*label, &matcher});
      } else {
        of_resource_.push_back(&matcher);
      }
    }
  }

  bool selects_all() const { return of_process_.empty() && of_resource_.empty() && of_thread_.empty(); }
  bool uses_threads() const { return !of_thread_.empty(); }
  bool HoldsUnknown() const { return Holds(of_process_, store::ProcessRow{}) && HoldsResource({}); }
  bool HoldsThread(const store::ThreadRow& thread) const { return Holds(of_thread_, thread); }

  // Returns from which times on the process is selected or not selected. If this does not change, returns one span.
  const std::vector<Span>& SpansOf(const store::ProcessRow& row) {
    static const std::vector<Span> kNever = {{kTimeBegin, false}}, kAlways = {{kTimeBegin, true}};
    if (!Holds(of_process_, row)) return kNever;
    if (of_resource_.empty()) return kAlways;
    if (resources_ == nullptr) return HoldsResource({}) ? kAlways : kNever;
    std::shared_ptr<const ResourceStates> states = resources_->Of(row);
    auto [it, added] = by_states_.try_emplace(states.get());
    if (!added) return it->second.spans;
    it->second.states = std::move(states);
    std::vector<Span>& spans = it->second.spans;
    for (const ResourceState& state : *it->second.states) {
      const bool selected = HoldsResource(state.resource->attributes);
      if (spans.empty() || spans.back().selected != selected) spans.push_back({state.from, selected});
    }
    return spans;
  }

 private:
  struct Answer {
    std::shared_ptr<const ResourceStates> states;  // kept alive, because its address is the key
    std::vector<Span> spans;
  };

  bool HoldsResource(const Attributes& attributes) const {
    return std::all_of(of_resource_.begin(), of_resource_.end(), [&](const Selector::Matcher* matcher) {
      auto it = std::find_if(attributes.begin(), attributes.end(),
                             [&](const Attribute& a) { return IsNormalizedAs(a.key, matcher->label); });
      return matcher->Holds(it == attributes.end() ? std::string_view() : std::string_view(it->value));
    });
  }

  ResourceCache* const resources_;
  std::vector<LabelMatcher> of_process_, of_thread_;
  std::vector<const Selector::Matcher*> of_resource_;
  absl::flat_hash_map<const ResourceStates*, Answer> by_states_;
};

absl::StatusOr<Selection> Selection::Make(store::StoreReader& reader, const QueryContext& context) {
  const QueryRequest& request = context.request;
  Maker maker(request.selector, context.resources.get());
  Selection selection;
  ASSIGN_OR_RETURN(selection.type_, FindType(reader, context.type));
  if (maker.selects_all()) return selection;

  selection.uses_threads_ = maker.uses_threads();
  if (selection.uses_threads_ && context.type.is_gauge()) {
    return Error(
        absl::StatusCode::kInvalidArgument,
        fmt::format(
            "query: {} is measured for whole processes, not for threads: remove the thread labels from the selector",
            EscapeForDisplay(context.type.name)));
  }
  selection.unknown_process_ = maker.HoldsUnknown();
  selection.unknown_thread_ = maker.HoldsThread(store::ThreadRow{});
  ASSIGN_OR_RETURN(std::vector<store::ProcessRow> rows, reader.Processes(request.range, nullptr));
  if (rows.size() > context.limits.processes_max) {
    return Error(
        absl::StatusCode::kResourceExhausted,
        fmt::format(
            "{} processes ran in this time range, but a query may read at most {}: ask for a shorter time range",
            rows.size(), context.limits.processes_max));
  }
  store::ProcessSet selected;
  size_t looked_at = 0;
  for (const store::ProcessRow& row : rows) {
    RETURN_IF_ERROR(CheckCancelledAt(request, ++looked_at));
    const std::vector<Span>& spans = maker.SpansOf(row);
    const bool always = spans.size() == 1;
    Mark(selection.processes_, row.no.value, always ? static_cast<uint8_t>(spans[0].selected) : kSometimes,
         selection.unknown_process_);
    if (!always) selection.spans_[row.no] = spans;
    if (!always || spans[0].selected) selected.insert(row.no);
  }
  if (!selection.uses_threads_) return selection;
  ASSIGN_OR_RETURN(std::vector<store::ThreadRow> threads, reader.Threads(request.range, selected));
  for (const store::ThreadRow& row : threads) {
    RETURN_IF_ERROR(CheckCancelledAt(request, ++looked_at));
    Mark(selection.threads_, row.no.value, static_cast<uint8_t>(maker.HoldsThread(row)), selection.unknown_thread_);
  }
  return selection;
}

bool Selection::HasAt(store::ProcessNo process, UnixNs at) const {
  const std::vector<Span>& spans = spans_.at(process);
  size_t i = spans.size() - 1;
  while (i > 0 && spans[i].from > at) --i;
  return spans[i].selected;
}

}  // namespace tributary
