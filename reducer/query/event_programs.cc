#include "reducer/query/event_programs.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "base/status.h"
#include "reducer/query/event_kinds.h"
#include "reducer/query/event_selection.h"
#include "reducer/query/query_context.h"

namespace tributary {
namespace {

// Events come from nodes, so their numbers may be anything. A sum of two numbers stops at the largest number.
uint64_t Plus(uint64_t a, uint64_t b) { return a + std::min(b, UINT64_MAX - a); }

// Programs that differ are no longer distinguished if their texts exceed this. A node may send texts of 4 KiB each.
constexpr size_t kTextBytesMax = 16u << 20;

class ProgramGroups {
 public:
  ProgramGroups(const EventProgramsRequest& request, EventSelection& selection)
      : request_(request), selection_(selection) {}

  void Add(const store::ProcessEventRow& event) {
    if (event.kind != ProcessEventKind::kExit && event.kind != ProcessEventKind::kSum) return;
    if (!selection_.Has(event)) return;
    const uint64_t processes = event.kind == ProcessEventKind::kSum ? event.processes : 1;
    const uint64_t cpu_ns = Plus(event.end.user_ns, event.end.system_ns);
    found_.ended_processes = Plus(found_.ended_processes, processes);
    found_.ended_cpu_ns = Plus(found_.ended_cpu_ns, cpu_ns);
    if (!IsShort(event, processes)) return;
    const EventPrograms::Use use{.processes = processes,
                                 .failed = HasFailed(event) ? processes : 0,
                                 .cpu_ns = cpu_ns,
                                 .run_ns = event.end.run_ns,
                                 .peak_rss_bytes = event.end.peak_rss_bytes};
    found_.total += use;
    AddToGroup(event, use);
  }

  EventPrograms Take() && {
    for (auto& [key, program] : groups_) found_.programs.push_back(std::move(program));
    const auto weight = [this](const EventPrograms::Program& program) {
      const EventPrograms::Use& use = program.use;
      return request_.sort == EventProgramsRequest::Sort::kCpu ? std::pair(use.cpu_ns, use.processes)
                                                               : std::pair(use.processes, use.cpu_ns);
    };
    std::sort(found_.programs.begin(), found_.programs.end(),
              [&](const EventPrograms::Program& a, const EventPrograms::Program& b) {
                if (weight(a) != weight(b)) return weight(a) > weight(b);
                return std::tie(a.executable_path, a.name, a.name_space, a.pod, a.container) <
                       std::tie(b.executable_path, b.name, b.name_space, b.pod, b.container);
              });
    while (found_.programs.size() > request_.limit) {
      found_.others += found_.programs.back().use;
      ++found_.other_programs;
      found_.programs.pop_back();
    }
    return std::move(found_);
  }

 private:
  // executable path, or name if there is no path; container, pod, namespace
  using Key = std::tuple<std::string, std::string, std::string, std::string>;

  bool IsShort(const store::ProcessEventRow& event, uint64_t processes) const {
    if (event.kind == ProcessEventKind::kExit && event.end.run_ns == 0) return false;
    return event.end.run_ns / std::max<uint64_t>(processes, 1) < static_cast<uint64_t>(request_.run_max_ns);
  }

  void AddToGroup(const store::ProcessEventRow& event, const EventPrograms::Use& use) {
    EventPlace place = selection_.PlaceOf(event);
    if (place.container.empty()) place.container = std::move(place.container_id);
    const std::string_view program = event.executable_path.empty() ? event.name : event.executable_path;
    Key key(program, place.container, place.pod, place.name_space);
    auto group = groups_.find(key);
    if (group == groups_.end()) {
      if (groups_.size() >= kEventProgramsMax || text_bytes_ >= kTextBytesMax) {
        found_.others += use;
        found_.ungrouped = Plus(found_.ungrouped, use.processes);
        return;
      }
      text_bytes_ +=
          event.name.size() + program.size() + place.container.size() + place.pod.size() + place.name_space.size();
      group = groups_.emplace(std::move(key), EventPrograms::Program()).first;
      group->second = {.name = std::string(event.name),
                       .executable_path = std::string(event.executable_path),
                       .container = std::move(place.container),
                       .pod = std::move(place.pod),
                       .name_space = std::move(place.name_space)};
    }
    group->second.use += use;
  }

  const EventProgramsRequest& request_;
  EventSelection& selection_;
  absl::flat_hash_map<Key, EventPrograms::Program> groups_;
  size_t text_bytes_ = 0;  // of groups_
  EventPrograms found_;
};

}  // namespace

EventPrograms::Use& EventPrograms::Use::operator+=(const Use& other) {
  processes = Plus(processes, other.processes);
  failed = Plus(failed, other.failed);
  cpu_ns = Plus(cpu_ns, other.cpu_ns);
  run_ns = Plus(run_ns, other.run_ns);
  peak_rss_bytes = std::max(peak_rss_bytes, other.peak_rss_bytes);
  return *this;
}

absl::StatusOr<EventPrograms> MakeEventPrograms(const QueryContext& context, const EventProgramsRequest& request) {
  ASSIGN_OR_RETURN(EventSelection selection, EventSelection::Make(context));
  ProgramGroups groups(request, selection);
  const auto add_shard = [&](store::StoreReader& reader) -> absl::Status {
    ASSIGN_OR_RETURN(const store::ScanFilter filter, selection.FilterOf(reader));
    return ScanEvents(reader, context.request, context.request.range, filter, [&](const store::ProcessEventRow& event) {
      groups.Add(event);
      return absl::OkStatus();
    });
  };
  RETURN_IF_ERROR(ForEachShard(context, add_shard));
  return std::move(groups).Take();
}

}  // namespace tributary
