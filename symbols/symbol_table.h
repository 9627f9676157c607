#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "profile/executable_id.h"

namespace tributary {

class VarintReader;

// One function's code: [address, address + size). Addresses are ELF virtual addresses, or offsets from the kernel's
// base.
struct SymbolRange {
  uint64_t address = 0;
  uint64_t size = 0;
  std::string_view name;  // linkage name, not demangled; Build copies it
};

// Where a table's names come from; a better source replaces a worse one. On the wire and in the store: append only.
enum class SymbolSource : uint8_t {
  kNone = 0,
  kDynsym = 1,  // .dynsym only
  kSymtab = 2,  // .symtab (and .dynsym)
  kKallsyms = 3,
};
std::string_view SymbolSourceName(SymbolSource source);

// An executable's function names: sorted, non-overlapping ranges over one string pool. Immutable, shared by threads.
// Encoded form (docs/symbol-table.md): header with version, then LEB128 columns (address delta, size, name length),
// then the pool.
class SymbolTable {
 public:
  static constexpr size_t kSymbolsMax = 4'000'000;
  static constexpr size_t kNameBytesMax = 16'384;
  static constexpr size_t kEncodedBytesMax = 512u << 20;
  static constexpr size_t kPoolBytesMax = 384u << 20;  // of all names together

  // Sorts; of ranges that overlap the later start wins from its start on; of equal ones the first in `ranges` stays, so
  // callers order by preference. Ranges of size 0 and ones without a name are dropped, and what lies past a cap above.
  static std::shared_ptr<const SymbolTable> Build(const ExecutableId& id, SymbolSource source,
                                                  std::vector<SymbolRange> ranges);
  // InvalidArgument: not a table, or one that lies; input is hostile. Newer versions: Unimplemented.
  static absl::StatusOr<std::shared_ptr<const SymbolTable>> Decode(std::string_view bytes);
  std::string Encode() const;

  // The function that covers the address. Never the nearest symbol past its size.
  struct Match {
    std::string_view name;  // lives as long as the table
    uint64_t address;       // of the function's start
    uint32_t index;         // of the range, dense: one function identity per table
  };
  std::optional<Match> Find(uint64_t address) const;

  const ExecutableId& id() const { return id_; }
  SymbolSource source() const { return source_; }
  size_t size() const { return addresses_.size(); }
  Match at(uint32_t index) const;
  size_t memory_bytes() const;

 private:
  SymbolTable() = default;
  void Reserve(size_t count);
  absl::Status DecodeRanges(VarintReader& reader, size_t count);

  ExecutableId id_;
  SymbolSource source_ = SymbolSource::kNone;
  std::vector<uint64_t> addresses_;
  std::vector<uint64_t> sizes_;
  std::vector<uint32_t> name_offsets_;  // size() + 1, into pool_
  std::string pool_;
};

}  // namespace tributary
