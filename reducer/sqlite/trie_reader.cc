#include "reducer/sqlite/trie_reader.h"

#include <chrono>
#include <utility>
#include <vector>

#include "base/status.h"
#include "reducer/store/trie.h"

namespace tributary::store {
namespace {

constexpr std::chrono::milliseconds kCancelLook{20};

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

// If the newest piece was joined into a later one (TrieMerger), the later one also contains nodes that the trie has.
// Then nothing can be appended to the trie.
absl::StatusOr<bool> TrieReader::CanAppendTo(const GrowingTrie::State& state) {
  if (state.last_piece <= 0) return true;
  ASSIGN_OR_RETURN(Statement find, database_->Prepare("SELECT 1 FROM trie_chunk WHERE id = ?"));
  const absl::StatusOr<bool> stands = find.Bind(state.last_piece).Step();
  return absl::IsDataLoss(stands.status()) ? false : stands;
}

absl::StatusOr<std::unique_lock<std::timed_mutex>> TrieReader::LockForAppending(GrowingTrie& trie) const {
  std::unique_lock lock(trie.appending(), std::defer_lock);
  // Not try_lock_for: ThreadSanitizer of GCC 12 does not know the function that it calls.
  while (!lock.try_lock_until(std::chrono::system_clock::now() + kCancelLook)) {
    RETURN_IF_ERROR(database_->CheckCancelled());
  }
  return lock;
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

absl::StatusOr<TrieView> TrieReader::AddMissing(Day day, const Pieces& pieces, GrowingTrie& trie) {
  const GrowingTrie::State state = trie.Latest();
  if (state.last_piece == GrowingTrie::kNotLoaded) {
    Trie whole = EmptyTrie();
    ASSIGN_OR_RETURN(const bool intact, AppendPieces(day, 0, {}, &whole));
    if (!intact) return TrieView(std::make_shared<const Trie>(std::move(whole)));
    trie.Load(std::move(whole), pieces.last);
    return trie.Latest().view;
  }
  Trie added;
  ASSIGN_OR_RETURN(const bool intact, AppendPieces(day, state.last_piece,
                                                   {state.view.parents.size(), state.view.frame_rows.size()}, &added));
  if (intact) {
    trie.Append(added, pieces.last);
    return trie.Latest().view;
  }
  auto copy = std::make_shared<Trie>();
  copy->parents.assign(state.view.parents.begin(), state.view.parents.end());
  copy->frames.assign(state.view.frames.begin(), state.view.frames.end());
  copy->frame_rows.assign(state.view.frame_rows.begin(), state.view.frame_rows.end());
  AppendTrie(added, copy.get());
  return TrieView(copy);
}

absl::StatusOr<TrieView> TrieReader::Load(Day day) {
  ASSIGN_OR_RETURN(const Pieces pieces, PiecesOf(day));
  if (pieces.last == 0 && pieces.newest_gap == 0) return EmptyTrieView();
  const TrieCache::Key key{shard_, day, pieces.first, pieces.newest_gap, executables_->generation()};
  for (;;) {
    const std::shared_ptr<GrowingTrie> trie = cache_->FindOrAdd(key);
    // A longer trie that a later reader loaded serves as well, because ids never change their meaning.
    if (GrowingTrie::State state = trie->Latest(); state.last_piece >= pieces.last) return std::move(state.view);
    ASSIGN_OR_RETURN(const std::unique_lock<std::timed_mutex> lock, LockForAppending(*trie));
    GrowingTrie::State state = trie->Latest();
    if (state.last_piece >= pieces.last) return std::move(state.view);
    ASSIGN_OR_RETURN(const bool can_append, CanAppendTo(state));
    if (!can_append) {
      cache_->Remove(key, *trie);
      continue;
    }
    absl::StatusOr<TrieView> view = AddMissing(day, pieces, *trie);
    cache_->Trim();
    return view;
  }
}

absl::StatusOr<TriePart> TrieReader::LoadPart(Day day, std::span<const NodeNo> leaves) {
  ASSIGN_OR_RETURN(const TrieView trie, Load(day));
  return CutTrie(trie, leaves);
}

}  // namespace tributary::store
