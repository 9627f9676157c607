#include "reducer/sqlite/trie_reader.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/status.h"
#include "reducer/store/trie.h"

namespace tributary::store {
namespace {

// A tail is joined with its trie once the tail has more than kTailNodesMin + (nodes of the trie) / kTailShare nodes.
constexpr size_t kTailNodesMin = 4096;
constexpr size_t kTailShare = 16;

}  // namespace

absl::StatusOr<TrieReader> TrieReader::Prepare(Database& database, uint32_t shard, TrieCache& cache,
                                               ExecutableReader& executables, DamageReports& damage) {
  TrieReader reader(database, shard, cache, executables, damage);
  ASSIGN_OR_RETURN(reader.pieces_, TriePieces::Prepare(database));
  return reader;
}

absl::StatusOr<TrieReader::Pieces> TrieReader::PiecesOf(Day day) {
  ASSIGN_OR_RETURN(Statement bounds, database_->Prepare("SELECT min(id), max(id) FROM trie_chunk WHERE day = ?"));
  ASSIGN_OR_RETURN([[maybe_unused]] bool row, bounds.Bind(day.value).Step());
  ASSIGN_OR_RETURN(const int64_t newest_gap, pieces_->NewestGap(day));
  return bounds.IsNull(0) ? Pieces{.newest_gap = newest_gap} : Pieces{bounds.Int(0), bounds.Int(1), newest_gap};
}

// If the snapshot's newest piece was joined into a later one (TrieMerger), the later one also contains nodes that the
// snapshot has. Then nothing can be appended to the snapshot.
absl::StatusOr<TrieCache::Snapshot> TrieReader::FindTrie(const TrieCache::Key& key, const Pieces& pieces) {
  TrieCache::Snapshot known = cache_->Find(key);
  if (known.trie == nullptr || known.newest() >= pieces.last) return known;
  ASSIGN_OR_RETURN(Statement find, database_->Prepare("SELECT 1 FROM trie_chunk WHERE id = ?"));
  const absl::StatusOr<bool> stands = find.Bind(known.newest()).Step();
  if (absl::IsDataLoss(stands.status())) return TrieCache::Snapshot{};
  RETURN_IF_ERROR(stands.status());
  return *stands ? known : TrieCache::Snapshot{};
}

absl::StatusOr<bool> TrieReader::AppendPieces(Day day, int64_t after, const TrieEnds& before, Trie* to) {
  TrieAppender sink(to, before);
  std::vector<DamagedRun> damage;
  const size_t frames = to->frame_rows.size();
  RETURN_IF_ERROR(pieces_->Read(day, after, sink, &damage));
  RETURN_IF_ERROR(executables_->Number(std::span(to->frame_rows).subspan(frames)));
  if (damage.empty()) return true;
  damage_->Report({PieceKind::kTrie, day.value}, Error(absl::StatusCode::kDataLoss, damage.front().reason));
  return false;
}

absl::StatusOr<std::shared_ptr<const Trie>> TrieReader::Load(Day day) {
  ASSIGN_OR_RETURN(const Pieces pieces, PiecesOf(day));
  if (pieces.last == 0 && pieces.newest_gap == 0) return std::make_shared<const Trie>(EmptyTrie());
  const TrieCache::Key key{shard_, day, pieces.first, pieces.newest_gap, executables_->generation()};
  ASSIGN_OR_RETURN(TrieCache::Snapshot known, FindTrie(key, pieces));
  // A longer trie that a later reader loaded serves as well, because ids never change their meaning.
  if (known.trie != nullptr && known.last_piece >= pieces.last) return known.trie;

  auto trie = std::make_shared<Trie>(known.trie != nullptr ? *known.trie : EmptyTrie());
  if (known.tail != nullptr) AppendTail(*known.tail, trie.get());
  ASSIGN_OR_RETURN(const bool whole, AppendPieces(day, known.newest(), {}, trie.get()));
  if (!whole) return trie;
  cache_->Put(key, {.trie = trie, .last_piece = std::max(known.newest(), pieces.last)});
  return trie;
}

// Pieces that were committed after the trie was loaded go to a tail, as long as the tail is small. Without the tail,
// each reader would copy the whole trie to add the nodes of the latest commits.
absl::StatusOr<TriePart> TrieReader::LoadPart(Day day, std::span<const NodeNo> leaves) {
  ASSIGN_OR_RETURN(const Pieces pieces, PiecesOf(day));
  if (pieces.last == 0 && pieces.newest_gap == 0) return CutTrie(EmptyTrie(), {}, leaves);
  const TrieCache::Key key{shard_, day, pieces.first, pieces.newest_gap, executables_->generation()};
  ASSIGN_OR_RETURN(TrieCache::Snapshot known, FindTrie(key, pieces));
  if (known.trie == nullptr) {
    ASSIGN_OR_RETURN(const std::shared_ptr<const Trie> trie, Load(day));
    return CutTrie(*trie, {}, leaves);
  }
  if (known.newest() < pieces.last) {
    auto tail = known.tail != nullptr ? std::make_shared<TrieTail>(*known.tail) : std::make_shared<TrieTail>();
    tail->first_node = known.trie->parents.size();
    tail->first_frame = known.trie->frame_rows.size();
    ASSIGN_OR_RETURN(const bool whole,
                     AppendPieces(day, known.newest(), {tail->first_node, tail->first_frame}, &tail->added));
    if (!whole) return CutTrie(*known.trie, *tail, leaves);
    if (tail->added.parents.size() > kTailNodesMin + known.trie->parents.size() / kTailShare) {
      auto trie = std::make_shared<Trie>(*known.trie);
      AppendTail(*tail, trie.get());
      known = {.trie = std::move(trie), .last_piece = pieces.last};
    } else {
      known.tail = std::move(tail);
      known.last_tail_piece = pieces.last;
    }
    cache_->Put(key, known);
  }
  static const TrieTail kNoTail;
  return CutTrie(*known.trie, known.tail != nullptr ? *known.tail : kNoTail, leaves);
}

}  // namespace tributary::store
