#include "reducer/query/series_places.h"

#include <utility>

#include "base/status.h"

namespace tributary {
namespace {

// What a process in SplitStates takes, what a list of states takes without its states, and what a resource takes
// without its attributes. An attribute is in a resource, and in the key of the resource.
constexpr size_t kSplitBytes = 48, kStatesBytes = 128, kResourceBytes = 160, kAttributeBytes = 2 * 96;

}  // namespace

absl::Status SeriesPlaces::Add(const store::ProcessIds& process, const SeriesWeight& weight, SplitStates* split) {
  ASSIGN_OR_RETURN(const ProcessResources::Place place, resources_.PlaceOf(process));
  if (place.is_new) {
    ASSIGN_OR_RETURN(const SeriesNames::Entries entries, EntriesOf(process, place.no));
    of_place_.push_back(entries);
  }
  const SeriesNames::Entries& entries = of_place_[place.no];
  if (entries.service != nullptr) {
    entries.Add(weight);
    return absl::OkStatus();
  }
  split->emplace(process.no, changing_.at(place.no));
  return resources_.Keep(kSplitBytes);
}

absl::StatusOr<SeriesNames::Entries> SeriesPlaces::EntriesOf(const store::ProcessIds& process, uint32_t place) {
  static_assert(sizeof(SeriesNames::Entries) <= ProcessResources::kBytesOfCallerMax);
  ASSIGN_OR_RETURN(const ResourceStates states, resources_.Join(process));
  if (states.size() == 1) return names_.EntriesOf(states.front().resource->attributes, false);
  ResourceStates changing;
  for (const ResourceState& state : states) {
    Attributes named = SeriesNames::Named(state.resource->attributes);
    if (!changing.empty() && changing.back().resource->attributes == named) continue;
    ASSIGN_OR_RETURN(std::shared_ptr<const Resource> shared, Share(std::move(named)));
    changing.push_back({state.from, std::move(shared)});
  }
  if (changing.size() == 1) return names_.EntriesOf(changing.front().resource->attributes, false);
  RETURN_IF_ERROR(resources_.Keep(kStatesBytes + changing.size() * sizeof(ResourceState)));
  changing_.emplace(place, std::make_shared<const ResourceStates>(std::move(changing)));
  return SeriesNames::Entries();
}

absl::StatusOr<std::shared_ptr<const Resource>> SeriesPlaces::Share(Attributes attributes) {
  std::shared_ptr<const Resource>& shared = shared_[attributes];
  if (shared != nullptr) return shared;
  size_t bytes = kResourceBytes;
  for (const Attribute& attribute : attributes) {
    bytes += kAttributeBytes + 2 * (attribute.key.size() + attribute.value.size());
  }
  shared = std::make_shared<const Resource>(Resource{.attributes = std::move(attributes)});
  RETURN_IF_ERROR(resources_.Keep(bytes));
  return shared;
}

}  // namespace tributary
