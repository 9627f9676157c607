#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/metrics.h"

namespace tributary::store {

// What the memory of sessions is used for.
enum class MemoryKind : uint8_t {
  kSessions,      // one entry per session
  kDecoders,      // nodes and frames, for decoding
  kExecutables,   // ids of executables, for requests of symbol tables
  kDictionaries,  // definitions without the texts, and their ids in the store
  kStrings,       // texts of the definitions
};
constexpr size_t kMemoryKindCount = 5;
std::string_view MemoryKindName(MemoryKind kind);

// The memory of one session by kind, in bytes. Counts what is allocated (the capacity of vectors, all slots of hash
// maps), not what is in use: a node decides which of its definitions are dropped, and so how much is allocated but
// unused.
struct MemoryUse {
  std::array<size_t, kMemoryKindCount> bytes{};

  size_t& operator[](MemoryKind kind) { return bytes[static_cast<size_t>(kind)]; }
  size_t total() const;
  friend bool operator==(const MemoryUse&, const MemoryUse&) = default;
};

// Adds up the memory of the sessions that one owner keeps, and says when the owner must evict sessions. A shard has two
// owners: its loop (ingest/session_memory.h) and its store writer (sqlite/session_table.h). Shows the sums of all
// owners by kind as a gauge, and counts evictions. Not thread-safe: each owner has its own ledger.
class SessionLedger {
 public:
  // `metrics` must outlive the ledger.
  SessionLedger(size_t bytes_max, Metrics& metrics);
  ~SessionLedger();  // removes its part of the gauges
  SessionLedger(const SessionLedger&) = delete;
  SessionLedger& operator=(const SessionLedger&) = delete;

  // Counts `now` instead of `*counted`, which is the result of the last call for the session, and sets `*counted`.
  // Before a session is destroyed, the owner must call this with an empty `now`.
  void Count(MemoryUse* counted, const MemoryUse& now);

  size_t bytes() const { return bytes_; }
  // Returns how many bytes the owner must free: 0 within the limit, and otherwise some more than the part above the
  // limit. So a full ledger does not look for sessions at every commit.
  size_t Excess() const { return bytes_ <= bytes_max_ ? 0 : bytes_ - bytes_max_ / 16 * 15; }
  void CountEviction(bool was_idle) { (was_idle ? idle_evictions_ : active_evictions_).Add(); }

 private:
  const size_t bytes_max_;
  size_t bytes_ = 0;
  MemoryUse sum_;
  std::array<Gauge*, kMemoryKindCount> gauges_{};
  Counter &idle_evictions_, &active_evictions_;
};

// A session that may be evicted.
struct Evictable {
  size_t bytes = 0;
  bool is_idle = false;
  std::string_view node_id;
};

// Returns the indexes of the sessions to evict, so that `excess` bytes become free if there are enough. First idle
// sessions, the largest first: few sessions then must send their dictionaries again. Then active sessions, each time
// the largest one of the node whose active sessions take the most: many small sessions help a node no more than one
// large session.
std::vector<size_t> ChooseEvictions(std::span<const Evictable> sessions, size_t excess);

// Returns the memory that a string has allocated for its text, with the header of the allocated block. A short text is
// inside the object.
inline size_t AllocatedBytes(const std::string& text) {
  constexpr size_t kHeaderBytes = 16;
  return text.capacity() > std::string().capacity() ? text.capacity() + kHeaderBytes : 0;
}

}  // namespace tributary::store
