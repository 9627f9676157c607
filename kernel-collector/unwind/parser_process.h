#pragma once

namespace tributary {

constexpr int kParserIdleMs = 20'000;

// Runs the parser process. It takes requests from `socket` (parser_protocol.h), compiles the unwind rows of the files
// that come with them, and answers. It enters a sandbox before it reads the first byte. It ends when the collector
// closes the socket, or after `idle_ms` without work, so that a quiet node does not keep the process. Returns an exit
// code.
int RunUnwindParser(int socket, int idle_ms = kParserIdleMs);

// The argument with which the collector starts itself as the parser (base/child_process.h).
constexpr char kParserArgument[] = "unwind-parser";

}  // namespace tributary
