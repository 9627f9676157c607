#include "reducer/query/stack_forms.h"

#include <algorithm>

#include "base/status.h"

namespace tributary {

bool StackForms::IsNeeded(const store::TrieView& trie) const {
  if (request_.languages != 0) return true;
  return folds_ &&
         std::ranges::any_of(trie.frame_rows, [](const store::FrameRow& row) { return IsFoldedAway(row.kind); });
}

absl::Status StackForms::Choose(const store::TrieView& trie, absl::FunctionRef<FrameKind(size_t node)> kind_of,
                                absl::FunctionRef<bool(size_t node)> has_values, std::vector<uint8_t>* bits) const {
  std::vector<uint8_t>& of = *bits;
  if (of.empty()) return absl::OkStatus();
  // Down: what the stack that ends at a node has. Parents come before children.
  of[0] = request_.languages == 0 ? kIsWanted : 0;
  for (size_t i = 1; i < of.size(); ++i) {
    RETURN_IF_ERROR(CheckCancelledAt(request_, i));
    if (of[i] == 0) continue;
    const FrameKind kind = kind_of(i);
    uint8_t own = of[trie.parents[i].value] & (kIsWanted | kEndsFolded);
    if ((request_.languages >> static_cast<uint32_t>(kind) & 1) != 0) own |= kIsWanted;
    if (folds_ && RowOf(kind).is_interpreted) own |= kEndsFolded;
    of[i] = own;
  }
  // Up: the forms in which a node's descendants need it.
  for (size_t i = of.size() - 1; i > 0; --i) {
    RETURN_IF_ERROR(CheckCancelledAt(request_, i));
    if (has_values(i)) of[i] |= FormOf(of[i]);
    of[trie.parents[i].value] |= of[i] & (kPlain | kFolded);
  }
  return absl::OkStatus();
}

}  // namespace tributary
