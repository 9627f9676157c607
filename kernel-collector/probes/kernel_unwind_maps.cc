#include "kernel-collector/probes/kernel_unwind_maps.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <utility>

#include "base/status.h"
#include "bpf/include/config.h"

namespace tributary {
namespace {

absl::StatusOr<int> MapFd(bpf_object* object, const char* name) {
  bpf_map* map = bpf_object__find_map_by_name(object, name);
  if (map == nullptr) return Error(absl::StatusCode::kInternal, fmt::format("the sampling program lacks map {}", name));
  return bpf_map__fd(map);
}

enum class Mapped { kWhenWritten, kAtOnce };

absl::StatusOr<SharedArray> ArrayByName(bpf_object* object, const char* name, size_t bytes, Mapped mapped) {
  ASSIGN_OR_RETURN(const int fd, MapFd(object, name));
  Fd copy(fcntl(fd, F_DUPFD_CLOEXEC, 0));
  if (!copy.valid()) return ErrnoStatus("dup", name, errno);
  return mapped == Mapped::kAtOnce ? SharedArray::Map(std::move(copy), bytes, name)
                                   : SharedArray::Reserve(std::move(copy), bytes, name);
}

// Before 5.11, maps count as locked memory, and the kernel refuses too much of it with EPERM.
absl::Status NoRoom(const char* name, int error) {
  if (error == ENOMEM || error == EPERM || error == E2BIG) {
    return Error(absl::StatusCode::kResourceExhausted, fmt::format("create {}: errno {}", name, error));
  }
  return ErrnoStatus("create", name, error);
}

}  // namespace

absl::StatusOr<std::unique_ptr<KernelUnwindMaps>> KernelUnwindMaps::Open(bpf_object* object) {
  ASSIGN_OR_RETURN(SharedArray rules,
                   ArrayByName(object, "trib_rules", TRIB_RULES_MAX * sizeof(uint64_t), Mapped::kWhenWritten));
  ASSIGN_OR_RETURN(SharedArray pages,
                   ArrayByName(object, "trib_pages", TRIB_PAGES_MAX * sizeof(uint64_t), Mapped::kWhenWritten));
  ASSIGN_OR_RETURN(SharedArray touches,
                   ArrayByName(object, "trib_touches", TRIB_TOUCHES_MAX * sizeof(uint64_t), Mapped::kAtOnce));
  ASSIGN_OR_RETURN(SharedArray mappings, ArrayByName(object, "trib_mappings", TRIB_MAPPINGS_MAX * sizeof(trib_mapping),
                                                     Mapped::kWhenWritten));
  ASSIGN_OR_RETURN(SharedArray runtimes,
                   ArrayByName(object, "trib_runtimes", TRIB_RUNTIMES_MAX * sizeof(trib_runtime), Mapped::kAtOnce));
  ASSIGN_OR_RETURN(SharedArray control, ArrayByName(object, "trib_control", sizeof(trib_control), Mapped::kAtOnce));
  // The dictionary of rules begins with two rules. They are written where no error can be returned.
  if (!rules.MakeWritable(std::as_bytes(rules.As<uint64_t>().first(2))))
    return ErrnoStatus("mmap", "trib_rules", errno);
  std::unique_ptr<KernelUnwindMaps> maps(new KernelUnwindMaps(std::move(rules), std::move(pages), std::move(touches),
                                                              std::move(mappings), std::move(runtimes),
                                                              std::move(control)));
  ASSIGN_OR_RETURN(maps->row_chunks_fd_, MapFd(object, "trib_row_chunks"));
  ASSIGN_OR_RETURN(maps->processes_fd_, MapFd(object, "trib_processes"));
  ASSIGN_OR_RETURN(maps->interpreters_fd_, MapFd(object, "trib_interpreters"));

  maps->grace_inner_ = Fd(bpf_map_create(BPF_MAP_TYPE_ARRAY, "trib_grace", sizeof(uint32_t), 8, 1, nullptr));
  if (!maps->grace_inner_.valid()) return NoRoom("map trib_grace", errno);
  LIBBPF_OPTS(bpf_map_create_opts, options, .inner_map_fd = static_cast<uint32_t>(maps->grace_inner_.get()));
  maps->grace_outer_ =
      Fd(bpf_map_create(BPF_MAP_TYPE_ARRAY_OF_MAPS, "trib_graces", sizeof(uint32_t), sizeof(uint32_t), 1, &options));
  if (!maps->grace_outer_.valid()) return NoRoom("map trib_graces", errno);
  return maps;
}

void KernelUnwindMaps::CountWithdrawal() {
  std::atomic_ref(control_.As<trib_control>()[0].withdrawals).fetch_add(1, std::memory_order_release);
}

bool KernelUnwindMaps::Access(std::span<const std::byte> part) {
  for (SharedArray* array : {&rules_, &pages_, &mappings_}) {
    if (array->Contains(part)) return array->MakeWritable(part);
  }
  TRIBUTARY_CHECK(part.size() <= kAccessBytesMax);
  const std::scoped_lock lock(mutex_);
  const auto chunk =
      std::find_if(chunks_.begin(), chunks_.end(), [&](const SharedArray& c) { return c.Contains(part); });
  TRIBUTARY_CHECK(chunk != chunks_.end());
  return mapped_rows_.Map(chunks_, static_cast<size_t>(chunk - chunks_.begin()), part);
}

absl::StatusOr<std::span<uint64_t>> KernelUnwindMaps::AddChunk() {
  auto slot = static_cast<uint32_t>(chunks_.size());  // no other thread adds a chunk at the same time
  if (slot >= TRIB_CHUNKS_MAX) {
    return Error(absl::StatusCode::kResourceExhausted,
                 fmt::format("the limit of {} memory chunks for unwind rows is reached", TRIB_CHUNKS_MAX));
  }
  LIBBPF_OPTS(bpf_map_create_opts, options, .map_flags = BPF_F_MMAPABLE);
  Fd chunk(bpf_map_create(BPF_MAP_TYPE_ARRAY, "trib_rows", sizeof(uint32_t), sizeof(uint64_t), TRIB_CHUNK_ELEMENTS,
                          &options));
  if (!chunk.valid()) return NoRoom("a chunk of unwind rows", errno);
  int fd = chunk.get();
  ASSIGN_OR_RETURN(SharedArray rows,
                   SharedArray::Reserve(std::move(chunk), TRIB_CHUNK_BYTES, "a chunk of unwind rows"));
  if (bpf_map_update_elem(row_chunks_fd_, &slot, &fd, BPF_ANY) != 0) {
    return ErrnoStatus("update", "map trib_row_chunks", errno);
  }
  const std::scoped_lock lock(mutex_);
  chunks_.push_back(std::move(rows));
  return chunks_.back().As<uint64_t>();
}

absl::Status KernelUnwindMaps::SetProcess(Pid pid, const trib_process& process) {
  if (bpf_map_update_elem(processes_fd_, &pid.value, &process, BPF_ANY) == 0) return absl::OkStatus();
  if (errno == E2BIG) {
    return Error(
        absl::StatusCode::kResourceExhausted,
        fmt::format("the limit of {} processes in the kernel's map trib_processes is reached", TRIB_PROCESSES_MAX));
  }
  return ErrnoStatus("update", "map trib_processes", errno);
}

// ENOENT is fine: the process is to be absent.
void KernelUnwindMaps::DropProcess(Pid pid) { bpf_map_delete_elem(processes_fd_, &pid.value); }

absl::Status KernelUnwindMaps::SetInterpreter(const trib_executable_key& executable, uint32_t runtimes) {
  if (bpf_map_update_elem(interpreters_fd_, &executable, &runtimes, BPF_ANY) == 0) return absl::OkStatus();
  if (errno == E2BIG) {
    return Error(absl::StatusCode::kResourceExhausted,
                 fmt::format("the limit of {} executables in the kernel's map trib_interpreters is reached",
                             TRIB_INTERPRETERS_MAX));
  }
  return ErrnoStatus("update", "map trib_interpreters", errno);
}

// ENOENT is fine: the executable is to be absent.
void KernelUnwindMaps::DropInterpreter(const trib_executable_key& executable) {
  bpf_map_delete_elem(interpreters_fd_, &executable);
}

// The program runs in an RCU read section, and updating a map of maps ends with synchronize_rcu()
// (kernel/bpf/syscall.c, maybe_wait_bpf_programs).
absl::Status KernelUnwindMaps::WaitGrace() {
  uint32_t slot = 0;
  int fd = grace_inner_.get();
  if (bpf_map_update_elem(grace_outer_.get(), &slot, &fd, BPF_ANY) == 0) return absl::OkStatus();
  return ErrnoStatus("update", "map trib_graces", errno);
}

}  // namespace tributary
