#pragma once

#include <string>
#include <vector>

#include "test/simulator/durable_store.h"
#include "test/simulator/sim_collector.h"

namespace tributary::sim {

// Returns true if the reducers' numbers of the node must be exact. They may be wrong in two cases:
// - A collector ended without a report, and the node has used several reducers. The next collector reports the lost
//   samples to one reducer only. This reducer knows only the acknowledged samples of the sessions with other reducers.
// - More sessions ended without a report than SimPins can hold.
bool IsExact(const SimCollector& collector);
// Checks captured = stored + lost by reason, for each sample type and for process events, for one node over all
// reducers. The law must hold for the numbers that the reducers received, and for the numbers that the simulator
// counted itself. Samples in doubt may count both as stored and as lost. If a reducer was of a release without process
// events, the reducers do not know all events that they did not take. Then the check uses the collector's own count of
// these events. Returns the problem, or "" if the law holds or IsExact returns false.
std::string CheckLaw(const SimCollector& collector, const std::vector<const DurableStore*>& stores);
// For a trace: returns the numbers that each of the node's sessions reported, and its number of stored samples.
std::string SessionsOf(const SimCollector& collector, const std::vector<const DurableStore*>& stores);
// Checks that every stored sample and event is equal to the captured one and is stored once. This must hold at any
// time. Reads all samples and events. Returns the problem, or "".
std::string CheckStored(const SimCollector& collector, const std::vector<const DurableStore*>& stores);
// Returns the node's accounting, summed over all reducers. Sets `stored` to the numbers of stored samples.
Accounting AccountOf(const SimCollector& collector, const std::vector<const DurableStore*>& stores,
                     SampleCounts* stored);

}  // namespace tributary::sim
