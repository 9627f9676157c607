#pragma once

namespace tributary {

// Runs as the main function of the process that makes symbol tables (the symbol maker). Reads requests from `socket`
// (symbol_maker_protocol.h), reads the files that come with them, and answers with tables. Enters a sandbox before it
// reads the first request. Returns an exit code when the collector closes the socket.
int RunSymbolMaker(int socket);

// The collector starts its own binary with this argument as the symbol maker (base/child_process.h).
constexpr char kSymbolMakerArgument[] = "symbol-maker";

}  // namespace tributary
