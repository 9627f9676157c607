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

// This collector's pins in a bpffs: its counters, and for each of its sessions the number of samples that reducers have
// acknowledged. From these pins, the next collector finds out what a killed collector lost. The pins of earlier
// collectors are read at the start, before they are replaced. If another collector still runs, its pins are replaced
// too, but it is not reported as killed. When it stops, it does not remove our pins.
//
// A kill at any instruction leaves either the old or the new state. An update is one system call. New pins take effect
// one after the other by renaming, and the first of them contains the earlier collectors' sums. One thread. A
// default-constructed object pins nothing. Without a writable bpffs, nothing is pinned either, and this is logged once.
class PinnedSession {
 public:
  struct Options {
    std::string folder;  // in a bpffs, created if missing; "" pins nothing
    std::string proc_root = "/proc";
    // The owner's pid in /proc; 0 = this process. For tests.
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

  // Earlier collectors that are not yet reported to a reducer, until ForgetPredecessor.
  const std::optional<Predecessor>& predecessor() const { return predecessor_; }
  // Call it when the report about the predecessor is durable at a reducer. `taken_over`: samples and losses that the
  // predecessor captured and this collector's sessions have reported. If this collector is killed, they count as
  // captured by it, since its sessions account for them.
  void ForgetPredecessor(const SampleCounts& taken_over);

  // Stores a session in one of kSlots slots. `share`: the samples and losses that its acknowledged batches have
  // reported so far. `asked`: whether anything was sent in the session. The caller must set `asked` before the first
  // send, since a reducer may store a batch without an acknowledgement. Called with every acknowledgement. One system
  // call, about 1 µs.
  void Set(size_t slot, const Predecessor::Share& share, bool asked);

  // Call it when sampling has ended. If everything captured was delivered or is in the spool, the pins are removed. If
  // `undelivered` is true or a predecessor was not reported, they stay for the next collector. Later calls of any
  // method do nothing.
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
};

}  // namespace tributary
