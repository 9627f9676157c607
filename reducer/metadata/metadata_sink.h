#pragma once

#include <string>
#include <utility>

#include "profile/metadata.h"

namespace tributary {

// A sender of metadata: a node or a cluster's watcher (k8s-collector). A node describes itself and its containers.
struct MetadataSender {
  bool is_cluster = false;
  std::string id;  // the session's node id

  friend bool operator==(const MetadataSender&, const MetadataSender&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const MetadataSender& sender) {
    return H::combine(std::move(h), sender.is_cluster, sender.id);
  }
};

// Receives the metadata of hosts, containers and pods that sessions send. Updates of one session arrive in order.
// Several shards' loops may call the methods at the same time. Each call must return soon.
class MetadataSink {
 public:
  virtual void Connected(const MetadataSender& sender) = 0;
  virtual void Disconnected(const MetadataSender& sender) = 0;
  virtual void Take(const MetadataSender& sender, MetadataUpdate update) = 0;

 protected:
  ~MetadataSink() = default;
};

// Sees every change of the newest state of each entity in memory. LiveEntities calls it under its lock, so the calls
// are in order, and must be short.
class EntityObserver {
 public:
  // `gone`: the entity has ended, and `newest` is its last state.
  virtual void OnState(const MetadataSender& sender, const Entity& newest, bool gone) = 0;
  // After a start: a stored entity that ended at `at`. The calls come in no order, after the calls of OnState for the
  // stored entities that have not ended.
  virtual void OnStoredEnd(const MetadataSender& sender, const Entity& newest, UnixNs at) = 0;
  // All stored entities were reported.
  virtual void OnLoaded() = 0;

 protected:
  ~EntityObserver() = default;
};

}  // namespace tributary
