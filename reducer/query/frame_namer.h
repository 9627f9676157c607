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
#include "symbols/frame_symbolizer.h"

namespace tributary {

inline constexpr std::string_view kUnknownName = "[unknown]";  // of a function or file
inline constexpr std::string_view kKernelName = "[kernel]";    // of the file of kernel code

// Finds the function names for the frames of one query.
//
// If the sender of a frame sent a name with it, that name is used. Otherwise, with FrameNames::kFunction, the name is
// the first of these that is known:
//   - The name of the function at the address, followed by the names of the functions inlined there. For a return
//     address, address − 1 is looked up. A symbol with a size does not name addresses past its end.
//   - `binary+0xstart`, with the start address of the function, if its bounds are known but its name is not.
//   - A name that depends on the frame's kind (profile/frame_kinds.h): `binary+0xaddress`, `[kernel]+0xoffset` for
//     kernel code, `build-id+0xaddress` if the executable's path is unknown, `[unknown]` for an address in no mapping,
//     `[python]` for a kind whose frames have no addresses.
// With FrameNames::kAddress, the name is `build-id+0xaddress`.
//
// If the request wants lines, each function also has its file and line, as far as they are known.
class FrameNamer {
 public:
  FrameNamer(SymbolLookup symbols, DemangleCache& demangled, const QueryRequest& request, FunctionTrie& trie)
      : symbolizer_(std::move(symbols)),
        demangled_(demangled),
        names_(request.frames),
        needs_tables_(request.frames == FrameNames::kFunction || request.languages != 0),
        lines_(request.lines),
        trie_(trie) {}

  // Returns the executable's number. Pass this number to Name. Rows with equal ids (or, without an id, with equal
  // paths) get the same number. The path of the first such row names the executable.
  uint32_t InternExecutable(const store::ExecutableRow& row);

  struct Chain {
    uint32_t first = 0, count = 0;
  };
  // Names `frames[i]` for each i in `wanted`, and writes the result to `chains[i]`. All these frames must belong to
  // `executable`. Naming many frames in one call is much faster than naming them one by one. `text_of` returns the text
  // of a name that was sent with a frame.
  using TextLookup = absl::FunctionRef<std::string_view(store::StringId)>;
  void Name(uint32_t executable, std::span<const store::FrameRow> frames, std::span<const uint32_t> wanted,
            TextLookup text_of, std::span<Chain> chains);
  // Returns the function, then the functions inlined into it, innermost last. The result is never empty. It is valid
  // until the next call of Name.
  std::span<const FunctionNo> Functions(const Chain& chain) const {
    return std::span(functions_).subspan(chain.first, chain.count);
  }
  // Returns the kind of the chain's frame, as the executable's table knows it.
  FrameKind KindOf(const Chain& chain) const { return trie_.KindOf(functions_[chain.first]); }

 private:
  struct Executable {
    ExecutableId id;
    std::string path, base_name;

    std::string_view BaseName(FrameKind kind) const;
  };

  Chain ChainOf(uint32_t executable, const FrameSymbolizer::Place& place);
  // As ChainOf, with the lines of the functions.
  Chain ChainWithLines(const Executable& file, const FrameSymbolizer::Place& place);
  struct Walked {  // the part of a SymbolTable::Frame that names it; its call site is ignored
    std::string_view name;
    uint32_t node;
    bool inlined;
    FunctionTrie::Line line = {};  // only with lines
  };
  FunctionNo FunctionOf(const Executable& file, const Walked& frame, const FrameSymbolizer::Place& place);
  static uint64_t NodeKey(uint32_t executable, uint32_t node) { return uint64_t{executable} << 32 | node; }
  FunctionNo WithOwnName(const Executable& file, const store::FrameRow& frame, FrameKind kind,
                         std::string_view own_name);
  FunctionNo WithoutSymbols(const Executable& file, const store::FrameRow& frame, FrameKind kind);

  FrameSymbolizer symbolizer_;
  DemangleCache& demangled_;
  const FrameNames names_;
  const bool needs_tables_;  // for names, or to know the languages of frames
  const bool lines_;
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
