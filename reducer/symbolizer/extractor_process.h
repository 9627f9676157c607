#pragma once

#include <cstdint>

#include "profile/executable_id.h"

namespace tributary {

// The process that turns an executable or a debug file into a symbol table: in a sandbox from before the first byte is
// read, for one file, then it ends. What it writes is looked at as if a stranger had written it.

// The argument by which the reducer starts itself as one; behind it ExtractorRequest's fields as text.
constexpr char kExtractorArgument[] = "symbol-extractor";

// Descriptors that it is handed.
constexpr int kExtractorFile = 3;
constexpr int kExtractorOutput = 4;
constexpr int kExtractorShared = 5;   // what dwz moved to another file
constexpr int kExtractorPackage = 6;  // the .dwp

struct ExtractorRequest {
  uint64_t memory_bytes_max = 0;
  uint64_t cpu_seconds_max = 0;
  bool has_shared = false, has_package = false;
  ExecutableId claimed;  // known: it is this one's, and may not say that it is another's
};

// At the begin of the output; behind it the encoded table.
struct ExtractorAnswer {
  uint32_t code = 0;  // absl::StatusCode
  uint32_t id_kind = 0, id_bytes = 0;
  uint8_t id[20] = {};  // whose table it is
  uint32_t shared_id_bytes = 0;
  uint8_t shared_id[20] = {};  // not empty: build-id of what dwz moved, which was not handed over
  uint32_t message_bytes = 0;
  char message[512] = {};
  uint64_t encoded_bytes = 0;
  uint64_t missing_split = 0, malformed = 0, left_out = 0;  // DebugSymbols
};

int RunSymbolExtractor(const ExtractorRequest& request);
// The arguments behind kExtractorArgument; an exit code.
int RunSymbolExtractor(int argc, const char* const* argv);

}  // namespace tributary
