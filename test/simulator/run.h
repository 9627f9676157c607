#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "test/simulator/network.h"
#include "test/simulator/rules.h"
#include "test/simulator/sim_collector.h"
#include "test/simulator/sim_reducer.h"
#include "test/simulator/wire_watch.h"
#include "test/simulator/world.h"

namespace tributary::sim {

struct Result {
  std::string violation;  // "": no rule was broken
  uint64_t hash = 0;      // of all events of the run
  uint64_t events = 0;
  SampleCounts captured, stored;
  uint64_t faults = 0;
  SampleCounts lost[kLossReasonCount] = {};
  uint64_t exported = 0, exported_twice = 0;  // samples that receivers of exports accepted
};

// The run of one seed. The seed determines the machines and the faults. In the last phase of the run there are no more
// faults. At its end, the law (captured = stored + lost) must hold.
class Run {
 public:
  // `faults`: letters of the parts that may fail: n(etwork), r(educers), c(ollectors), d(isks of collectors),
  // e(xports). `outage`: the receivers of the exports are away for an hour.
  Run(uint64_t seed, Break broken, std::string faults, bool outage, bool trace);
  ~Run();
  Result Execute();

 private:
  void Build(uint64_t seed);
  Result Sum();
  void NextFault();
  void FaultOfNetwork();
  void FaultOfReducer();
  void FaultOfCollector();
  void FaultOfDisk(SimCollector& collector);
  void Darken(const std::string& from, const std::string& to);
  void Later(int64_t min_ms, int64_t max_ms, std::function<void()> undo);
  void RunFaults(int64_t end_ns, int64_t next_fault_ns, int64_t pause_ms);
  void Heal();
  void Step(int64_t ns);
  SimReducer& AnyReducer() { return *reducers_[world_.Below(reducers_.size())]; }
  SimCollector& AnyCollector() { return *collectors_[world_.Below(collectors_.size())]; }

  const Break broken_;
  const std::string kinds_;
  const bool outage_;
  World world_;
  Network network_;
  std::vector<std::unique_ptr<SimReducer>> reducers_;
  std::vector<std::unique_ptr<SimCollector>> collectors_;
  std::unique_ptr<WireWatch> watch_;
  bool healed_ = false;
  uint64_t faults_ = 0;
};

}  // namespace tributary::sim
