#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "base/fd.h"
#include "bpf/include/session.h"
#include "kernel-collector/probes/kernel_counters.h"
#include "kernel-collector/probes/predecessor.h"

namespace tributary {

// The BPF maps that this collector pins in a bpffs, where they outlive the process. They contain the collector's
// counters, and for each of its sessions the number of samples that reducers have acknowledged. If the collector is
// killed, the next collector finds out from these pins how many samples were lost. The pins of earlier collectors are
// read at the start, before they are replaced. If another collector still runs, its pins are replaced too, but it is
// not reported as killed. When that collector stops, it does not remove the pins of this collector.
//
// If this process is killed during an update, the pins contain either the old or the new data, because an update is one
// system call. New pins replace old pins by renaming, one after the other. The first of them already contains the sums
// of the earlier collectors. Not thread-safe. A default-constructed object pins nothing. Without a writable bpffs,
// nothing is pinned either, and this is logged once.
class PinnedSession {
 public:
  struct Options {
    std::string folder;  // in a bpffs, created if missing; "" pins nothing
    std::string proc_root = "/proc";
    // The collector's pid in `proc_root`; 0: the pid of this process. Only tests set it.
    Pid pid;
  };
  static constexpr size_t kSlots = TRIB_SESSION_SHARES_MAX;

  PinnedSession() = default;
  // `counters_fd` is the map that `counters` reads. It is borrowed during the call.
  PinnedSession(Options options, int counters_fd, std::shared_ptr<const KernelCounters> counters);
  ~PinnedSession();  // calls Finish, with `undelivered` = true if anything was captured
  PinnedSession(const PinnedSession&) = delete;
  PinnedSession& operator=(const PinnedSession&) = delete;

  bool pinned() const { return map_.valid(); }
  // Whether another collector still ran when this one started.
  bool other_runs() const { return other_runs_; }

  // The data of earlier collectors that is not yet reported to a reducer. ForgetPredecessor clears it.
  const std::optional<Predecessor>& predecessor() const { return predecessor_; }
  // Call it when the report about the predecessor is durable at a reducer. `taken_over`: the samples and losses of the
  // predecessor that this collector's sessions have reported. If this collector is killed, they count as captured by
  // this collector, because its sessions account for them.
  void ForgetPredecessor(const SampleCounts& taken_over);

  // Stores a session in one of kSlots slots. `share`: the samples and losses that its acknowledged batches have
  // reported so far. `asked`: whether anything was sent in the session, or is about to be sent. Call Set with `asked` =
  // true before the first send, because a reducer may store a batch although its acknowledgement never arrives. Call
  // Set after every acknowledgement. Costs one system call, about 1 µs.
  void Set(size_t slot, const Predecessor::Share& share, bool asked);

  // Call it when sampling has ended. `undelivered`: whether a captured sample was neither delivered nor stored in the
  // spool. If `undelivered` is true or a predecessor was not reported, the pins stay for the next collector. Otherwise
  // they are removed. Later calls do not change the pins.
  void Finish(bool undelivered);

 private:
  absl::Status Pin(const Options& options, int counters_fd);
  void ReadEarlier(const Options& options);
  void Write();
  std::string CountersPath() const { return folder_ + "/counters"; }
  std::string SessionPath() const { return folder_ + "/session"; }

  std::string folder_;
  std::shared_ptr<const KernelCounters> counters_;
  Fd map_;  // trib_session; not valid if nothing is pinned or Finish was called
  trib_session record_ = {};
  std::optional<Predecessor> predecessor_;
  bool other_runs_ = false;
};

}  // namespace tributary
