#pragma once

#include <cstdint>
#include <type_traits>

#include "profile/executable_id.h"

namespace tributary {

// What the collector and the process that makes its symbol tables say to each other over a stream socket
// (base/socket_message.h): both are one binary of one build, so structures travel as they lie in memory. The answers
// are bounded all the same: the process may have been taken over. What it answers the reducer checks.

struct SymbolMakerRequest {
  enum Kind : uint32_t {
    kElf = 0,     // the file that comes along is the executable
    kKernel = 1,  // it is /proc/kallsyms, opened by who may see its addresses
    kModule = 2,  // the same; of the module below
  };
  static constexpr size_t kModuleNameMax = 64;  // the kernel's own limit, with the byte behind it

  uint32_t kind = kElf;
  uint32_t debug_information = 0;  // kElf: inlined calls and lines too, where the file has them
  ExecutableId id;
  char module_name[kModuleNameMax] = {};
  uint64_t module_base = 0, module_size = 0;
};
static_assert(std::is_trivially_copyable_v<SymbolMakerRequest>);

struct SymbolMakerAnswer {
  uint32_t made = 0;  // else the message says why not
  uint32_t message_bytes = 0;
  uint64_t stored_bytes = 0;  // of the table, encoded and compressed
  uint64_t raw_bytes = 0;     // of the table, encoded
  uint64_t left_out = 0;      // what the file has beyond limits, or what could not be read of it
  // Behind it: message, table.
};

// As much as a reducer takes of one table unless told otherwise, and a table of 10 million functions.
constexpr uint64_t kSymbolTableStoredBytesMax = 128u << 20;
constexpr uint64_t kSymbolTableRawBytesMax = 512u << 20;
constexpr uint32_t kSymbolMakerMessageMax = 1024;

}  // namespace tributary
