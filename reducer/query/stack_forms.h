#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "profile/frame_kinds.h"
#include "reducer/query/query_request.h"
#include "reducer/store/store.h"

namespace tributary {

// Decides which stacks of a trie a flame graph shows, and whether without the frames of interpreters. The frames of an
// interpreter are folded into their callers if the stack has a frame of the code that the interpreter runs. Otherwise
// they are all that is known, and stay. So one node can be part of stacks of both forms.
//
// Two passes over the trie decide this; no stack is rebuilt. Use it on one thread.
class StackForms {
 public:
  // Bits of a node. The first two say in which forms it is part of a shown stack. Their meaning in a node without
  // values of its own comes from its descendants.
  static constexpr uint8_t kPlain = 1;   // with all its frames
  static constexpr uint8_t kFolded = 2;  // without frames of interpreters
  // The form of the stack that ends at the node, if it is shown.
  static constexpr uint8_t kEndsFolded = 4;
  static constexpr uint8_t kIsWanted = 8;  // the stack that ends at the node has the requested languages
  // The form of the values of a node itself: kPlain, kFolded, or 0 if the request does not want the stack.
  static uint8_t FormOf(uint8_t bits) {
    if ((bits & kIsWanted) == 0) return 0;
    return (bits & kEndsFolded) != 0 ? kFolded : kPlain;
  }

  explicit StackForms(const QueryRequest& request)
      : request_(request), folds_(request.frames == FrameNames::kFunction && !request.all_frames) {}

  // Returns true if this frame is left out of stacks of the form kFolded.
  static bool IsFoldedAway(FrameKind kind) { return kind == FrameKind::kInterpreter; }
  // Returns false if all stacks of a trie with these frames are shown in the form kPlain. Choose is not needed then.
  bool IsNeeded(const store::TrieView& trie) const;
  // `bits` has one element for each node: on input 1 if the node or a descendant has values, else 0. `kind_of` returns
  // the kind of a node's frame, and `has_values` whether the node itself has values. DeadlineExceeded: the request was
  // cancelled.
  absl::Status Choose(const store::TrieView& trie, absl::FunctionRef<FrameKind(size_t node)> kind_of,
                      absl::FunctionRef<bool(size_t node)> has_values, std::vector<uint8_t>* bits) const;

 private:
  const QueryRequest& request_;
  const bool folds_;
};

}  // namespace tributary
