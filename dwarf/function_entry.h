#pragma once

#include "absl/container/flat_hash_map.h"
#include "dwarf/dwarf_module.h"

namespace tributary {

// The attributes of a function's entry, or of the entry of an inlined call.
struct FunctionEntry {
  DwarfValue low_pc, high_pc, ranges;
  DwarfValue name, linkage_name;
  DwarfValue abstract_origin, specification;
  DwarfValue call_file, call_line;

  // Reads the attributes of an entry of kind `row`. The reader must be after the entry's code. Returns false if the
  // attributes cannot be read.
  bool Read(ByteReader& reader, const DwarfUnit& unit, const DwAbbreviation& row);
};

// Finds names of functions. If an entry lacks a name, uses the name of the entry that it is an instance of, or of the
// entry that declared it. That other entry may be in the same unit, in another unit, or in another file.
class FunctionNames {
 public:
  // Returns the linkage name if there is one, else the name, else "". The text lives as long as the sections.
  std::string_view NameOf(const DwarfModule& module, const DwarfUnit& unit, const FunctionEntry& entry);

 private:
  static constexpr unsigned kFollowedMax = 16;  // entries may refer to each other in circles

  struct Name {
    std::string_view text;
    bool is_linkage = false;
  };
  Name FindName(const DwarfModule& module, const DwarfUnit& unit, const FunctionEntry& entry, unsigned followed);
  Name Follow(const DwarfModule& module, const DwarfUnit& unit, const DwarfValue& reference, unsigned followed);

  struct Key {
    const DwarfModule* module;
    uint64_t offset;
    friend bool operator==(const Key&, const Key&) = default;
    template <typename H>
    friend H AbslHashValue(H h, const Key& key) {
      return H::combine(std::move(h), key.module, key.offset);
    }
  };
  absl::flat_hash_map<Key, Name> known_;
};

}  // namespace tributary
