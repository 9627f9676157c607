#pragma once

namespace tributary {

// Runs the process that makes symbol tables. It receives requests from `socket` (symbol_maker_protocol.h), reads the
// files that come with them, and answers with tables. It is in a sandbox before it reads the first byte. It ends when
// the collector closes the socket. Returns an exit code.
int RunSymbolMaker(int socket);

// The argument with which the collector starts itself as that process (base/child_process.h).
constexpr char kSymbolMakerArgument[] = "symbol-maker";

}  // namespace tributary
