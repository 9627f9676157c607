#pragma once

#include <cstdint>
#include <type_traits>

#include "profile/executable_id.h"
#include "symbols/symbol_digest.h"

namespace tributary {

// The messages between the collector and its symbol-maker process over a stream socket (base/socket_message.h). Both
// processes run the same binary, so structures are sent as they are in memory. The collector still checks the sizes in
// the answers, because an attacker may control the symbol-maker process. The reducer checks the content of the tables.
// On a node that names frames itself, NameTables checks it.

struct SymbolMakerRequest {
  enum Kind : uint32_t {
    kElf = 0,     // the file that comes with the request is the executable
    kKernel = 1,  // the file is /proc/kallsyms; the kernel shows its addresses because the collector opened it
    kModule = 2,  // the file is /proc/kallsyms, as for kKernel; the table is of `module_name`
  };
  static constexpr size_t kModuleNameMax = 64;  // the kernel's own limit, including the zero byte

  uint32_t kind = kElf;
  uint32_t debug_information = 0;  // kElf: also inlined calls and lines, if the file has them
  uint32_t flat = 0;               // 1: the answer is the table's flat form (docs/symbol-table.md), not the encoded one
  uint32_t padding = 0;
  ExecutableId id;
  char module_name[kModuleNameMax] = {};
  uint64_t module_base = 0, module_size = 0;
};
static_assert(std::is_trivially_copyable_v<SymbolMakerRequest>);

struct SymbolMakerAnswer {
  uint32_t made = 0;  // 0: the message contains the reason
  uint32_t message_bytes = 0;
  uint64_t stored_bytes = 0;  // of the table, compressed
  uint64_t raw_bytes = 0;     // of the table, not compressed: encoded, or in flat form
  uint64_t left_out = 0;      // entries of the file that exceed limits or could not be read
  SymbolDigest digest;        // of the table, encoded; SymbolDigest() for a flat table
  // Followed by: message, table.
};

// Limits of one table, compressed and uncompressed. They are also the default limits in a reducer, and are enough for a
// table of 10 million functions.
constexpr uint64_t kSymbolTableStoredBytesMax = 128u << 20;
constexpr uint64_t kSymbolTableRawBytesMax = 512u << 20;
// Limit, in bytes, of the message that says why there is no table.
constexpr uint32_t kSymbolMakerMessageMax = 1024;

}  // namespace tributary
