#pragma once

#include <array>
#include <cstddef>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "profile/attributes.h"
#include "reducer/query/query_request.h"
#include "reducer/query/series.h"
#include "reducer/query/series_weights.h"

namespace tributary {

// The containers, hosts, pods, namespaces, workloads and services of an answer, and their weights. An entry with an id
// is identified by the id, another entry by its name, namespace and kind. The maps are ordered, so that entries of
// equal weight have the same order in every answer. Used by one thread.
class SeriesNames {
 public:
  // Maximum number of containers, pods, namespaces, workloads and services in an answer before it is cut.
  static constexpr size_t kNamedMax = 200'000;
  // What an entry takes without its texts, and what a container takes.
  static constexpr size_t kEntryBytes = 320, kContainerBytes = kEntryBytes + 2 * 64;

  using Entry = SeriesList::Named;
  using Key = std::tuple<std::string, std::string, std::string>;
  using Map = std::map<Key, Entry>;
  using List = std::vector<Entry> SeriesList::*;

  // The entries that the weights of a resource count for, besides host and container. nullptr: the resource has none.
  // They are valid as long as the object.
  struct Entries {
    Entry *pod = nullptr, *name_space = nullptr, *workload = nullptr, *service = nullptr;
    void Add(const SeriesWeight& weight) const;
  };

  // Returns the attributes that EntriesOf reads.
  static Attributes Named(const Attributes& attributes);
  // Makes the entries of a resource, if they are new, and names its container. `is_newer`: than the resources before.
  // The newest name of an id is kept.
  Entries EntriesOf(const Attributes& attributes, bool is_newer);
  void AddHost(std::string id, std::string name, const SeriesWeight& weight);
  void AddContainer(std::string id, const SeriesWeight& weight);
  // Moves the entries of `other` into this object. If both have a name for an id, that of `other` is kept.
  absl::Status Merge(SeriesNames& other, const QueryRequest& request);

  size_t containers() const { return containers_.size(); }
  size_t bytes() const { return bytes_; }  // of the entries, except those that Merge has moved here
  // Returns the number of entries that kNamedMax limits. `containers`: the number of those that were found but may not
  // be entries yet.
  size_t Count(size_t containers = 0) const;
  // Returns ResourceExhausted if there are too many.
  absl::Status Check(size_t containers = 0) const;

  std::array<std::pair<Map*, List>, 6> lists() {
    return {{{&containers_, &SeriesList::containers},
             {&hosts_, &SeriesList::hosts},
             {&pods_, &SeriesList::pods},
             {&namespaces_, &SeriesList::namespaces},
             {&workloads_, &SeriesList::workloads},
             {&services_, &SeriesList::services}}};
  }

 private:
  Entry* Describe(Map* map, Entry described, bool is_newer);
  Entry* Describe(Map* map, const Key& key, Entry described, bool is_newer);

  Map containers_, hosts_, pods_, namespaces_, workloads_, services_;
  size_t bytes_ = 0;
};

}  // namespace tributary
