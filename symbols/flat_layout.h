#pragma once

#include <cstdint>

namespace tributary::flat {

// The flat form of a symbol table (docs/symbol-table.md): a header, then sections of fixed-size elements, each aligned
// to 64 bytes, so that a file is read where it is mapped. Little-endian. Ids are indices; 0 is none in nodes, places
// and strings, whose first element is empty.

constexpr char kMagic[8] = {'T', 'S', 'Y', 'M', 'F', 'L', 'A', 'T'};
constexpr uint32_t kVersion = 2;
constexpr uint64_t kAlignment = 64;

struct Section {
  uint64_t offset;  // from the file's begin
  uint64_t count;   // of elements
};

// Rows [first_row, first_row + rows) have addresses from `base` on: a row's has 32 bits.
struct Segment {
  uint64_t base;
  uint32_t first_row;
  uint32_t rows;
};

// A function, or a call that was inlined into its parent.
struct Node {
  uint32_t name;    // string: linkage name; 0: has none
  uint32_t parent;  // smaller than its own id; 0: a function
  uint32_t place;   // where in the parent it was called; of a function the index of its start
};

// Code that is of another kind than what a node tells it is: Go's. Few; sorted, without overlaps.
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
  kRowNodes,       // uint32_t: what is innermost from that address to the next row's
  kRowPlaces,      // uint32_t
  kNodes,          // Node
  kPlaces,         // Place
  kStarts,         // uint64_t: where functions begin, in order of their nodes
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
  uint64_t checksum;  // XXH64 of everything behind the header
  Section sections[kSectionCount];
};
static_assert(sizeof(Header) == 56 + 16 * kSectionCount);

// Right behind the header, where tables of earlier builds have zeros: no such section.
struct MoreSections {
  Section code_kinds;  // CodeKind
};
static_assert(sizeof(Header) + sizeof(MoreSections) <= 4 * kAlignment, "the first section begins there");

}  // namespace tributary::flat
