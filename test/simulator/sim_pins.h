#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <set>

#include "bpf/include/session.h"
#include "intake/client/delivery.h"
#include "kernel-collector/probes/predecessor.h"
#include "profile/model.h"

namespace tributary::sim {

// PinnedSession without a kernel: what a collector leaves for the next one. Outlives the collectors of its machine.
class SimPins {
 public:
  void Begin();  // a collector starts: it reads what there is, and pins its own
  // Of the kernel side: they outlive their collector for as long as the pins do.
  void Count(const SampleCounts& captured, const SampleCounts& lost_ring_full);

  // As Uplink tells Delivery of it.
  std::optional<intake::EndedCollector> Earlier() const;
  void ForgetPredecessor(const SampleCounts& handed_on);
  void Set(size_t slot, const intake::EndedCollector::Session& session, bool asked);
  void Finish(bool undelivered);
  // More sessions died untold than the pins have room for: the oldest are not answered for to the last sample.
  bool overflowed() const { return overflowed_; }
  uint32_t deaths() const { return deaths_; }  // that the next collector had to tell of
  size_t reducers_asked() const { return asked_.size(); }

 private:
  bool open_ = false;   // the owner has not called Finish
  bool forgot_ = true;  // no earlier collector is left to be told of
  bool overflowed_ = false;
  uint32_t deaths_ = 0;
  std::set<size_t> asked_;  // reducers
  Accounting counters_;
  std::optional<trib_session> pinned_;
};

}  // namespace tributary::sim
