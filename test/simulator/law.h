#pragma once

#include <string>
#include <vector>

#include "test/simulator/durable_store.h"
#include "test/simulator/sim_collector.h"

namespace tributary::sim {

// Returns whether the reducers' numbers of the node must be exact. They need not be exact, and are not, in two cases:
// - A collector ended without reporting its end, and the node has used several reducers. One session accounts for all
//   reducers. It counts only the acknowledged samples of the sessions at other reducers.
// - More sessions ended without a report than the pins hold.
bool IsExact(const SimCollector& collector);
// Checks captured = stored + lost by reason, for each sample type, for one node over all reducers. The law must hold
// for the numbers that the reducers received and for the real numbers. Returns the problem, or "" if the law holds or
// need not be exact.
std::string CheckLaw(const SimCollector& collector, const std::vector<const DurableStore*>& stores);
// For a trace: returns the numbers that each of the node's sessions reported, and its number of stored samples.
std::string SessionsOf(const SimCollector& collector, const std::vector<const DurableStore*>& stores);
// Checks that every stored sample is equal to the captured sample and is stored once. This must hold at any time. Reads
// all samples. Returns the problem, or "".
std::string CheckStored(const SimCollector& collector, const std::vector<const DurableStore*>& stores);
// Returns the reducers' numbers of the node. `stored` receives the stored samples.
Accounting AccountOf(const SimCollector& collector, const std::vector<const DurableStore*>& stores,
                     SampleCounts* stored);

}  // namespace tributary::sim
