#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tributary::cli {

constexpr int kExitOk = 0, kExitFailure = 1, kExitUsage = 2;

// A reducer's HTTP server, and how to sign in there.
struct ServerOptions {
  std::string url = "http://127.0.0.1:4040";
  std::string token_file;
  std::string tls_ca, tls_cert, tls_key;  // only for https://
};

struct StatusOptions {
  ServerOptions server;
  bool json = false;
};

// The options of every command that sends a query. All except `server` are sent to the reducer unchanged.
struct QueryOptions {
  ServerOptions server;
  std::string query, from = "-15m", to = "now", type = "cpu";
};

// Which frames and stacks of the selected samples are shown. The reducer checks `language`.
struct FrameOptions {
  std::string frames = "function";  // function, all
  std::string language;             // a list, as docs/api.md describes it; "": all
  bool lines = false;
};

struct TopOptions {
  QueryOptions query;
  FrameOptions frames;
  uint32_t limit = 30;
  bool json = false;
};

struct FlameGraphOptions {
  QueryOptions query;
  FrameOptions frames;
  std::string format = "svg";  // svg, html, folded, folded-address, json
  std::string unit = "ns";     // ns, count
  std::string out;             // "": chosen by format; "-": standard output
  uint32_t max_nodes = 50'000;
};

struct RecordOptions {
  uint32_t rate_hz = 99;
  std::string format = "svg";  // svg, html, folded
  std::string out;
  std::string duration;  // "30s"; "": until the command ends
  std::vector<std::string> command;
};

struct CheckOptions {
  std::string directory;
  std::string symbols_directory;  // "": in `directory`
  bool json = false;
};

struct InspectOptions {
  std::string file;
};

struct ReplayOptions {
  std::string file;
  std::string intake_host = "127.0.0.1";
  uint16_t intake_port = 8000;
  uint32_t nodes = 1;
  std::string speed = "1";  // a factor, or "max"
  uint32_t repeat = 1;      // 0: forever
  uint32_t symbols = 0;     // functions in each made-up symbol table; 0: no symbol tables
  bool tls = false;         // TLS is also used if one of the next four is given
  std::string tls_ca, tls_cert, tls_key, tls_server_name;
  std::string token_file;
  bool json = false;
};

struct ResolveOptions {
  std::string file;
  std::vector<std::string> addresses;  // empty: read from standard input, one per line
  bool json = false;
};

struct SymbolsOptions {
  QueryOptions query;
  uint32_t limit = 100;
  bool json = false;
};

struct RolloutsOptions {
  QueryOptions query;
  int limit = 20;
  bool json = false;
};

struct EventsOptions {
  QueryOptions query;  // without `type`
  std::string kind;    // a list, as docs/api.md describes it; "": all
  uint32_t limit = 100;
  bool follow = false, programs = false, json = false;
};

struct LinesOptions {
  QueryOptions query;
  std::string function, executable;
  bool json = false;
};

struct PushOptions {
  ServerOptions server;
  std::vector<std::string> paths;  // files, and directories with all their files
  std::string build_id;            // for a single file without a build-id of its own
  bool whole = false;              // send the file instead of the table made from it
};

struct RemoveSymbolsOptions {
  ServerOptions server;
  std::vector<std::string> build_ids;
};

struct CommandLine {
  enum class Command {
    kNone,
    kStatus,
    kTop,
    kFlameGraph,
    kRecord,
    kInspect,
    kReplay,
    kResolve,
    kSymbols,
    kPush,
    kRemoveSymbols,
    kLines,
    kRollouts,
    kEvents,
    kCheck
  };
  Command command = Command::kNone;
  int exit_code = kExitOk;  // for kNone: help was printed, or a usage error
  StatusOptions status;
  TopOptions top;
  FlameGraphOptions flame_graph;
  RecordOptions record;
  CheckOptions check;
  InspectOptions inspect;
  ReplayOptions replay;
  ResolveOptions resolve;
  SymbolsOptions symbols;
  PushOptions push;
  RemoveSymbolsOptions remove_symbols;
  LinesOptions lines;
  RolloutsOptions rollouts;
  EventsOptions events;
};

// Parses the arguments. If help, the version or a document (--print-docs) is requested, prints it and returns
// Command::kNone. If the arguments are wrong, prints the error and returns Command::kNone.
CommandLine ParseCommandLine(int argc, const char* const* argv);

}  // namespace tributary::cli
