#pragma once

#include "absl/container/flat_hash_map.h"
#include "dwarf/dwarf_module.h"

namespace tributary {

// The attributes of an entry that describes a function or an inlined call.
struct FunctionEntry {
  DwarfValue low_pc, high_pc, ranges;
  DwarfValue name, linkage_name;
  DwarfValue abstract_origin, specification;
  DwarfValue call_file, call_line;

  // Reads the attributes of an entry with the layout `row`. `reader` must be at the first attribute, after the entry's
  // code. Returns false if the attributes cannot be read.
  bool Read(ByteReader& reader, const DwarfUnit& unit, const DwAbbreviation& row);
};

// Finds names of functions. If an entry has no linkage name, also looks at the entry to which its DW_AT_abstract_origin
// or DW_AT_specification refers. This other entry may be in another unit or in another file.
class FunctionNames {
 public:
  // Returns the linkage name if there is one, otherwise the name, otherwise "". The text is valid as long as the
  // sections.
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
