#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>

#include "absl/status/statusor.h"
#include "reducer/sqlite/damage_reports.h"
#include "reducer/sqlite/executable_reader.h"
#include "reducer/sqlite/sqlite.h"
#include "reducer/sqlite/trie_cache.h"
#include "reducer/sqlite/trie_pieces.h"
#include "reducer/store/store.h"

namespace tributary::store {

// Loads the tries of one shard for one reader. Reads only the pieces that the cache does not have. Damaged pieces are
// skipped and reported. Use it on one thread.
class TrieReader {
 public:
  // All must outlive the object.
  static absl::StatusOr<TrieReader> Prepare(Database& database, uint32_t shard, TrieCache& cache,
                                            ExecutableReader& executables, DamageReports& damage);

  // As StoreReader::LoadTrie and LoadTriePart.
  absl::StatusOr<TrieView> Load(Day day);
  absl::StatusOr<TriePart> LoadPart(Day day, std::span<const NodeNo> leaves);

 private:
  // The ids of the first and the last piece of a day's trie, as far as the reader's snapshot of the file contains them.
  // {0, 0}: there are no pieces.
  struct Pieces {
    int64_t first = 0, last = 0, newest_gap = 0;
  };

  TrieReader(Database& database, uint32_t shard, TrieCache& cache, ExecutableReader& executables, DamageReports& damage)
      : database_(&database), shard_(shard), cache_(&cache), executables_(&executables), damage_(&damage) {}
  absl::StatusOr<Pieces> PiecesOf(Day day);
  // Returns true if this reader can continue after the trie's newest piece.
  absl::StatusOr<bool> CanAppendTo(const GrowingTrie::State& state);
  // Waits until no other reader appends to the trie.
  absl::StatusOr<std::unique_lock<std::timed_mutex>> LockForAppending(GrowingTrie& trie) const;
  // Adds the pieces that the trie lacks, and returns the new state. A damaged piece: returns a view of a copy, and
  // leaves the trie as it is.
  absl::StatusOr<TrieView> AddMissing(Day day, const Pieces& pieces, GrowingTrie& trie);
  // Decodes the day's pieces that have an id above `after`, and appends them to `to`. `before`: as for TrieAppender.
  // Returns false if a piece is damaged: then `to` must not be used by readers that see a later state of the file.
  absl::StatusOr<bool> AppendPieces(Day day, int64_t after, const TrieEnds& before, Trie* to);

  Database* database_;
  uint32_t shard_;
  TrieCache* cache_;
  ExecutableReader* executables_;
  DamageReports* damage_;
  std::optional<TriePieces> pieces_;  // always set
};

}  // namespace tributary::store
