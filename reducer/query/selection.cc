#include "reducer/query/selection.h"

#include <fmt/format.h>

#include <algorithm>

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

void Mark(std::vector<uint8_t>& selected, uint32_t number, bool value, bool otherwise) {
  if (number >= selected.size()) selected.resize(size_t{number} + 1, otherwise ? 1 : 0);
  selected[number] = value ? 1 : 0;
}

}  // namespace

absl::StatusOr<Selection> Selection::Make(store::StoreReader& reader, const Selector& selector, store::TimeRange range,
                                          const QueryLimits& limits) {
  std::vector<LabelMatcher> of_process, of_thread;
  for (const Selector::Matcher& matcher : selector.matchers()) {
    std::optional<Label> label = FindLabel(matcher.label);
    if (!label) return Error(absl::StatusCode::kInvalidArgument, "selector: unknown label " + matcher.label);
    (IsThreadLabel(*label) ? of_thread : of_process).push_back({*label, &matcher});
  }
  Selection selection;
  if (of_process.empty() && of_thread.empty()) return selection;

  selection.uses_threads_ = !of_thread.empty();
  selection.unknown_process_ = Holds(of_process, store::ProcessRow{});
  selection.unknown_thread_ = Holds(of_thread, store::ThreadRow{});
  ASSIGN_OR_RETURN(std::vector<store::ProcessRow> rows, reader.Processes(range, nullptr));
  if (rows.size() > limits.processes_max) {
    return Error(absl::StatusCode::kResourceExhausted,
                 fmt::format("{} processes ran in this time, a query may look at {}: ask for a shorter time",
                             rows.size(), limits.processes_max));
  }
  store::ProcessSet selected;
  for (const store::ProcessRow& row : rows) {
    bool holds = Holds(of_process, row);
    Mark(selection.processes_, row.no.value, holds, selection.unknown_process_);
    if (holds) selected.insert(row.no);
  }
  if (!selection.uses_threads_) return selection;
  ASSIGN_OR_RETURN(std::vector<store::ThreadRow> threads, reader.Threads(range, selected));
  for (const store::ThreadRow& row : threads) {
    Mark(selection.threads_, row.no.value, Holds(of_thread, row), selection.unknown_thread_);
  }
  return selection;
}

}  // namespace tributary
