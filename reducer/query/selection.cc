#include "reducer/query/selection.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "base/status.h"

namespace tributary {
namespace {

// What an entry of Selection::spans_ takes, without its spans.
constexpr size_t kSpansOverheadBytes = 64;

// Returns the shard's number of a type, or a number that no samples have if the shard does not know the type.
absl::StatusOr<store::TypeNo> FindType(store::StoreReader& reader, const SampleTypeInfo& type) {
  ASSIGN_OR_RETURN(const auto types, reader.SampleTypes());
  const auto found = std::find_if(types.begin(), types.end(), [&](const auto& known) { return known.second == type; });
  return found != types.end() ? found->first : store::TypeNo{UINT32_MAX};
}

}  // namespace

absl::StatusOr<Selection> Selection::Make(store::StoreReader& reader, const QueryContext& context) {
  Selection selection;
  ASSIGN_OR_RETURN(selection.filter_.type, FindType(reader, context.type));
  if (context.request.selector.matchers().empty()) return selection;

  ASSIGN_OR_RETURN(ProcessMatcher matcher, ProcessMatcher::Make(reader, context));
  selection.selects_all_ = false;
  selection.uses_threads_ = matcher.uses_threads();
  if (selection.uses_threads_ && context.type.is_gauge()) {
    return Error(
        absl::StatusCode::kInvalidArgument,
        fmt::format(
            "query: {} is measured for whole processes, not for threads: remove the thread labels from the selector",
            EscapeForDisplay(context.type.name)));
  }
  selection.unknown_process_ = matcher.HoldsUnknown();
  selection.unknown_thread_ = matcher.HoldsUnknownThread();
  RETURN_IF_ERROR(selection.ReadProcesses(reader, context, matcher));
  if (selection.uses_threads_) RETURN_IF_ERROR(selection.ReadThreads(reader, context, matcher));
  return selection;
}

absl::StatusOr<std::shared_ptr<const Selection>> Selection::MakeOnce(store::StoreReader& reader,
                                                                     const QueryContext& context) {
  if (context.selection == nullptr) {
    ASSIGN_OR_RETURN(Selection selection, Make(reader, context));
    context.selection_bytes = selection.bytes();
    context.selection = std::make_shared<const Selection>(std::move(selection));
  }
  return context.selection;
}

// If processes without a description are selected, samples of any machine may have such a process. Then all
// descriptions must be read, because a process without one is selected.
absl::Status Selection::ReadProcesses(store::StoreReader& reader, const QueryContext& context,
                                      ProcessMatcher& matcher) {
  const store::ScanFilter of_machines = matcher.MachineFilter();
  absl::flat_hash_set<store::MachineNo> machines;
  size_t looked_at = 0;
  const auto visit = [&](std::span<const store::ProcessIds> rows) -> absl::Status {
    RETURN_IF_ERROR(CheckCancelled(context.request));
    for (const store::ProcessIds& row : rows) {
      RETURN_IF_ERROR(CheckCancelledAt(context.request, ++looked_at));
      if (processes_.Get(row.no.value) != NumberState::kUnread) continue;  // an older description
      ASSIGN_OR_RETURN(const std::vector<SelectedSpan>* spans, matcher.SpansOf(row));
      const bool always = spans->size() == 1, never = always && !spans->front().selected;
      processes_.Set(row.no.value, never    ? NumberState::kOut
                                   : always ? NumberState::kSelected
                                            : NumberState::kSometimes);
      if (!never) machines.insert(row.machine);
      if (always) continue;
      spans_.emplace(row.no, *spans);
      spans_bytes_ += kSpansOverheadBytes + spans->size() * sizeof(SelectedSpan);
    }
    return CheckBytes(context, matcher);
  };
  RETURN_IF_ERROR(reader.ScanProcessIds(context.request.range, of_machines, visit));
  if (unknown_process_) return absl::OkStatus();
  filter_.machines.emplace(machines.begin(), machines.end());
  std::ranges::sort(*filter_.machines);
  return absl::OkStatus();
}

absl::Status Selection::ReadThreads(store::StoreReader& reader, const QueryContext& context, ProcessMatcher& matcher) {
  size_t looked_at = 0;
  const auto visit = [&](std::span<const store::ProcessIds>, std::span<const store::ThreadIds> rows) -> absl::Status {
    RETURN_IF_ERROR(CheckCancelled(context.request));
    for (const store::ThreadIds& row : rows) {
      RETURN_IF_ERROR(CheckCancelledAt(context.request, ++looked_at));
      if (threads_.Get(row.no.value) != NumberState::kUnread) continue;
      const NumberState process = processes_.Get(row.process.value);
      if (process == NumberState::kOut || (process == NumberState::kUnread && !unknown_process_)) continue;
      ASSIGN_OR_RETURN(const bool holds, matcher.HoldsThread(row));
      threads_.Set(row.no.value, holds ? NumberState::kSelected : NumberState::kOut);
    }
    return CheckBytes(context, matcher);
  };
  return reader.ScanIds(context.request.range, {.machines = filter_.machines}, visit);
}

absl::Status Selection::CheckBytes(const QueryContext& context, const ProcessMatcher& matcher) const {
  if (bytes() + matcher.bytes() <= context.limits.selection_bytes_max) return absl::OkStatus();
  return Error(absl::StatusCode::kResourceExhausted,
               fmt::format("too many processes ran in this time range: to select some of them, the query would need "
                           "more than {} MiB: ask for a shorter time range, or for one node with node_id=\"…\"",
                           context.limits.selection_bytes_max >> 20));
}

bool Selection::HasAt(store::ProcessNo process, UnixNs at) const {
  const std::vector<SelectedSpan>& spans = spans_.at(process);
  size_t i = spans.size() - 1;
  while (i > 0 && spans[i].from > at) --i;
  return spans[i].selected;
}

}  // namespace tributary
