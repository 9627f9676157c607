#include "kernel-collector/unwind/code_pieces.h"

#include <algorithm>

#include "bpf/include/unwind.h"

namespace tributary {
namespace {

constexpr uint64_t kPageMask = TRIB_PAGE_BYTES - 1;

// The bytes of the file that belong to a segment.
struct Extent {
  uint64_t begin, end;  // file offsets, to the ends of pages
  const ElfSegment* segment;
};

std::vector<Extent> Extents(const std::vector<ElfSegment>& segments, uint64_t file_begin, uint64_t file_end) {
  std::vector<Extent> extents;
  for (const ElfSegment& segment : segments) {
    uint64_t end = segment.file_offset + segment.file_size;
    if (!segment.executable || segment.file_size == 0 || end < segment.file_offset || end > UINT64_MAX - kPageMask) {
      continue;
    }
    Extent extent{segment.file_offset & ~kPageMask, (end + kPageMask) & ~kPageMask, &segment};
    if (extent.begin < file_end && extent.end > file_begin) extents.push_back(extent);
  }
  std::sort(extents.begin(), extents.end(),
            [](const Extent& a, const Extent& b) { return a.segment->file_offset < b.segment->file_offset; });
  for (size_t i = 0; i + 1 < extents.size(); ++i) {
    extents[i].end = std::min(extents[i].end, extents[i + 1].segment->file_offset);
    extents[i + 1].begin = std::max(extents[i + 1].begin, extents[i].end);
  }
  return extents;
}

}  // namespace

void ForEachPiece(const Mapping& mapping, const CodeFile& executable,
                  const std::function<bool(const CodePiece& piece)>& visit) {
  uint64_t length = mapping.end - mapping.start;
  if (mapping.file_offset > UINT64_MAX - length) {
    visit({mapping.start, mapping.end, false, 0});
    return;
  }
  uint64_t delta = mapping.start - mapping.file_offset;  // file offset + delta = address
  uint64_t file_end = mapping.file_offset + length;
  uint64_t at = mapping.file_offset;
  for (const Extent& extent : Extents(executable.segments, at, file_end)) {
    uint64_t begin = std::max(extent.begin, at), end = std::min(extent.end, file_end);
    if (begin >= end) continue;
    if (begin > at && !visit({at + delta, begin + delta, false, 0})) return;
    uint64_t bias = delta + extent.segment->file_offset - extent.segment->address;
    if (!visit({begin + delta, end + delta, true, bias})) return;
    at = end;
  }
  if (at < file_end) visit({at + delta, file_end + delta, false, 0});
}

CodePiece PieceAt(const Mapping& mapping, const CodeFile& executable, uint64_t address) {
  CodePiece found;
  ForEachPiece(mapping, executable, [&](const CodePiece& piece) {
    found = piece;
    return address >= piece.end;
  });
  return found;
}

}  // namespace tributary
