#include "kernel-collector/probes/process_programs.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "base/status.h"
#include "kernel-collector/probes/ring_size.h"

namespace tributary {
namespace {

enum class Role { kReports, kCompletes, kLists };
struct Program {
  const char* name;
  Role role;
  uint32_t copy = 0;
};
// In the order in which they are attached. The kernel runs the programs of a tracepoint in this order, too. No other
// copy runs without the first one: it would take each run for one that the kernel has skipped.
constexpr Program kPrograms[] = {{"trib_process_fork", Role::kReports, 0},
                                 {"trib_process_exec", Role::kReports, 0},
                                 {"trib_process_exit", Role::kReports, 0},
                                 {"trib_process_fork_second", Role::kReports, 1},
                                 {"trib_process_exec_second", Role::kReports, 1},
                                 {"trib_process_exit_second", Role::kReports, 1},
                                 {"trib_process_fork_last", Role::kReports, 2},
                                 {"trib_process_exec_last", Role::kReports, 2},
                                 {"trib_process_exit_last", Role::kReports, 2},
                                 {"trib_process_free", Role::kCompletes},
                                 {"trib_list_processes", Role::kLists}};
constexpr char kRing[] = "trib_events";

absl::Status Missing(std::string_view what) {
  return Error(absl::StatusCode::kInternal, "the sampling program's object file lacks " + std::string(what));
}

absl::Status SetEntries(bpf_object* object, const char* map, uint32_t entries) {
  bpf_map* found = bpf_object__find_map_by_name(object, map);
  if (found == nullptr) return Missing(std::string("map ") + map);
  if (int error = bpf_map__set_max_entries(found, entries); error != 0) {
    return ErrnoStatus("set the size of", map, -error);
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ProcessPrograms::Configure(bpf_object* object, uint32_t ring_bytes, bool repeat) {
  // A map of the object is always created. The smallest size of a ring is one page.
  const bool load = ring_bytes != 0;
  RETURN_IF_ERROR(SetEntries(object, kRing, load ? ring_bytes : static_cast<uint32_t>(getpagesize())));
  const auto cpus = static_cast<size_t>(std::max(libbpf_num_possible_cpus(), 1));
  RETURN_IF_ERROR(SetEntries(object, "trib_exited", load ? EndedProcessesMax(cpus) : 1));
  RETURN_IF_ERROR(SetEntries(object, "trib_handled", load && repeat ? EndedProcessesMax(cpus) : 1));
  for (const auto& [name, role, copy] : kPrograms) {
    bpf_program* program = bpf_object__find_program_by_name(object, name);
    if (program == nullptr) return Missing(name);
    if (int error = bpf_program__set_autoload(program, load && (repeat || copy == 0)); error != 0) {
      return ErrnoStatus("choose", name, -error);
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<ProcessPrograms>> ProcessPrograms::Attach(bpf_object* object,
                                                                         std::shared_ptr<const KernelCounters> counters,
                                                                         uint32_t leave_out) {
  std::unique_ptr<ProcessPrograms> programs(new ProcessPrograms(std::move(counters)));
  bpf_map* ring = bpf_object__find_map_by_name(object, kRing);
  if (ring == nullptr) return Missing("map trib_events");
  programs->ring_fd_ = bpf_map__fd(ring);
  ASSIGN_OR_RETURN(MappedRing mapped, MappedRing::Map(programs->ring_fd_, bpf_map__max_entries(ring), kRing));
  programs->ring_.emplace(std::move(mapped));
  for (const auto& [name, role, copy] : kPrograms) {
    bpf_program* program = bpf_object__find_program_by_name(object, name);
    if (program == nullptr) return Missing(name);
    if (!bpf_program__autoload(program) || (role == Role::kReports && copy < leave_out)) continue;
    bpf_link* link = bpf_program__attach(program);
    if (link == nullptr) return ErrnoStatus("attach", name, errno);
    programs->links_.push_back(link);
    if (role == Role::kReports && copy == 0) programs->reporters_.push_back(bpf_program__fd(program));
    if (role != Role::kLists) continue;
    programs->list_ = Fd(bpf_iter_create(bpf_link__fd(link)));
    if (!programs->list_.valid()) return ErrnoStatus("create", "the list of processes", errno);
  }
  return programs;
}

void ProcessPrograms::Stop() {
  std::reverse(links_.begin(), links_.end());
  for (bpf_link* link : std::exchange(links_, {})) bpf_link__destroy(link);
}

ProcessPrograms::~ProcessPrograms() { Stop(); }

uint64_t ProcessPrograms::ReadMissed() {
  uint64_t skipped = 0;
  for (const int program : reporters_) {
    bpf_prog_info info = {};
    uint32_t bytes = sizeof(info);
    if (bpf_obj_get_info_by_fd(program, &info, &bytes) == 0) skipped += info.recursion_misses;
  }
  return missed_.Update(skipped, counters_->ReadEventsRepeated(), Clock::Real().Monotonic(), links_.empty());
}

absl::Status ProcessPrograms::ListRunning(const std::function<void(const trib_process_event&)>& visit) {
  std::array<trib_process_event, 256> events;
  auto* bytes = reinterpret_cast<char*>(events.data());
  size_t filled = 0;
  while (true) {
    const ssize_t got = read(list_.get(), bytes + filled, sizeof(events) - filled);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return ErrnoStatus("read", "the list of processes", errno);
    if (got == 0) return absl::OkStatus();
    filled += static_cast<size_t>(got);
    const size_t whole = filled / sizeof(trib_process_event);
    for (size_t i = 0; i < whole; ++i) visit(events[i]);
    filled -= whole * sizeof(trib_process_event);
    std::memmove(bytes, bytes + whole * sizeof(trib_process_event), filled);
  }
}

void ProcessPrograms::Drain(const std::function<void(const trib_process_event&)>& visit) {
  ring_->consumer().Drain([&](std::span<const uint8_t> bytes) {
    const auto* event = reinterpret_cast<const trib_process_event*>(bytes.data());
    if (bytes.size() == sizeof(*event) && event->kind >= TRIB_EVENT_START && event->kind <= TRIB_EVENT_FINAL) {
      visit(*event);
    } else {
      ++bad_records_;
    }
  });
}

}  // namespace tributary
