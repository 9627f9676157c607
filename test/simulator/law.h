#pragma once

#include <string>
#include <vector>

#include "test/simulator/durable_store.h"
#include "test/simulator/sim_collector.h"

namespace tributary::sim {

// captured = stored + lost by reason, for one node over all reducers: as the reducers were told, and as it was. "" when
// it holds; else what is wrong.
std::string CheckLaw(const SimCollector& collector, const std::vector<const DurableStore*>& stores);
// Every stored sample is the captured one, and is stored once. Must hold at any time; costs a look at all samples.
std::string CheckStored(const SimCollector& collector, const std::vector<const DurableStore*>& stores);
// What the reducers know of the node.
Accounting AccountOf(const SimCollector& collector, const std::vector<const DurableStore*>& stores, uint64_t* stored);

}  // namespace tributary::sim
