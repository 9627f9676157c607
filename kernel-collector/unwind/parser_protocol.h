#pragma once

#include <cstdint>

namespace tributary {

// The messages between the collector and its parser process, over a stream socket (base/socket_message.h). Both
// processes run the same binary, so structures are sent as they are in memory. The collector still checks the parser's
// answers, because an attacker may control the parser.

struct ParserRequest {
  uint64_t file = 0;  // the collector's number for the file; the parser keeps the last few files open under it
  uint64_t begin = 0, end = 0;
  uint32_t has_descriptor = 0;  // this message also passes the file (SCM_RIGHTS)
  uint32_t padding = 0;
};

struct ParserAnswer {
  enum Code : uint32_t { kOk = 0, kNeedsFile = 1, kFailed = 2 };
  uint32_t code = kFailed;
  uint32_t kind = 0;  // UnwindSource::Kind
  uint32_t row_count = 0, start_count = 0, message_bytes = 0;
  uint32_t padding = 0;
  uint64_t unsupported_rows = 0;
  int64_t cpu_ns = 0;
  // The answer is followed by: rows (UnwindRow), starts (AddressRange), message.
};

constexpr uint32_t kParserRowsMax = 4u << 20;
constexpr uint32_t kParserStartsMax = 1024;
constexpr uint32_t kParserMessageMax = 1024;

}  // namespace tributary
