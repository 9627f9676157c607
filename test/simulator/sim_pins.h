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

// Does the work of PinnedSession without a kernel: keeps the data that a collector leaves for the next collector.
// Outlives the collectors of its machine.
class SimPins {
 public:
  void Begin();  // a collector starts: it reads the pinned data, if any, and pins its own data
  // Adds to the counters of the kernel side. The counters outlive their collector as long as the pins exist.
  void Count(const SampleCounts& captured, const SampleCounts& lost_ring_full);

  // Returns the account of earlier collectors that Uplink would pass to Delivery.
  std::optional<intake::EndedCollector> Earlier() const;
  void ForgetPredecessor(const SampleCounts& taken_over);
  void Set(size_t slot, const intake::EndedCollector::Session& session, bool asked);
  void Finish(bool undelivered);
  // Returns true if more sessions ended without a report than the pinned data has space for. The numbers of the oldest
  // sessions are then not exact.
  bool overflowed() const { return overflowed_; }
  uint32_t deaths() const { return deaths_; }  // collectors whose end the next collector had to report
  size_t reducers_asked() const { return asked_.size(); }

 private:
  bool open_ = false;   // the current collector has not called Finish
  bool forgot_ = true;  // no earlier collector is left to report
  bool overflowed_ = false;
  uint32_t deaths_ = 0;
  std::set<size_t> asked_;  // reducers to which batches may have been sent
  Accounting counters_;
  std::optional<trib_session> pinned_;
};

}  // namespace tributary::sim
