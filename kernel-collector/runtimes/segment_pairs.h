#pragma once

#include <cstddef>
#include <vector>

namespace tributary {

// Which segment of a runtime's chain belongs to which native frame of the interpreter's loop. Loops and segments are
// counted from the innermost one.
struct SegmentPairs {
  struct Range {
    size_t first = 0, count = 0;  // of segments
  };
  std::vector<Range> of_loop;  // one for each loop
  Range outside;               // the outermost segments, which belong to no loop
};

struct PairInput {
  size_t loops = 0, segments = 0;
  bool stack_is_complete = false;  // the native stack has all loops
  bool chain_is_complete = false;  // the chain has all segments
  bool innermost_is_leaf = false;  // the innermost loop is the stack's innermost frame: a call may begin or end
};

// Returns the number of loops that have no segment, although they should have one.
inline size_t LoopsWithoutSegment(const PairInput& input) {
  const size_t bare = input.loops > input.segments ? input.loops - input.segments : 0;
  return bare == 1 && input.innermost_is_leaf ? 0 : bare;
}

// Pairs from the outermost end if both lists are complete, because their outermost elements then belong together. The
// innermost loop has no segment while a call begins or ends. Otherwise, pairs from the innermost end. So it does if
// loops have no segment, because they belong to another list of frames: that of an outer interpreter, or of the stack
// on which a greenlet was started. No segment is left out: if there are more segments than loops, the innermost loop
// gets several of them in the first case, and in the second case the outermost segments are outside.
inline SegmentPairs PairSegments(const PairInput& input) {
  SegmentPairs pairs;
  pairs.of_loop.resize(input.loops);
  size_t next = 0;
  if (input.stack_is_complete && input.chain_is_complete && input.loops > 0 && LoopsWithoutSegment(input) == 0) {
    const size_t bare = input.loops > input.segments ? input.loops - input.segments : 0;
    const size_t extra = input.segments > input.loops ? input.segments - input.loops : 0;
    for (size_t loop = bare; loop < input.loops; ++loop) {
      const size_t count = loop == 0 ? extra + 1 : 1;
      pairs.of_loop[loop] = {next, count};
      next += count;
    }
  } else {
    for (size_t loop = 0; loop < input.loops && next < input.segments; ++loop) pairs.of_loop[loop] = {next++, 1};
  }
  pairs.outside = {next, input.segments - next};
  return pairs;
}

}  // namespace tributary
