#pragma once

namespace tributary {

constexpr int kParserIdleMs = 20'000;

// Runs as the main function of the process that parses unwind information (the parser). Reads requests from `socket`
// (parser_protocol.h), compiles the unwind rows of the files that come with them, and answers. Enters a sandbox before
// it reads the first request. Returns an exit code when the collector closes the socket, or after `idle_ms` without a
// request: an idle parser should not use memory.
int RunUnwindParser(int socket, int idle_ms = kParserIdleMs);

// The collector starts its own binary with this argument as the parser (base/child_process.h).
constexpr char kParserArgument[] = "unwind-parser";

}  // namespace tributary
