#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "reducer/store/damage_list.h"

namespace tributary::store {

// The kinds of rows that contain encoded columns.
enum class PieceKind : uint8_t { kTrie, kProcesses, kSamples, kSums, kEvents };
constexpr size_t kPieceKindCount = 5;
constexpr std::string_view TableOf(PieceKind kind) {
  constexpr std::string_view kTables[kPieceKindCount] = {"trie_chunk", "process_chunk", "sample_chunk", "minute_sum",
                                                         "event_chunk"};
  return kTables[static_cast<size_t>(kind)];
}

// Pieces of one shard that a reader could not decode. Readers skip these pieces and report them here. The shard's
// writer sets them aside (set_aside.h), because only the writer may change the file. Each piece is reported once.
// Beyond kReportsMax pieces, reports are dropped: readers still skip these pieces. Use it on any thread.
class DamageReports {
 public:
  static constexpr size_t kReportsMax = 4096;
  static constexpr size_t kReasonBytesMax = 512;

  struct Piece {
    PieceKind kind;
    int64_t key;  // kTrie: the day; otherwise the row's id
    friend auto operator<=>(const Piece&, const Piece&) = default;
  };

  void Report(const Piece& piece, const absl::Status& why) {
    std::lock_guard lock(mutex_);
    if (known_.size() >= kReportsMax || !known_.insert(piece).second) return;
    reported_.emplace(piece, std::string(why.message()));
  }
  // Returns the pieces that were reported since the last call, with the reasons.
  std::map<Piece, std::string> Take() {
    std::lock_guard lock(mutex_);
    return std::exchange(reported_, {});
  }
  // Adds to the damage that the status of the reducer lists. `kind`: as in DamageEntry. There must be few kinds.
  void List(std::string_view kind, uint64_t count, std::string_view reason) {
    std::lock_guard lock(mutex_);
    const auto [listed, added] = listed_.try_emplace(std::string(kind));
    if (added) listed->second.reason = reason.substr(0, kReasonBytesMax);
    listed->second.count += count;
  }
  void Unlist(std::string_view kind) {
    std::lock_guard lock(mutex_);
    listed_.erase(std::string(kind));
  }
  // Appends what is listed, as damage of `shard`.
  void AppendListed(uint32_t shard, std::vector<DamageEntry>* to) {
    std::lock_guard lock(mutex_);
    for (const auto& [kind, listed] : listed_) to->push_back({shard, kind, listed.count, listed.reason});
  }

  // Allows further reports about the piece. Call it for a piece that was set aside: a later piece may get its key.
  void Forget(const Piece& piece) {
    std::lock_guard lock(mutex_);
    known_.erase(piece);
  }

 private:
  struct Listed {
    uint64_t count = 0;
    std::string reason;  // of the first one
  };

  std::mutex mutex_;
  std::set<Piece> known_;                  // guarded by mutex_
  std::map<Piece, std::string> reported_;  // guarded by mutex_
  std::map<std::string, Listed> listed_;   // guarded by mutex_; by kind
};

}  // namespace tributary::store
