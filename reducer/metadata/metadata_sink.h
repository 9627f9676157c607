#pragma once

#include <string>
#include <utility>

#include "profile/metadata.h"

namespace tributary {

// A sender of metadata: a node, which describes itself and its containers, or a cluster's watcher.
struct MetadataSender {
  bool is_cluster = false;
  std::string id;  // the session's node id, which its credential allows

  friend bool operator==(const MetadataSender&, const MetadataSender&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const MetadataSender& sender) {
    return H::combine(std::move(h), sender.is_cluster, sender.id);
  }
};

// Receives the metadata of hosts, containers and pods from sessions, in order within each session. Called on the
// shards' loops, several at a time. Each call must return soon.
class MetadataSink {
 public:
  virtual void Connected(const MetadataSender& sender) = 0;
  virtual void Disconnected(const MetadataSender& sender) = 0;
  virtual void Take(const MetadataSender& sender, MetadataUpdate update) = 0;

 protected:
  ~MetadataSink() = default;
};

}  // namespace tributary
