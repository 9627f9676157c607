#pragma once

#include <set>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "reducer/ingest/batch_writer.h"

namespace tributary::ingest {

// The sessions of a shard whose batch did not fit into the writer's queue. After each commit, some of them may try
// again. A shard has thousands of sessions and 15 commits a second. So a commit looks only at the sessions that wait.
//
// A session that has closed stays in the list until the next commit of its node. This commit always comes: a session
// waits for its node's share only while the queue contains a batch of the node. Only one thread may use the object.
class WaitingSessions {
 public:
  void AddForQueue(const SessionId& id) { queue_.insert(id); }  // the queue is full
  // The node has filled its share of the queue.
  void AddForShare(const std::string& node_id, const SessionId& id) { shares_[node_id].insert(id); }

  // Call it after a commit of batches of `nodes`. Removes the sessions that may try again, and returns them in the
  // order of their ids: a simulation with the same seed must run in the same way.
  std::set<SessionId> Take(const absl::flat_hash_set<std::string>& nodes) {
    std::set<SessionId> ready = std::exchange(queue_, {});
    for (const std::string& node : nodes) {
      const auto share = shares_.find(node);
      if (share == shares_.end()) continue;
      ready.merge(share->second);
      shares_.erase(share);
    }
    return ready;
  }

 private:
  std::set<SessionId> queue_;
  absl::flat_hash_map<std::string, std::set<SessionId>> shares_;  // key: node id
};

}  // namespace tributary::ingest
