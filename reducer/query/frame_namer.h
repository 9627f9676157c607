#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "reducer/query/demangle_cache.h"
#include "reducer/query/function_trie.h"
#include "reducer/query/query_request.h"
#include "reducer/store/store.h"
#include "reducer/symbolizer/frame_symbolizer.h"

namespace tributary {

// Turns frames into functions for one query.
//
// With function names: the function that covers the address (at address − 1 for one that a call returns to) and what
// was inlined into it there, never the nearest symbol past its size; `binary+0xstart` for a function whose bounds alone
// are known; else what the frame's kind says (profile/frame_kinds.h): `binary+0xaddress`, `[kernel]+0xoffset` for
// kernel code, `[unknown]` where nothing is mapped, the name that it came with. With addresses: `build-id+0xaddress`.
class FrameNamer {
 public:
  FrameNamer(SymbolLookup symbols, DemangleCache& demangled, FrameNames names, FunctionTrie& trie)
      : symbolizer_(std::move(symbols)), demangled_(demangled), names_(names), trie_(trie) {}

  // A handle for Name. Executables of equal id (or, without one, of equal path) are the same; the first path names it.
  uint32_t InternExecutable(const store::ExecutableRow& row);

  struct Chain {
    uint32_t first = 0, count = 0;
  };
  // What each of these frames is, all of that executable: `wanted` are indices of `frames` and of `chains`. Many at
  // once are named in a fraction of the time that they would take one by one. `text_of`: of names that frames came
  // with.
  using TextLookup = absl::FunctionRef<std::string_view(store::StringId)>;
  void Name(uint32_t executable, std::span<const store::FrameRow> frames, std::span<const uint32_t> wanted,
            TextLookup text_of, std::span<Chain> chains);
  // The function, then what was inlined into it, the innermost last; never empty. Valid until the next Name.
  std::span<const FunctionNo> Functions(const Chain& chain) const {
    return std::span(functions_).subspan(chain.first, chain.count);
  }

 private:
  struct Executable {
    ExecutableId id;
    std::string base_name;

    std::string_view BaseName(FrameKind kind) const;
  };

  Chain ChainOf(uint32_t executable, const FrameSymbolizer::Place& place);
  struct Walked {  // of a SymbolTable::Frame what names it: where it was called is not looked at
    std::string_view name;
    uint32_t node;
    bool inlined;
  };
  FunctionNo FunctionOf(const Executable& file, const Walked& frame, const FrameSymbolizer::Place& place);
  static uint64_t NodeKey(uint32_t executable, uint32_t node) { return uint64_t{executable} << 32 | node; }
  FunctionNo WithoutSymbols(const Executable& file, const store::FrameRow& frame, FrameKind kind);

  FrameSymbolizer symbolizer_;
  DemangleCache& demangled_;
  const FrameNames names_;
  FunctionTrie& trie_;
  std::vector<Executable> executables_;
  absl::flat_hash_map<ExecutableId, uint32_t> by_id_;
  absl::flat_hash_map<std::string, uint32_t> by_path_;
  absl::flat_hash_map<uint64_t, Chain> by_node_;                                // executable << 32 | node of its table
  absl::flat_hash_map<std::pair<const char*, FrameKind>, FunctionNo> by_name_;  // of a table's string
  std::vector<FunctionNo> functions_;                                           // of all chains
  std::vector<Walked> walked_;
  std::vector<FrameSymbolizer::Place> places_;
};

}  // namespace tributary
