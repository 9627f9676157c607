#include "reducer/sqlite/growing_trie.h"

#include <utility>
#include <vector>

namespace tributary::store {
namespace {

template <typename Element>
bool HasRoom(const std::vector<Element>& column, const std::vector<Element>& added) {
  return column.capacity() - column.size() >= added.size();
}

template <typename Element>
void CopyWithRoom(const std::vector<Element>& from, size_t added, std::vector<Element>* to) {
  to->reserve(from.size() + from.size() / 4 + added);
  to->assign(from.begin(), from.end());
}

}  // namespace

GrowingTrie::State GrowingTrie::Latest() const {
  const std::lock_guard lock(mutex_);
  return {TrieView(columns_), last_piece_};
}

void GrowingTrie::Load(Trie trie, int64_t last_piece) {
  auto columns = std::make_shared<Trie>(std::move(trie));
  const std::lock_guard lock(mutex_);
  columns_ = std::move(columns);
  last_piece_ = last_piece;
}

// Only the appending thread changes `columns_`, so it may read them without the lock.
void GrowingTrie::Append(const Trie& added, int64_t last_piece) {
  std::shared_ptr<Trie> columns = columns_;
  if (!HasRoom(columns->parents, added.parents) || !HasRoom(columns->frames, added.frames) ||
      !HasRoom(columns->frame_rows, added.frame_rows)) {
    auto copy = std::make_shared<Trie>();
    CopyWithRoom(columns->parents, added.parents.size(), &copy->parents);
    CopyWithRoom(columns->frames, added.frames.size(), &copy->frames);
    CopyWithRoom(columns->frame_rows, added.frame_rows.size(), &copy->frame_rows);
    columns = std::move(copy);
  }
  const std::lock_guard lock(mutex_);
  AppendTrie(added, columns.get());
  columns_ = std::move(columns);
  last_piece_ = last_piece;
}

}  // namespace tributary::store
