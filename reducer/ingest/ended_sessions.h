#pragma once

#include <deque>
#include <string>
#include <string_view>

#include "absl/container/flat_hash_set.h"
#include "reducer/ingest/batch_writer.h"

namespace tributary::ingest {

// Remembers the sessions that nodes reported as ended, the last `sessions_max` of them. A busy reducer may accept the
// connection of a killed collector late: after the node's next collector has reported the session of the killed one as
// ended. Data that arrives so late must not be stored. The sessions need not be saved to disk, because no connection
// outlives the reducer's process. Used by one thread.
class EndedSessions {
 public:
  explicit EndedSessions(size_t sessions_max = 4'096) : sessions_max_(sessions_max) {}

  void Add(std::string_view node_id, const SessionId& id) {
    const auto [it, added] = known_.insert(KeyOf(node_id, id));
    if (!added) return;
    oldest_first_.push_back(*it);
    if (oldest_first_.size() <= sessions_max_) return;
    known_.erase(oldest_first_.front());
    oldest_first_.pop_front();
  }
  bool Contains(std::string_view node_id, const SessionId& id) const { return known_.contains(KeyOf(node_id, id)); }

 private:
  static std::string KeyOf(std::string_view node_id, const SessionId& id) {
    std::string key(reinterpret_cast<const char*>(id.data()), id.size());
    return key.append(node_id);
  }

  const size_t sessions_max_;
  absl::flat_hash_set<std::string> known_;
  std::deque<std::string> oldest_first_;
};

}  // namespace tributary::ingest
