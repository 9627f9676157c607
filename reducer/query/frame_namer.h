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
// If a frame came with a name, that name is used. Otherwise, with function names, the first of these that is known:
//   - The function that covers the address, and the functions inlined into it there. For an address to which a call
//     returns, address − 1 is looked up. A symbol never covers addresses past its size.
//   - `binary+0xstart`, if the bounds of the function are known but not its name.
//   - A name that depends on the frame's kind (profile/frame_kinds.h): `binary+0xaddress`, `[kernel]+0xoffset` for
//     kernel code, `[unknown]` where nothing is mapped.
// With addresses in place of function names, the name is `build-id+0xaddress`.
class FrameNamer {
 public:
  FrameNamer(SymbolLookup symbols, DemangleCache& demangled, FrameNames names, FunctionTrie& trie)
      : symbolizer_(std::move(symbols)), demangled_(demangled), names_(names), trie_(trie) {}

  // Returns a handle for Name. Executables with equal ids (or, without an id, with equal paths) are the same. The first
  // path names the executable.
  uint32_t InternExecutable(const store::ExecutableRow& row);

  struct Chain {
    uint32_t first = 0, count = 0;
  };
  // Names the frames `frames[i]` for all i in `wanted`, and writes their chains to `chains[i]`. All of these frames
  // must be of `executable`. Naming many frames at once takes a fraction of the time of naming them one by one.
  // `text_of` returns the text of a name that the sender gave to a frame.
  using TextLookup = absl::FunctionRef<std::string_view(store::StringId)>;
  void Name(uint32_t executable, std::span<const store::FrameRow> frames, std::span<const uint32_t> wanted,
            TextLookup text_of, std::span<Chain> chains);
  // Returns the function, then the functions inlined into it, innermost last; never empty. Valid until the next Name.
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
  struct Walked {  // the part of a SymbolTable::Frame that names it; its call site is ignored
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
  absl::flat_hash_map<std::pair<const char*, FrameKind>, FunctionNo> by_name_;  // by the address of a table's string
  std::vector<FunctionNo> functions_;                                           // of all chains
  std::vector<Walked> walked_;
  std::vector<FrameSymbolizer::Place> places_;
};

}  // namespace tributary
