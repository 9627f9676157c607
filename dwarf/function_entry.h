#pragma once

#include "absl/container/flat_hash_map.h"
#include "dwarf/dwarf_module.h"

namespace tributary {

// What an entry of a function, or of a call of it that was inlined, says of itself.
struct FunctionEntry {
  DwarfValue low_pc, high_pc, ranges;
  DwarfValue name, linkage_name;
  DwarfValue abstract_origin, specification;
  DwarfValue call_file, call_line;

  // The attributes of an entry of kind `row`, the reader being behind its code. False: they cannot be read.
  bool Read(ByteReader& reader, const DwarfUnit& unit, const DwAbbreviation& row);
};

// Names of functions. What an entry does not say itself, the entry says that it is an instance of, or that declared it:
// in the same unit, another, or another file.
class FunctionNames {
 public:
  // The linkage name if there is one, else the name; "": none. Lives as long as the sections.
  std::string_view NameOf(const DwarfModule& module, const DwarfUnit& unit, const FunctionEntry& entry);

 private:
  static constexpr unsigned kFollowedMax = 16;  // entries may refer to each other in circles

  struct Name {
    std::string_view text;
    bool is_linkage = false;
  };
  Name Told(const DwarfModule& module, const DwarfUnit& unit, const FunctionEntry& entry, unsigned followed);
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
