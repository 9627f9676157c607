#include "kernel-collector/probes/pinned_session.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "base/log.h"
#include "base/status.h"
#include "kernel-collector/probes/type_counters.h"

namespace tributary {
namespace {

std::optional<bpf_map_info> MapInfo(int map_fd) {
  bpf_map_info info = {};
  uint32_t size = sizeof(info);
  if (map_fd < 0 || bpf_obj_get_info_by_fd(map_fd, &info, &size) != 0) return std::nullopt;
  return info;
}

absl::Status MakeFolder(const std::string& folder) {
  const std::string mount = std::filesystem::path(folder).parent_path();
  struct statfs status = {};
  if (statfs(mount.c_str(), &status) != 0 || status.f_type != BPF_FS_MAGIC) {
    return Error(absl::StatusCode::kFailedPrecondition, "no bpffs is mounted at " + mount);
  }
  if (mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) return ErrnoStatus("mkdir", folder, errno);
  return absl::OkStatus();
}

// Replaces the map that is pinned at `path`, if any. At every moment, the old or the new map is pinned there.
absl::Status Replace(int map_fd, const std::string& path) {
  const std::string aside = path + "_new";  // a bpffs allows no names with a dot
  if (unlink(aside.c_str()) != 0 && errno != ENOENT) return ErrnoStatus("unlink", aside, errno);
  if (bpf_obj_pin(map_fd, aside.c_str()) != 0) return ErrnoStatus("pin", aside, errno);
  if (rename(aside.c_str(), path.c_str()) != 0) return ErrnoStatus("rename", aside, errno);
  return absl::OkStatus();
}

// Removes the pin, unless the map of a younger collector has replaced it.
void Unpin(uint32_t map_id, const std::string& path) {
  Fd pinned(bpf_obj_get(path.c_str()));
  auto info = MapInfo(pinned.get());
  if (info && info->id == map_id) unlink(path.c_str());
}

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
  RETURN_IF_ERROR(MakeFolder(folder_));
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
  RETURN_IF_ERROR(Replace(map_.get(), SessionPath()));
  return Replace(counters_fd, CountersPath());
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
