#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/refusals.h"
#include "reducer/access/access_control.h"
#include "reducer/metadata/metadata_store.h"
#include "reducer/store/damage_list.h"
#include "reducer/store/store.h"

namespace tributary {

// StatusJson returns the JSON body of /api/v1/status (docs/api.md). Like the functions in answers.h, it depends only on
// its arguments.

struct ReducerStatus {
  int64_t uptime_s = 0;
  double cpu_seconds = 0;
  uint64_t rss_bytes = 0, disk_bytes = 0;
  uint32_t shards = 0;
  uint64_t symbol_tables = 0;
  std::vector<MetadataStore::Cluster> clusters;
  std::vector<Refusals::Entry> refusals;
  std::vector<store::DamageEntry> damage;
};
// connected[i] is true if nodes[i] is connected.
std::string StatusJson(const std::vector<store::NodeStatus>& nodes, const std::vector<bool>& connected,
                       const ReducerStatus& reducer);
// Returns the JSON body of /api/v1/whoami.
std::string CallerJson(const Caller& caller);

}  // namespace tributary
