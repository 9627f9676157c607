#pragma once

namespace tributary {

// The whole life of the process that makes symbol tables: takes requests from `socket` (symbol_maker_protocol.h), reads
// the files that come with them, answers with tables; in a sandbox from before the first byte is read. Ends when the
// collector closes the socket. Returns an exit code.
int RunSymbolMaker(int socket);

// The argument by which the collector starts itself as that process (base/child_process.h).
constexpr char kSymbolMakerArgument[] = "symbol-maker";

}  // namespace tributary
