#pragma once

#include <string>
#include <vector>

#include "test/simulator/durable_store.h"
#include "test/simulator/sim_collector.h"

namespace tributary::sim {

// Whether what the reducers know of the node must be exact. It need not, and is not, where a collector died untold and
// the node has used several reducers (one session answers for all, and takes those elsewhere for no more than was
// acknowledged), or where more sessions died untold than the pins hold.
bool IsExact(const SimCollector& collector);
// captured = stored + lost by reason, for each sample type, for one node over all reducers: as the reducers were told,
// and as it was. "" when it holds; else what is wrong.
std::string CheckLaw(const SimCollector& collector, const std::vector<const DurableStore*>& stores);
// For a trace: what each of the node's sessions told, and what is stored of it.
std::string SessionsOf(const SimCollector& collector, const std::vector<const DurableStore*>& stores);
// Every stored sample is the captured one, and is stored once. Must hold at any time; costs a look at all samples.
std::string CheckStored(const SimCollector& collector, const std::vector<const DurableStore*>& stores);
// What the reducers know of the node.
Accounting AccountOf(const SimCollector& collector, const std::vector<const DurableStore*>& stores,
                     SampleCounts* stored);

}  // namespace tributary::sim
