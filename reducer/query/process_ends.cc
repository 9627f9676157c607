#include "reducer/query/process_ends.h"

#include <string_view>
#include <tuple>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "base/status.h"
#include "reducer/query/event_selection.h"
#include "reducer/query/event_windows.h"
#include "reducer/query/query_context.h"

namespace tributary {

absl::Status AddProcessEnds(const QueryContext& context, SeriesList* series, size_t events_max) {
  using Key = std::tuple<std::string_view, Pid, int64_t>;  // node, pid, start time
  // A process has several entries if it has run several programs.
  absl::flat_hash_map<Key, std::vector<SeriesList::Process*>> processes;
  for (SeriesList::Process& process : series->processes) {
    const store::ProcessRow& row = process.row;
    if (row.start_time_ns != 0) processes[Key(row.node_id, row.pid, row.start_time_ns)].push_back(&process);
  }
  if (processes.empty()) return absl::OkStatus();
  return ForEachShard(context, [&](store::StoreReader& reader) -> absl::Status {
    size_t visited = 0;
    const auto visit = [&](const store::ProcessEventRow& event) {
      ++visited;
      if (event.kind != ProcessEventKind::kExit && event.kind != ProcessEventKind::kEndUnknown) return absl::OkStatus();
      const auto found = processes.find(Key(event.node_id, event.pid, event.start_time_ns));
      if (found == processes.end()) return absl::OkStatus();
      for (SeriesList::Process* process : found->second) process->ended = event.time;
      return absl::OkStatus();
    };
    EventWindows windows(context.request.range, EventOrder::kNewestFirst);
    for (auto window = windows.Next(); window && visited < events_max; window = windows.Next()) {
      const size_t before = visited;
      RETURN_IF_ERROR(ScanEvents(reader, context.request, *window, {}, visit));
      windows.Finish(visited == before);
    }
    return absl::OkStatus();
  });
}

}  // namespace tributary
