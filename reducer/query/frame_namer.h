#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
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
// With function names: the function that covers the address (at address − 1 for one that a call returns to) and what
// was inlined into it there, never the nearest symbol past its size; `binary+0xstart` for a function whose bounds alone
// are known; else `binary+0xaddress`; `[kernel]+0xoffset` for kernel code; `[unknown]` where nothing is mapped. With
// addresses: `build-id+0xaddress`.
class FrameNamer {
 public:
  FrameNamer(SymbolStore& symbols, DemangleCache& demangled, FrameNames names, FunctionTrie& trie)
      : symbols_(symbols), demangled_(demangled), names_(names), trie_(trie) {}

  // A handle for Functions. Executables of equal id (or, without one, of equal path) are the same; the first path names
  // it.
  uint32_t InternExecutable(const store::ExecutableRow& row);
  // The function, then what was inlined into it, the innermost last; never empty. Valid until the next call.
  std::span<const FunctionNo> Functions(uint32_t executable, const store::FrameRow& frame);

 private:
  struct Executable {
    ExecutableId id;
    std::string base_name;
    bool asked = false;
    std::shared_ptr<const SymbolTable> table;

    std::string_view BaseName(FlameGraph::Kind kind) const;
  };

  struct Chain {
    uint32_t first = 0, count = 0;  // of chained_
  };
  FunctionNo WithoutSymbols(const Executable& file, const store::FrameRow& frame, FlameGraph::Kind kind);
  const Chain& ChainOf(uint32_t executable, uint32_t row, FlameGraph::Kind kind);

  SymbolStore& symbols_;
  DemangleCache& demangled_;
  const FrameNames names_;
  FunctionTrie& trie_;
  std::vector<Executable> executables_;
  absl::flat_hash_map<ExecutableId, uint32_t> by_id_;
  absl::flat_hash_map<std::string, uint32_t> by_path_;
  absl::flat_hash_map<uint64_t, Chain> by_node_;  // executable << 32 | node of its table
  std::vector<FunctionNo> chained_;
  FunctionNo single_;
};

}  // namespace tributary
