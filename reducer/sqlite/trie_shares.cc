#include "reducer/sqlite/trie_shares.h"

#include <algorithm>

#include "absl/cleanup/cleanup.h"
#include "base/status.h"

namespace tributary::store {

uint32_t TrieShares::Added(int64_t machine) const {
  const auto found = shares_.find(machine);
  return found != shares_.end() ? found->second.added : 0;
}

void TrieShares::Add(int64_t machine) {
  Share& share = shares_[machine];
  if (share.added++ == share.committed) changed_.push_back(machine);
}

void TrieShares::MarkCommitted() {
  for (const int64_t machine : changed_) {
    Share& share = shares_[machine];
    share.committed = share.added;
    if (share.writing != 0) share.written = share.writing;
    share.writing = 0;
  }
  changed_.clear();
}

void TrieShares::Rollback() {
  changed_.clear();
  absl::erase_if(shares_, [](auto& entry) {
    Share& share = entry.second;
    share.added = share.committed;
    share.writing = 0;
    return share.added == 0;
  });
}

absl::StatusOr<TrieShareTable> TrieShareTable::Prepare(Database& database) {
  TrieShareTable table;
  ASSIGN_OR_RETURN(table.find_, database.Prepare("SELECT machine, nodes FROM trie_share WHERE day = ?"));
  ASSIGN_OR_RETURN(table.put_,
                   database.Prepare("INSERT OR REPLACE INTO trie_share (day, machine, nodes) VALUES (?, ?, ?)"));
  return table;
}

absl::Status TrieShareTable::Load(Day day, TrieShares* shares) {
  find_.Bind(day.value);
  const absl::Cleanup reset = [this] { find_.Reset(); };
  for (;;) {
    ASSIGN_OR_RETURN(const bool row, find_.Step());
    if (!row) return absl::OkStatus();
    // A damaged count must not give the machine more than its share.
    const auto nodes = static_cast<uint32_t>(std::clamp<int64_t>(find_.Int(1), 0, UINT32_MAX));
    if (nodes != 0) shares->shares_[find_.Int(0)] = {.added = nodes, .committed = nodes, .written = nodes};
  }
}

absl::Status TrieShareTable::Write(Day day, bool all, TrieShares* shares) {
  const uint32_t growth = all ? 1 : std::max(shares->limits_.machine_nodes_min / 64, 1u);
  auto write = [&](int64_t machine, TrieShares::Share& share) {
    if (share.added - share.written < growth) return absl::OkStatus();
    share.writing = share.added;
    return put_.Bind(day.value, machine, share.added).Run();
  };
  if (all) {
    for (auto& [machine, share] : shares->shares_) RETURN_IF_ERROR(write(machine, share));
    return absl::OkStatus();
  }
  for (const int64_t machine : shares->changed_) RETURN_IF_ERROR(write(machine, shares->shares_[machine]));
  return absl::OkStatus();
}

}  // namespace tributary::store
