#include "kernel-collector/probes/pinned_session.h"

#include <bpf/bpf.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/log.h"
#include "base/status.h"
#include "kernel-collector/probes/pins.h"
#include "kernel-collector/probes/type_counters.h"

namespace tributary {
namespace {

// Returns an empty Accounting if the pinned counters do not have that id. Then their owner was killed before it pinned
// its own counters, and so before it sampled.
Accounting ReadPinnedCounters(const std::string& path, uint32_t id) {
  Fd map(bpf_obj_get(path.c_str()));
  auto info = MapInfo(map.get());
  if (!info || info->id != id || info->type != BPF_MAP_TYPE_PERCPU_ARRAY || info->value_size != sizeof(uint64_t)) {
    return {};
  }
  return KernelCounters(std::move(map), KernelCounters::ContextsOf(info->max_entries)).ReadAccounting();
}

}  // namespace

PinnedSession::PinnedSession(Options options, int counters_fd, std::shared_ptr<const KernelCounters> counters)
    : folder_(options.folder), counters_(std::move(counters)) {
  if (folder_.empty()) return;
  if (options.pid.value == 0) options.pid = Pid{getpid()};
  if (absl::Status status = Pin(options, counters_fd); !status.ok()) {
    map_.Reset();
    LogWarning(
        "cannot pin the counters of samples cause=\"{}\": if this collector is killed, its lost samples are not "
        "counted",
        Message(status));
  }
}

PinnedSession::~PinnedSession() {
  if (map_.valid()) Finish(counters_->Read(TRIB_CAPTURED) != 0);
}

absl::Status PinnedSession::Pin(const Options& options, int counters_fd) {
  RETURN_IF_ERROR(MakePinFolder(folder_));
  auto counters = MapInfo(counters_fd);
  auto start_ticks = ProcessStartTicks(options.proc_root, options.pid);
  if (!counters || !start_ticks)
    return Error(absl::StatusCode::kInternal,
                 "the id of the counters' map or the start time of this process is unknown");
  ReadEarlier(options);
  record_.version = TRIB_SESSION_VERSION;
  record_.pid = static_cast<uint32_t>(options.pid.value);
  record_.start_ticks = *start_ticks;
  record_.counters_id = counters->id;
  map_ = Fd(bpf_map_create(BPF_MAP_TYPE_ARRAY, "trib_session", sizeof(uint32_t), sizeof(record_), 1, nullptr));
  if (!map_.valid()) return ErrnoStatus("create", "map trib_session", errno);
  Write();
  RETURN_IF_ERROR(ReplacePin(map_.get(), SessionPath()));
  return ReplacePin(counters_fd, CountersPath());
}

void PinnedSession::ReadEarlier(const Options& options) {
  Fd map(bpf_obj_get(SessionPath().c_str()));
  auto info = MapInfo(map.get());
  if (!info) return;
  trib_session earlier = {};
  const uint32_t key = 0;
  if (info->type != BPF_MAP_TYPE_ARRAY || info->value_size != sizeof(earlier) ||
      bpf_map_lookup_elem(map.get(), &key, &earlier) != 0 || earlier.version != TRIB_SESSION_VERSION) {
    return LogInfo("pinned counters of another release of the collector are replaced without being read");
  }
  // The other collector continues to run. It keeps its own data and its unreported data of others.
  if (ProcessStartTicks(options.proc_root, Pid{static_cast<int32_t>(earlier.pid)}) == earlier.start_ticks) {
    other_runs_ = true;
    return LogInfo("another collector runs on this machine pid={}", earlier.pid);
  }
  record_.ended = AddEnded(earlier, ReadPinnedCounters(CountersPath(), earlier.counters_id));
  predecessor_ = ToPredecessor(record_.ended);
  if (!predecessor_) return;
  LogInfo("an earlier collector {} captured={} unattributed={} sessions={}",
          predecessor_->stopped ? "could not deliver all samples" : "was killed",
          predecessor_->accounting.captured.total(), predecessor_->unattributed().total(), predecessor_->shares.size());
}

void PinnedSession::Write() {
  const uint32_t key = 0;
  // An array's element always exists.
  TRIBUTARY_CHECK(bpf_map_update_elem(map_.get(), &key, &record_, BPF_ANY) == 0);
}

void PinnedSession::ForgetPredecessor(const SampleCounts& taken_over) {
  predecessor_.reset();
  if (!map_.valid()) return;
  record_.ended = TakenOver(taken_over);
  Write();
}

void PinnedSession::Set(size_t slot, const Predecessor::Share& share, bool asked) {
  TRIBUTARY_CHECK(slot < kSlots);
  if (!map_.valid()) return;
  std::memcpy(record_.shares[slot].session_id, share.session_id.data(), share.session_id.size());
  WriteTypes(share.attributed, record_.shares[slot].attributed);
  record_.shares[slot].asked = asked ? 1 : 0;
  record_.last_slot = static_cast<uint32_t>(slot);
  Write();
}

// The session's pin is removed first: counters alone do not report a loss.
void PinnedSession::Finish(bool undelivered) {
  if (!map_.valid()) return;
  if (undelivered || predecessor_) {
    record_.stopped = 1;
    Write();
  } else {
    if (auto info = MapInfo(map_.get())) Unpin(info->id, SessionPath());
    Unpin(record_.counters_id, CountersPath());
  }
  map_.Reset();
}

}  // namespace tributary
