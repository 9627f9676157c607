#include "kernel-collector/probes/sideband.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <queue>
#include <tuple>
#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "base/status.h"
#include "kernel-collector/probes/perf_event.h"
#include "kernel-collector/probes/sideband_record.h"
#include "kernel-collector/probes/standstill.h"
#include "kernel-collector/probes/wakeups.h"

namespace tributary {
namespace {

constexpr size_t kRingBytesMax = 256 << 10;  // measured: loses nothing under a storm of execs
constexpr size_t kRingBytesMin = 16 << 10;

}  // namespace

struct Sideband::Ring {
  Ring(Fd event_fd, void* mapping, size_t mapping_bytes, size_t data_bytes)
      : event(std::move(event_fd)),
        memory(mapping),
        memory_bytes(mapping_bytes),
        records(static_cast<perf_event_mmap_page*>(mapping),
                {static_cast<const uint8_t*>(mapping) + (mapping_bytes - data_bytes), data_bytes}) {}
  ~Ring() { munmap(memory, memory_bytes); }
  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;

  Fd event;
  void* memory;
  size_t memory_bytes;
  PerfRing records;
  uint64_t corruptions_seen = 0;
  Standstill standstill{Clock::Real().Monotonic(), 0};
};

Sideband::Sideband(Metrics& metrics, int wakeups)
    : wakeups_(wakeups),
      lost_(metrics.AddCounter("tributary_collector_sideband_lost_events_total",
                               "Process events (fork, exec, mmap, exit and others) lost because a CPU's ring buffer "
                               "was full, plus 1 each time that CPUs came online before they had a ring buffer; the "
                               "collector then reads mappings from /proc again")),
      bad_(metrics.AddCounter("tributary_collector_sideband_bad_records_total",
                              "Process events that were dropped because they were malformed")) {}

Sideband::~Sideband() = default;

absl::Status Sideband::AddCpu(int cpu) {
  if (has_cpu(cpu)) return absl::OkStatus();
  absl::StatusOr<Fd> event = OpenSidebandEvent(cpu, build_ids_);
  if (build_ids_ && absl::IsInvalidArgument(event.status())) {
    event = OpenSidebandEvent(cpu, /*build_id=*/false);
    if (event.ok()) {
      build_ids_ = false;
      LogInfo(
          "this kernel sends no build-ids of mapped files (Linux 5.12 and later do): the collector reads build-ids "
          "from the files");
    }
  }
  if (!event.ok()) return event.status();
  auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  int error = 0;
  // A ring beyond kernel.perf_event_mlock_kb counts as locked memory. The limit may refuse it (EPERM) although there is
  // enough memory.
  for (size_t data = std::max(kRingBytesMax, page); data >= std::max(kRingBytesMin, page); data /= 2) {
    void* memory = mmap(nullptr, page + data, PROT_READ | PROT_WRITE, MAP_SHARED, event->get(), 0);
    if (memory != MAP_FAILED) {
      if (data < kRingBytesMax)
        LogWarning(
            "the ring buffer of the perf sideband is small cpu={} bytes={}: raise the locked-memory limit (ulimit -l)",
            cpu, data);
      const int fd = event->get();
      rings_.emplace(cpu, std::make_unique<Ring>(*std::move(event), memory, page + data, data));
      return wakeups_ < 0 ? absl::OkStatus() : AddWakeup(wakeups_, fd);
    }
    error = errno;
    if (error != EPERM && error != ENOMEM) break;
  }
  if (error == EPERM) {
    return Error(absl::StatusCode::kPermissionDenied,
                 "mmap of a perf ring buffer: EPERM: raise the locked-memory limit (ulimit -l) or "
                 "kernel.perf_event_mlock_kb, or grant CAP_IPC_LOCK");
  }
  return ErrnoStatus("mmap", "perf ring buffer", error);
}

void Sideband::RemoveCpu(int cpu) {
  if (auto node = rings_.extract(cpu)) retired_.push_back(std::move(node.mapped()));
}

std::vector<int> Sideband::cpus() const {
  std::vector<int> cpus;
  for (auto& [cpu, ring] : rings_) cpus.push_back(cpu);
  return cpus;
}

bool Sideband::IsDead(int cpu, MonotonicNs now) {
  auto it = rings_.find(cpu);
  if (it == rings_.end()) return false;
  absl::StatusOr<int64_t> enabled_ns = ReadEnabledNs(it->second->event);
  return !enabled_ns.ok() || it->second->standstill.Observe(now, *enabled_ns);
}

void Sideband::Deliver(std::span<const uint8_t> record, SidebandVisitor& visitor) {
  SidebandRecord parsed = ParseSidebandRecord(record);
  if (auto* mmap = std::get_if<MmapEvent>(&parsed)) return visitor.OnMmap(*mmap);
  if (auto* fork = std::get_if<ForkEvent>(&parsed)) return visitor.OnFork(*fork);
  if (auto* comm = std::get_if<CommEvent>(&parsed)) return visitor.OnComm(*comm);
  if (auto* exit = std::get_if<ExitEvent>(&parsed)) return visitor.OnExit(*exit);
  if (auto* code = std::get_if<KernelCodeEvent>(&parsed)) return visitor.OnKernelCode(*code);
  if (auto* cgroup = std::get_if<CgroupEvent>(&parsed)) return visitor.OnCgroup(*cgroup);
  if (auto* lost = std::get_if<LostEvent>(&parsed)) return ReportLost(lost->events, visitor);
  if (std::holds_alternative<BadRecord>(parsed)) bad_.Add();
}

void Sideband::ReportLost(uint64_t events, SidebandVisitor& visitor) {
  lost_.Add(events);
  visitor.OnLost(LostEvent{.events = events});
}

void Sideband::Drain(SidebandVisitor& visitor, MonotonicNs now) {
  if (std::exchange(gap_, false)) ReportLost(1, visitor);
  std::vector<Ring*> rings;
  for (auto& [cpu, ring] : rings_) rings.push_back(ring.get());
  for (auto& ring : retired_) rings.push_back(ring.get());

  using Head = std::tuple<int64_t, size_t>;  // time of a ring's next record, ring
  std::priority_queue<Head, std::vector<Head>, std::greater<>> heads;
  auto push = [&](size_t i) {
    std::span<const uint8_t> record = rings[i]->records.Next();
    if (!record.empty()) heads.emplace(SidebandRecordTime(record).value, i);
  };
  for (Ring* ring : rings) ring->records.Refresh();
  for (size_t i = 0; i < rings.size(); ++i) push(i);
  while (!heads.empty() && std::get<0>(heads.top()) <= now.value) {
    size_t i = std::get<1>(heads.top());
    heads.pop();
    Deliver(rings[i]->records.Next(), visitor);
    rings[i]->records.Pop();
    push(i);
  }
  for (Ring* ring : rings) {
    ring->records.Commit();
    if (uint64_t skipped = ring->records.corruptions() - ring->corruptions_seen) {
      ring->corruptions_seen += skipped;
      bad_.Add(skipped);
      visitor.OnLost(LostEvent{.events = skipped});
    }
  }
  std::erase_if(retired_, [](auto& ring) { return ring->records.Next().empty(); });
}

}  // namespace tributary
