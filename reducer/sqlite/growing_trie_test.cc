#include "reducer/sqlite/growing_trie.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

namespace tributary::store {
namespace {

// Nodes and frames with numbers from `first` on. Each node has the number of its parent's parent plus one.
Trie Numbered(uint32_t first, uint32_t count) {
  Trie trie;
  for (uint32_t i = first; i < first + count; ++i) {
    trie.parents.push_back(NodeNo{i / 2});
    trie.frames.push_back(i);
    trie.frame_rows.push_back({FrameKind::kNative, false, ExecutableNo{1}, i, 0, {}});
  }
  return trie;
}

void ExpectNumbered(const TrieView& view) {
  ASSERT_EQ(view.frames.size(), view.parents.size());
  ASSERT_EQ(view.frame_rows.size(), view.parents.size());
  for (uint32_t i = 0; i < view.parents.size(); ++i) {
    ASSERT_EQ(view.parents[i], NodeNo{i / 2});
    ASSERT_EQ(view.frames[i], i);
    ASSERT_EQ(view.frame_rows[i].address, i);
  }
}

TEST(GrowingTrieTest, ViewsKeepTheirNodes) {
  GrowingTrie trie;
  EXPECT_EQ(trie.Latest().last_piece, GrowingTrie::kNotLoaded);
  trie.Load(Numbered(0, 10), 3);
  const TrieView first = trie.Latest().view;
  trie.Append(Numbered(10, 7), 5);
  EXPECT_EQ(trie.Latest().last_piece, 5);
  EXPECT_EQ(first.parents.size(), 10u);
  ExpectNumbered(first);
  EXPECT_EQ(trie.Latest().view.parents.size(), 17u);
  ExpectNumbered(trie.Latest().view);
}

TEST(GrowingTrieTest, AppendsCopyTheTrieOnlyNowAndThen) {
  GrowingTrie trie;
  trie.Load(Numbered(0, 1000), 0);
  std::vector<const NodeNo*> places;
  for (uint32_t i = 0; i < 4000; ++i) {
    trie.Append(Numbered(1000 + i, 1), i + 1);
    places.push_back(trie.Latest().view.parents.data());
  }
  EXPECT_EQ(trie.Latest().view.parents.size(), 5000u);
  ExpectNumbered(trie.Latest().view);
  const auto copies = std::ranges::unique(places);
  EXPECT_LE(places.size() - copies.size(), 10u) << "each copy has room for a quarter more";
}

TEST(GrowingTrieTest, ReadersDoNotSeeWhatIsAppended) {
  GrowingTrie trie;
  trie.Load(Numbered(0, 100), 0);
  std::atomic<bool> done = false;
  std::vector<std::thread> readers;
  for (int r = 0; r < 2; ++r) {
    readers.emplace_back([&] {
      size_t before = 0;
      while (!done) {
        const TrieView view = trie.Latest().view;
        EXPECT_GE(view.parents.size(), before);
        before = view.parents.size();
        ExpectNumbered(view);
      }
    });
  }
  for (uint32_t i = 0; i < 500; ++i) trie.Append(Numbered(100 + 3 * i, 3), i + 1);
  done = true;
  for (std::thread& reader : readers) reader.join();
  EXPECT_EQ(trie.Latest().view.parents.size(), 1600u);
}

}  // namespace
}  // namespace tributary::store
