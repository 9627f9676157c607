#pragma once

#include <cstdint>

namespace tributary::flat {

// The flat form of a symbol table (docs/symbol-table.md): a header, then sections of fixed-size elements. Each section
// is aligned to 64 bytes, so a mapped file can be read in place. Little-endian. Ids are indices. In nodes, places and
// strings, id 0 means none, and the first element is empty.

constexpr char kMagic[8] = {'T', 'S', 'Y', 'M', 'F', 'L', 'A', 'T'};
constexpr uint32_t kVersion = 2;
constexpr uint64_t kAlignment = 64;

struct Section {
  uint64_t offset;  // from the file's begin
  uint64_t count;   // number of elements
};

// Rows [first_row, first_row + rows) have addresses from `base` on. A row stores its distance from `base` in 32 bits.
struct Segment {
  uint64_t base;
  uint32_t first_row;
  uint32_t rows;
};

// A function, or a call that was inlined into its parent.
struct Node {
  uint32_t name;    // string: linkage name; 0: no name
  uint32_t parent;  // smaller than the node's id; 0: a function
  uint32_t place;   // of a call its place in the parent; of a function the index of its start
};

// A range of code whose kind is not the kind that nodes report: Go's code, which nodes report as native. The ranges are
// few, sorted, and do not overlap.
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
  kRowNodes,       // uint32_t: the innermost node from that address to the next row's
  kRowPlaces,      // uint32_t
  kNodes,          // Node
  kPlaces,         // Place
  kStarts,         // uint64_t: begins of functions, in order of their nodes
  kStringOffsets,  // uint32_t into kStringBytes; one more than there are strings
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

// Directly after the header. Tables of earlier builds have zeros here, which means that there is no such section.
struct MoreSections {
  Section code_kinds;  // CodeKind
};
static_assert(sizeof(Header) + sizeof(MoreSections) <= 4 * kAlignment, "the first section begins there");

}  // namespace tributary::flat
