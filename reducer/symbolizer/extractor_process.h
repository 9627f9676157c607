#pragma once

#include <cstdint>

#include "profile/executable_id.h"

namespace tributary {

// The extractor is a process that makes a symbol table from an executable or a debug file. It enters a sandbox before
// it reads the file, because files are untrusted. It reads one file and ends. The reducer treats its output as
// untrusted data.

// The reducer starts its own binary with this argument to get an extractor process. The next arguments are the fields
// of ExtractorRequest as text.
constexpr char kExtractorArgument[] = "symbol-extractor";

// Numbers of the file descriptors that are open in the extractor process.
constexpr int kExtractorFile = 3;
constexpr int kExtractorOutput = 4;
constexpr int kExtractorShared = 5;   // the file into which dwz moved shared debug information
constexpr int kExtractorPackage = 6;  // the package with split debug information (.dwp)

struct ExtractorRequest {
  uint64_t memory_bytes_max = 0;
  uint64_t cpu_seconds_max = 0;
  bool has_shared = false, has_package = false;
  ExecutableId claimed;  // if known: the file must belong to this executable
};

// The beginning of the extractor's output. The encoded table follows it.
struct ExtractorAnswer {
  uint32_t code = 0;  // absl::StatusCode
  uint32_t id_kind = 0, id_bytes = 0;
  uint8_t id[20] = {};  // the executable of the table
  uint32_t shared_id_bytes = 0;
  uint8_t shared_id[20] = {};  // not empty: build-id of the dwz file that was needed, but not passed
  uint32_t message_bytes = 0;
  char message[512] = {};
  uint64_t encoded_bytes = 0;
  uint64_t missing_split = 0, malformed = 0, left_out = 0;  // as in DebugSymbols (symbols/debug_symbols.h)
};

int RunSymbolExtractor(const ExtractorRequest& request);
// Runs the extractor with the arguments after kExtractorArgument. Returns the exit code of the process.
int RunSymbolExtractor(int argc, const char* const* argv);

}  // namespace tributary
