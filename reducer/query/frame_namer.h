#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "reducer/query/function_trie.h"
#include "reducer/query/query.h"
#include "reducer/store/store.h"
#include "reducer/symbolizer/symbol_store.h"

namespace tributary {

// Demangled names across queries: a C++ name costs microseconds, a page asks for the same ones every few seconds. Any
// thread. Holds at most kEntriesMax names; a full cache starts again.
class DemangleCache {
 public:
  static constexpr size_t kEntriesMax = 65'536;
  static constexpr size_t kNameBytesMax = 1024;  // longer names are not kept
  std::string Demangle(std::string_view linkage_name);
  size_t size() const;

 private:
  mutable std::mutex mutex_;
  absl::flat_hash_map<std::string, std::string> names_;
};

// Turns frames into functions for one query. Symbol tables are held from their first use to the end, so that one answer
// is named by one state of the symbols.
//
// With function names: the function that covers the address (at address − 1 for one that a call returns to), never the
// nearest symbol past its size; else `binary+0xaddress`; `[kernel]+0xoffset` for kernel code; `[unknown]` where nothing
// is mapped. With addresses: `build-id+0xaddress`.
class FrameNamer {
 public:
  FrameNamer(SymbolStore& symbols, DemangleCache& demangled, FrameNames names, FunctionTrie& trie)
      : symbols_(symbols), demangled_(demangled), names_(names), trie_(trie) {}

  // A handle for Function. Executables of equal id (or, without one, of equal path) are the same; the first path names
  // it.
  uint32_t InternExecutable(const store::ExecutableRow& row);
  FunctionNo Function(uint32_t executable, const store::FrameRow& frame);

 private:
  struct Executable {
    ExecutableId id;
    std::string base_name;
    bool asked = false;
    std::shared_ptr<const SymbolTable> table;
  };

  SymbolStore& symbols_;
  DemangleCache& demangled_;
  const FrameNames names_;
  FunctionTrie& trie_;
  std::vector<Executable> executables_;
  absl::flat_hash_map<ExecutableId, uint32_t> by_id_;
  absl::flat_hash_map<std::string, uint32_t> by_path_;
  absl::flat_hash_map<uint64_t, FunctionNo> by_range_;  // executable << 32 | range of its table
};

}  // namespace tributary
