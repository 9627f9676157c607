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

#include "absl/status/status.h"

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
  // Allows further reports about the piece. Call it for a piece that was set aside: a later piece may get its key.
  void Forget(const Piece& piece) {
    std::lock_guard lock(mutex_);
    known_.erase(piece);
  }

 private:
  std::mutex mutex_;
  std::set<Piece> known_;                  // guarded by mutex_
  std::map<Piece, std::string> reported_;  // guarded by mutex_
};

}  // namespace tributary::store
