#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "reducer/query/process_resources.h"
#include "reducer/query/series_names.h"
#include "reducer/query/series_weights.h"

namespace tributary {

// Adds the weights of the processes of one shard to the names of their places. Keeps four pointers for a place, not its
// resource. If the names of a place change within the range, keeps the states of its resource with only the attributes
// that are names. Many places have equal ones, and these are kept once. Used by one thread.
class SeriesPlaces {
 public:
  // `resources` and `names` must outlive the object.
  SeriesPlaces(ProcessResources& resources, SeriesNames& names) : resources_(resources), names_(names) {}

  // Call it with the newest description of a process first. If the names of the process change within the range, adds
  // the process to `split` instead. ResourceExhausted: as ProcessResources.
  absl::Status Add(const store::ProcessIds& process, const SeriesWeight& weight, SplitStates* split);

 private:
  absl::StatusOr<SeriesNames::Entries> EntriesOf(const store::ProcessIds& process, uint32_t place);
  absl::StatusOr<std::shared_ptr<const Resource>> Share(Attributes attributes);

  ProcessResources& resources_;
  SeriesNames& names_;
  std::vector<SeriesNames::Entries> of_place_;  // by the place's number; without a service: the names change
  absl::flat_hash_map<uint32_t, std::shared_ptr<const ResourceStates>> changing_;  // by the place's number
  std::map<Attributes, std::shared_ptr<const Resource>> shared_;                   // of changing_
};

}  // namespace tributary
