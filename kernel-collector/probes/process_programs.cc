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

#include "base/log.h"
#include "base/status.h"
#include "kernel-collector/probes/ring_size.h"

namespace tributary {
namespace {

constexpr size_t kRingRecordHeaderBytes = 8;  // BPF_RINGBUF_HDR_SZ
constexpr char kListProgram[] = "trib_list_processes";
constexpr char kFinalProgram[] = "trib_process_free";
constexpr const char* kPrograms[] = {"trib_process_fork", "trib_process_exec", "trib_process_exit", kFinalProgram,
                                     kListProgram};
constexpr char kRing[] = "trib_events";

absl::Status Missing(std::string_view what) {
  return Error(absl::StatusCode::kInternal, "the sampling program's object file lacks " + std::string(what));
}

}  // namespace

absl::Status ProcessPrograms::Configure(bpf_object* object, uint32_t ring_bytes) {
  bpf_map* ring = bpf_object__find_map_by_name(object, kRing);
  if (ring == nullptr) return Missing("map trib_events");
  // A map of the object is always created. Its smallest size is one page.
  const uint32_t bytes = ring_bytes != 0 ? ring_bytes : static_cast<uint32_t>(getpagesize());
  if (int error = bpf_map__set_max_entries(ring, bytes); error != 0) {
    return ErrnoStatus("set the size of", "the ring buffer of process events", -error);
  }
  bpf_map* exited = bpf_object__find_map_by_name(object, "trib_exited");
  if (exited == nullptr) return Missing("map trib_exited");
  const uint32_t entries =
      ring_bytes != 0 ? EndedProcessesMax(static_cast<size_t>(std::max(libbpf_num_possible_cpus(), 1))) : 1;
  if (int error = bpf_map__set_max_entries(exited, entries); error != 0) {
    return ErrnoStatus("set the size of", "the map of ended processes", -error);
  }
  for (const char* name : kPrograms) {
    bpf_program* program = bpf_object__find_program_by_name(object, name);
    if (program == nullptr) return Missing(name);
    if (int error = bpf_program__set_autoload(program, ring_bytes != 0); error != 0) {
      return ErrnoStatus("choose", name, -error);
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<ProcessPrograms>> ProcessPrograms::Attach(bpf_object* object) {
  std::unique_ptr<ProcessPrograms> programs(new ProcessPrograms);
  bpf_map* ring = bpf_object__find_map_by_name(object, kRing);
  if (ring == nullptr) return Missing("map trib_events");
  programs->ring_bytes_ = bpf_map__max_entries(ring);
  programs->ring_ = ring_buffer__new(bpf_map__fd(ring), OnRecord, programs.get(), nullptr);
  if (programs->ring_ == nullptr) return ErrnoStatus("map", kRing, errno);
  for (const char* name : kPrograms) {
    bpf_program* program = bpf_object__find_program_by_name(object, name);
    if (program == nullptr) return Missing(name);
    bpf_link* link = bpf_program__attach(program);
    if (link == nullptr) return ErrnoStatus("attach", name, errno);
    programs->links_.push_back(link);
    if (std::string_view(name) != kFinalProgram && std::string_view(name) != kListProgram) {
      programs->reporters_.push_back(bpf_program__fd(program));
    }
    if (std::string_view(name) != kListProgram) continue;
    programs->list_ = Fd(bpf_iter_create(bpf_link__fd(link)));
    if (!programs->list_.valid()) return ErrnoStatus("create", "the list of processes", errno);
  }
  return programs;
}

void ProcessPrograms::Stop() {
  for (bpf_link* link : std::exchange(links_, {})) bpf_link__destroy(link);
}

ProcessPrograms::~ProcessPrograms() {
  Stop();
  ring_buffer__free(ring_);
}

uint64_t ProcessPrograms::ReadMissed() const {
  uint64_t missed = 0;
  for (const int program : reporters_) {
    bpf_prog_info info = {};
    uint32_t bytes = sizeof(info);
    if (bpf_obj_get_info_by_fd(program, &info, &bytes) == 0) missed += info.recursion_misses;
  }
  return missed;
}

int ProcessPrograms::wakeup_fd() const { return ring_buffer__epoll_fd(ring_); }

int ProcessPrograms::OnRecord(void* context, void* data, size_t size) {
  auto* programs = static_cast<ProcessPrograms*>(context);
  const auto* event = static_cast<const trib_process_event*>(data);
  if (size == sizeof(*event) && event->kind >= TRIB_EVENT_START && event->kind <= TRIB_EVENT_FINAL) {
    (*programs->visit_)(*event);
  } else {
    ++programs->bad_records_;
  }
  programs->drained_bytes_ += size + kRingRecordHeaderBytes;
  // A machine that starts processes all the time must not block the loop.
  return programs->drained_bytes_ >= programs->ring_bytes_ ? -ECANCELED : 0;
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
  visit_ = &visit;
  drained_bytes_ = 0;
  const int result = ring_buffer__consume(ring_);
  visit_ = nullptr;
  if (result < 0 && result != -ECANCELED) LogDebug("cannot read the ring of process events result={}", result);
}

}  // namespace tributary
