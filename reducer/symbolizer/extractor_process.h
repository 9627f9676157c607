#pragma once

#include <cstdint>

#include "profile/executable_id.h"

namespace tributary {

// The process that turns an executable or a debug file into a symbol table. It enters a sandbox before it reads the
// first byte, handles one file, and ends. The reducer treats its output as untrusted data.

// The argument with which the reducer starts itself as an extractor. ExtractorRequest's fields follow as text.
constexpr char kExtractorArgument[] = "symbol-extractor";

// Descriptors that the process receives.
constexpr int kExtractorFile = 3;
constexpr int kExtractorOutput = 4;
constexpr int kExtractorShared = 5;   // the file with the parts that dwz moved
constexpr int kExtractorPackage = 6;  // the .dwp

struct ExtractorRequest {
  uint64_t memory_bytes_max = 0;
  uint64_t cpu_seconds_max = 0;
  bool has_shared = false, has_package = false;
  ExecutableId claimed;  // if known: the file is of this executable, and must not claim another
};

// Comes first in the output. The encoded table follows.
struct ExtractorAnswer {
  uint32_t code = 0;  // absl::StatusCode
  uint32_t id_kind = 0, id_bytes = 0;
  uint8_t id[20] = {};  // the executable of the table
  uint32_t shared_id_bytes = 0;
  uint8_t shared_id[20] = {};  // not empty: build-id of the file with dwz's parts, which was not handed over
  uint32_t message_bytes = 0;
  char message[512] = {};
  uint64_t encoded_bytes = 0;
  uint64_t missing_split = 0, malformed = 0, left_out = 0;  // DebugSymbols
};

int RunSymbolExtractor(const ExtractorRequest& request);
// Takes the arguments after kExtractorArgument. Returns an exit code.
int RunSymbolExtractor(int argc, const char* const* argv);

}  // namespace tributary
