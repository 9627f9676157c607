#pragma once

namespace tributary {

// The parser process's whole life: takes requests from `socket` (parser_protocol.h), compiles unwind rows of the files
// that come with them, answers; in a sandbox from before the first byte is read. Ends when the collector closes the
// socket, and by itself after kParserIdleMs without work, so that a quiet node does not keep it. Returns an exit code.
constexpr int kParserIdleMs = 20'000;
int RunUnwindParser(int socket, int idle_ms = kParserIdleMs);

// The argument by which the collector starts itself as the parser (base/child_process.h).
constexpr char kParserArgument[] = "unwind-parser";

}  // namespace tributary
