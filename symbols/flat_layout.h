#pragma once

#include <cstdint>

namespace tributary::flat {

// The flat form of a symbol table (docs/symbol-table.md). It has a header and then sections, which are arrays of
// elements of fixed size. Each section is aligned to 64 bytes, so a mapped file can be read in place. All numbers are
// little-endian. An id is an index in a section. For nodes, places and strings, id 0 means "none", and element 0 is
// empty.

constexpr char kMagic[8] = {'T', 'S', 'Y', 'M', 'F', 'L', 'A', 'T'};
constexpr uint32_t kVersion = 2;
constexpr uint64_t kAlignment = 64;

struct Section {
  uint64_t offset;  // from the start of the file
  uint64_t count;   // number of elements
};

// The rows [first_row, first_row + rows). Their addresses are stored as 32-bit offsets from `base`.
struct Segment {
  uint64_t base;
  uint32_t first_row;
  uint32_t rows;
};

// A function, or an inlined call. The parent of an inlined call is the function or call into which it was inlined.
struct Node {
  uint32_t name;    // string: linkage name; 0: no name
  uint32_t parent;  // smaller than the node's id; 0: a function
  uint32_t place;   // of a call: its place in the parent; of a function: its index in kStarts
};

// A range of code that kernel-collectors report with a wrong kind: Go code, which they report as native. There are only
// few ranges. They are sorted and do not overlap.
struct CodeKind {
  uint64_t begin, end;  // addresses
  uint32_t kind;        // FrameKind
  uint32_t reserved;
};

// A line of a file.
struct Place {
  uint32_t file;  // string: path
  uint32_t line;
};

enum SectionIndex : uint32_t {
  kSegments,       // Segment, ascending by base
  kRowAddresses,   // uint32_t, ascending within a segment
  kRowNodes,       // uint32_t: the innermost node of each row, valid up to the next row
  kRowPlaces,      // uint32_t
  kNodes,          // Node
  kPlaces,         // Place
  kStarts,         // uint64_t: start addresses of functions, in order of their nodes
  kStringOffsets,  // uint32_t: offsets in kStringBytes; one more than there are strings
  kStringBytes,
  kSectionCount,
};

struct Header {
  char magic[8];
  uint32_t version;
  uint8_t source;   // SymbolSource
  uint8_t id_kind;  // ExecutableIdKind
  uint8_t id_bytes;
  uint8_t reserved;
  uint8_t id[20];
  uint8_t padding[4];
  uint64_t file_bytes;
  uint64_t checksum;  // XXH3-64 of everything after the header
  Section sections[kSectionCount];
};
static_assert(sizeof(Header) == 56 + 16 * kSectionCount);

// This struct directly follows the header. In tables of earlier releases it is zero, which means that there is no such
// section.
struct MoreSections {
  Section code_kinds;  // CodeKind
};
static_assert(sizeof(Header) + sizeof(MoreSections) <= 4 * kAlignment, "the headers end before the first section");

}  // namespace tributary::flat
