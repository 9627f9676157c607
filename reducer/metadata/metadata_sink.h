#pragma once

#include <string>
#include <utility>

#include "profile/metadata.h"

namespace tributary {

// A source of metadata: a node, which describes itself and its containers, or a cluster's watcher.
struct MetadataTeller {
  bool is_cluster = false;
  std::string id;  // the session's node id, which its credential allows

  friend bool operator==(const MetadataTeller&, const MetadataTeller&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const MetadataTeller& teller) {
    return H::combine(std::move(h), teller.is_cluster, teller.id);
  }
};

// Receives the metadata of hosts, containers and pods from sessions, in order within each session. Called on the
// shards' loops, several at a time. Each call must return soon.
class MetadataSink {
 public:
  virtual void Connected(const MetadataTeller& teller) = 0;
  virtual void Disconnected(const MetadataTeller& teller) = 0;
  virtual void Take(const MetadataTeller& teller, MetadataUpdate update) = 0;

 protected:
  ~MetadataSink() = default;
};

}  // namespace tributary
