#include "cli/options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <optional>
#include <string_view>

#include "base/log.h"
#include "base/number.h"
#include "base/version.h"
#include "cli/help.h"
#include "cli/print_docs.h"

namespace tributary::cli {
namespace {

// Returns "VALUE: must be …", which help.h turns into an error.
std::string Refusal(std::string_view value, std::string_view sentence) {
  return fmt::format("{}: {}", EscapeForDisplay(value), sentence);
}

// These three refuse a value in the words of base/options.h. The documents take the values of OneOf from the braces.
CLI::Validator OneOf(const std::vector<std::string>& values) {
  std::string sentence;
  for (size_t i = 0; i < values.size(); ++i) {
    sentence += fmt::format("{}{}", i == 0 ? "must be " : i + 1 < values.size() ? ", " : " or ", values[i]);
  }
  const auto check = [values, sentence](const std::string& value) {
    return std::find(values.begin(), values.end(), value) != values.end() ? std::string() : Refusal(value, sentence);
  };
  return CLI::Validator(check, fmt::format("{{{}}}", fmt::join(values, ",")));
}

CLI::Validator InRange(int64_t min, int64_t max) {
  const auto check = [min, max](const std::string& value) {
    const std::optional<int64_t> number = ParseNumber<int64_t>(value);
    if (number && *number >= min && *number <= max) return std::string();
    return Refusal(value, fmt::format("must be a number from {} to {}", min, max));
  };
  return CLI::Validator(check, "");
}

CLI::Validator IsBool() {
  const auto check = [](const std::string& value) {
    for (std::string_view known : {"true", "1", "yes", "on", "false", "0", "no", "off"}) {
      if (value == known) return std::string();
    }
    return Refusal(value, "must be true or false");
  };
  return CLI::Validator(check, "");
}

// Adds `--name`, `--no-name`, and `--name=false`, like bool options of base/options.h.
void AddSwitch(CLI::App* app, const std::string& name, bool* target, const std::string& help) {
  app->add_flag(fmt::format("{},!--no-{}", name, name.substr(2)), *target, help)->check(IsBool());
}

// Adds the options of files for TLS.
void AddTlsFiles(CLI::App* app, std::string* ca, std::string* cert, std::string* key, const std::string& cert_help) {
  app->add_option("--tls-ca", *ca,
                  "PEM file of the certificate authorities that sign the reducer's certificate; if not given, the "
                  "system's authorities are trusted")
      ->type_name("FILE");
  CLI::Option* cert_option = app->add_option("--tls-cert", *cert, cert_help);
  CLI::Option* key_option = app->add_option("--tls-key", *key, "PEM file of the private key for --tls-cert");
  cert_option->type_name("FILE")->needs(key_option);
  key_option->type_name("FILE")->needs(cert_option);
}

// Adds the options that name a reducer's HTTP server, and those to sign in there.
void AddServer(CLI::App* app, ServerOptions* server) {
  app->add_option("--server", server->url, "URL of the reducer's web page and API (reducer --http-listen)")
      ->type_name("URL")
      ->envname("TRIBUTARY_SERVER")
      ->capture_default_str();
  app->add_option("--token-file", server->token_file,
                  "file with the token to sign in with: the first word of its first line that is neither empty nor a "
                  "comment; other users of the machine must have no access to the file; instead, the environment "
                  "variable TRIBUTARY_TOKEN may contain the token itself")
      ->type_name("FILE");
  AddTlsFiles(app, &server->tls_ca, &server->tls_cert, &server->tls_key,
              "PEM file of the certificate chain to sign in with; needs --tls-key");
}

// Adds the options that select records. `records` is their name: "samples".
void AddSelection(CLI::App* app, QueryOptions* query, std::string_view records) {
  AddServer(app, &query->server);
  app->add_option("--query", query->query,
                  fmt::format("selector of {0}, such as '{{process_executable_name=\"x\",container_id=~\"a.*\"}}'; if "
                              "not given, all {0}",
                              records))
      ->type_name("SELECTOR");
  app->add_option("--from", query->from,
                  "start of the time range: a time before now such as -60s or now-5m; RFC 3339 with a zone, such as "
                  "2025-11-21T08:26:40+01:00; or Unix seconds or milliseconds, told apart by their size")
      ->type_name("TIME")
      ->capture_default_str();
  app->add_option("--to", query->to,
                  fmt::format("end of the time range; {} at exactly this time are not included", records))
      ->type_name("TIME")
      ->capture_default_str();
}

void AddQuery(CLI::App* app, QueryOptions* query) {
  AddSelection(app, query, "samples");
  app->add_option("--type", query->type, "type of samples: cpu, or another type of which the reducer has samples")
      ->type_name("TYPE")
      ->capture_default_str();
}

void AddFrames(CLI::App* app, FrameOptions* frames) {
  app->add_option("--frames", frames->frames,
                  "function: the frames of an interpreter's own code count for the functions that it runs, such as "
                  "Python's; all: they are shown, too")
      ->type_name("FRAMES")
      ->check(OneOf({"function", "all"}))
      ->capture_default_str();
  app->add_option("--language", frames->language,
                  "only stacks with code of these languages, separated by commas: python, go, jit (code that a process "
                  "generated), native, kernel, unknown; if not given, all")
      ->type_name("LANGUAGES");
  AddSwitch(app, "--lines", &frames->lines,
            "tell the lines of a function apart, and show them as 'name (file:line)', where the line is known");
}

CLI::App* AddStatus(CLI::App& app, StatusOptions* options) {
  CLI::App* status = app.add_subcommand(
      "status",
      "Show the nodes, how many of their samples were captured, stored and lost, and how many stacks are complete");
  AddServer(status, &options->server);
  AddSwitch(status, "--json", &options->json, "print the reducer's answers as JSON");
  return status;
}

CLI::App* AddTop(CLI::App& app, TopOptions* options) {
  CLI::App* top = app.add_subcommand("top",
                                     "Show the functions that used the most CPU time, without the time of functions "
                                     "that they called; with --type, the samples of another type are used");
  AddQuery(top, &options->query);
  AddFrames(top, &options->frames);
  top->add_option("--limit", options->limit, "maximum number of functions")
      ->type_name("N")
      ->check(InRange(1, 10'000))
      ->capture_default_str();
  AddSwitch(top, "--json", &options->json, "print the reducer's answer as JSON");
  return top;
}

CLI::App* AddLines(CLI::App& app, LinesOptions* options) {
  CLI::App* lines =
      app.add_subcommand("lines",
                         "Show the CPU time of each source line of a function, with the line's text if "
                         "the reducer has the source file; with --type, the samples of another type are used");
  AddQuery(lines, &options->query);
  lines->add_option("FUNCTION", options->function, "full name of the function, as tributary top --json prints it")
      ->required();
  lines
      ->add_option("--executable", options->executable,
                   "base name of an executable's file; only the function in this executable is shown")
      ->type_name("NAME");
  AddSwitch(lines, "--json", &options->json, "print the reducer's answer as JSON");
  return lines;
}

CLI::App* AddRollouts(CLI::App& app, RolloutsOptions* options) {
  CLI::App* rollouts =
      app.add_subcommand("rollouts",
                         "Show when workloads began to run another version, and compare their CPU use in the 30 "
                         "minutes before and after this change; with --type, the samples of another type are used");
  options->query.from = "-24h";
  AddQuery(rollouts, &options->query);
  rollouts
      ->add_option("--limit", options->limit,
                   "maximum number of rollouts; if there are more, only the newest are shown")
      ->type_name("N")
      ->check(InRange(1, 100))
      ->capture_default_str();
  AddSwitch(rollouts, "--json", &options->json, "print the reducer's answer as JSON");
  return rollouts;
}

CLI::App* AddEvents(CLI::App& app, EventsOptions* options) {
  CLI::App* events = app.add_subcommand(
      "events", "Show when processes started, ran another program and ended, how they ended, and what they used");
  AddSelection(events, &options->query, "process events");
  events
      ->add_option("--kind", options->kind,
                   "kinds of events to show, separated by commas: start, exec, exit, seen_running (it ran before the "
                   "collector started), end_unknown (it ended while no collector ran), sum (several short processes), "
                   "crash, oom (ended by the kernel for lack of memory), failed (exit code other than 0, or a signal), "
                   "restart; if not given, all")
      ->type_name("KINDS");
  events
      ->add_option("--limit", options->limit,
                   "maximum number of events, or of programs with --programs; no effect with --follow")
      ->type_name("N")
      ->check(InRange(1, 10'000))
      ->capture_default_str();
  AddSwitch(events, "--follow", &options->follow,
            "print events until a signal stops the command, oldest first, each event 10 s after it happened; if --from "
            "is not given, only new events are printed");
  AddSwitch(events, "--programs", &options->programs,
            "show which programs ran for less than 10 s, how often, and how much CPU time they used");
  AddSwitch(events, "--json", &options->json, "print the reducer's answer as JSON; with --follow, one answer per line");
  events->final_callback([events, options] {
    if (options->follow && options->programs) {
      throw CLI::ValidationError("--follow and --programs cannot be used together");
    }
    if (options->follow && events->count("--to") > 0) {
      throw CLI::ValidationError("--follow and --to cannot be used together: --follow has no end");
    }
    if (options->programs && !options->kind.empty()) {
      throw CLI::ValidationError("--programs and --kind cannot be used together");
    }
    // Events of the last 10 s are printed later.
    if (options->follow && events->count("--from") == 0) options->query.from = "-11s";
  });
  return events;
}

CLI::App* AddFlameGraph(CLI::App& app, FlameGraphOptions* options) {
  CLI::App* flame_graph = app.add_subcommand("flamegraph", "Write a flame graph to a file or to standard output");
  AddQuery(flame_graph, &options->query);
  AddFrames(flame_graph, &options->frames);
  flame_graph->add_option("--format", options->format, "output format: svg, html, folded, folded-address or json")
      ->type_name("FORMAT")
      ->check(OneOf({"svg", "html", "folded", "folded-address", "json"}))
      ->capture_default_str();
  flame_graph
      ->add_option("--unit", options->unit,
                   "unit of the widths in pictures and of the numbers in folded stacks; ns: the unit of --type "
                   "(nanoseconds for cpu); count: numbers of samples")
      ->type_name("UNIT")
      ->check(OneOf({"ns", "count"}))
      ->capture_default_str();
  flame_graph
      ->add_option("--out", options->out,
                   "output file; - is standard output; default: flamegraph.svg for svg, flamegraph.html for html, - "
                   "for other formats")
      ->type_name("FILE");
  flame_graph
      ->add_option("--max-nodes", options->max_nodes,
                   "maximum number of frames in the flame graph; if there are more, the smallest subtrees are left out")
      ->type_name("N")
      ->check(InRange(1, 10'000'000))
      ->capture_default_str();
  return flame_graph;
}

CLI::App* AddRecord(CLI::App& app, RecordOptions* options) {
  CLI::App* record = app.add_subcommand(
      "record",
      "Profile one command: start a private reducer and kernel-collector, run the command, and write a flame graph");
  record->add_option("--rate", options->rate_hz, "number of samples per second on each busy CPU")
      ->type_name("HZ")
      ->check(InRange(1, 10'000))
      ->capture_default_str();
  record->add_option("--format", options->format, "output format: svg, html or folded")
      ->type_name("FORMAT")
      ->check(OneOf({"svg", "html", "folded"}))
      ->capture_default_str();
  record->add_option("--out", options->out, "output file; - is standard output; default: flamegraph.FORMAT")
      ->type_name("FILE");
  record
      ->add_option(
          "--duration", options->duration,
          "stop the command after this time, such as 250ms, 30s or 5m; if not given, the command runs to its end")
      ->type_name("TIME");
  return record;
}

CLI::App* AddCheck(CLI::App& app, CheckOptions* options) {
  CLI::App* check =
      app.add_subcommand("check", "Check the files in a reducer's data directory, and print a line for each damage");
  check->add_option("DIR", options->directory, "data directory of a reducer on this machine (--data-dir or --store)")
      ->required();
  check
      ->add_option("--symbols-dir", options->symbols_directory,
                   "directory of the symbol tables, if it is not symbols/ in DIR: --symbols-dir of the reducer, or "
                   "symbols/ in its --data-dir if it has --store")
      ->type_name("DIR");
  AddSwitch(check, "--json", &options->json, "print each line as JSON");
  return check;
}

CLI::App* AddInspect(CLI::App& app, InspectOptions* options) {
  CLI::App* inspect =
      app.add_subcommand("inspect", "Print the messages in a recording of kernel-collector as JSON lines");
  inspect->add_option("FILE", options->file, "recording that kernel-collector --record-intake-output-path wrote")
      ->required();
  return inspect;
}

CLI::App* AddReplay(CLI::App& app, ReplayOptions* options) {
  CLI::App* replay =
      app.add_subcommand("replay", "Send a recording of kernel-collector to a reducer, as one node or as many nodes");
  replay->add_option("FILE", options->file, "recording that kernel-collector --record-intake-output-path wrote")
      ->required();
  replay->add_option("--intake-host", options->intake_host, "host of the reducer")
      ->type_name("HOST")
      ->envname("EBPF_NET_INTAKE_HOST")
      ->capture_default_str();
  replay->add_option("--intake-port", options->intake_port, "port of the reducer")
      ->type_name("PORT")
      ->check(InRange(0, 65'535))
      ->envname("EBPF_NET_INTAKE_PORT")
      ->capture_default_str();
  replay->add_option("--nodes", options->nodes, "number of simulated nodes; each node has its own session and node id")
      ->type_name("N")
      ->check(InRange(1, 20'000))
      ->capture_default_str();
  replay
      ->add_option("--speed", options->speed,
                   "speed of the replay; 1: as fast as the samples were recorded; 10: ten times as fast; max: as fast "
                   "as the reducer accepts samples")
      ->type_name("FACTOR")
      ->capture_default_str();
  replay
      ->add_option("--repeat", options->repeat,
                   "how many times each node sends the recording; 0: again and again, until a signal stops the command")
      ->type_name("K")
      ->check(InRange(0, 1'000'000))
      ->capture_default_str();
  replay
      ->add_option("--symbols", options->symbols,
                   "number of functions in each symbol table that a node sends when the reducer requests it; the "
                   "functions are invented; 0: the nodes send no symbol tables")
      ->type_name("N")
      ->check(InRange(0, 1'000'000))
      ->capture_default_str();
  AddSwitch(replay, "--tls", &options->tls,
            "connect to the reducer by TLS; --tls-ca, --tls-cert or --tls-server-name imply --tls");
  AddTlsFiles(replay, &options->tls_ca, &options->tls_cert, &options->tls_key,
              "PEM file of the certificate chain that all nodes use; needs --tls-key");
  replay
      ->add_option("--tls-server-name", options->tls_server_name,
                   "name that the reducer's certificate must contain; if not given, --intake-host")
      ->type_name("NAME");
  replay
      ->add_option("--intake-token-file", options->token_file, "file with the token that all nodes send to the reducer")
      ->type_name("FILE");
  AddSwitch(replay, "--json", &options->json, "print the summary as JSON when the replay has ended");
  return replay;
}

CLI::App* AddSymbols(CLI::App& app, SymbolsOptions* options) {
  CLI::App* symbols = app.add_subcommand(
      "symbols",
      "Show the executables that were sampled or have a symbol table, the sources of their function names, "
      "and which share of their sampled addresses has no name");
  AddQuery(symbols, &options->query);
  symbols->add_option("--limit", options->limit, "maximum number of executables")
      ->type_name("N")
      ->check(InRange(1, 100'000))
      ->capture_default_str();
  AddSwitch(symbols, "--json", &options->json, "print the reducer's answer as JSON");
  symbols->require_subcommand(0, 1);
  return symbols;
}

CLI::App* AddPush(CLI::App& symbols, PushOptions* options) {
  CLI::App* push = symbols.add_subcommand(
      "push", "Make a symbol table from each given file, on this machine, and send the tables to the reducer");
  push->add_option("PATH", options->paths,
                   "executables, libraries, kernels, kernel modules, separate debug files, or .tsym files (symbol "
                   "tables); a directory means all such files in it and in its subdirectories")
      ->required();
  AddServer(push, &options->server);
  push->add_option("--build-id", options->build_id,
                   "build-id of the executable, for a file that contains no build-id; only with one PATH")
      ->type_name("HEX");
  AddSwitch(push, "--whole", &options->whole, "send the files themselves; the reducer makes the symbol tables");
  return push;
}

CLI::App* AddRemoveSymbols(CLI::App& symbols, RemoveSymbolsOptions* options) {
  CLI::App* remove = symbols.add_subcommand(
      "rm", "Delete symbol tables in the reducer, for example tables with wrong names; nodes may then be asked again");
  remove
      ->add_option("BUILD-ID", options->build_ids,
                   "build-ids of the executables, as tributary symbols prints them; the first 6 letters are enough")
      ->required();
  AddServer(remove, &options->server);
  return remove;
}

CLI::App* AddResolve(CLI::App& symbols, ResolveOptions* options) {
  CLI::App* resolve = symbols.add_subcommand(
      "resolve",
      "Print the functions, inlined calls, files and lines at addresses of an executable, from its debug information");
  resolve->add_option("FILE", options->file, "an executable, a library or a separate debug file")->required();
  resolve->add_option("ADDRESS", options->addresses,
                      "ELF virtual addresses, hexadecimal with or without 0x; if no ADDRESS is given, addresses are "
                      "read from standard input, one per line");
  AddSwitch(resolve, "--json", &options->json,
            "print one JSON line per address, then one line with the source of the names and the numbers of symbols, "
            "debug entries and compilation units with problems");
  return resolve;
}

// All commands. Their parsed values go to `line`, which must outlive them.
struct Commands {
  explicit Commands(CommandLine& line);

  CLI::App app{"Queries a Tributary reducer, profiles one command, or reads recordings of kernel-collector.",
               "tributary"};
  CLI::App *status, *top, *lines, *rollouts, *events, *flame_graph, *record, *check, *inspect, *replay, *symbols, *push,
      *remove, *resolve;
  std::string print_docs;  // only for --help: ParseCommandLine checks for this option before all others
};

Commands::Commands(CommandLine& line) {
  app.formatter(MakeHelpFormatter());  // also for the commands, like the following settings
  app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  app.set_help_flag("--help,-h", "print this help and exit");
  app.set_version_flag("--version", VersionLine("tributary"), "print the version and exit");
  app.add_option(
         "--print-docs", print_docs,
         "print a document about these options, and exit; man: the man page; man COMMAND: the man page of a command; "
         "bash, zsh or fish: the completion script for this shell; commands: the names of all commands")
      ->type_name("FORMAT")
      ->check(OneOf({"man", "bash", "zsh", "fish", "commands"}));
  app.require_subcommand(1);
  status = AddStatus(app, &line.status);
  top = AddTop(app, &line.top);
  lines = AddLines(app, &line.lines);
  rollouts = AddRollouts(app, &line.rollouts);
  events = AddEvents(app, &line.events);
  flame_graph = AddFlameGraph(app, &line.flame_graph);
  record = AddRecord(app, &line.record);
  check = AddCheck(app, &line.check);
  inspect = AddInspect(app, &line.inspect);
  replay = AddReplay(app, &line.replay);
  symbols = AddSymbols(app, &line.symbols);
  push = AddPush(*symbols, &line.push);
  remove = AddRemoveSymbols(*symbols, &line.remove_symbols);
  resolve = AddResolve(*symbols, &line.resolve);
}

CommandLine::Command ChosenCommand(const Commands& commands) {
  using Command = CommandLine::Command;
  return commands.status->parsed()        ? Command::kStatus
         : commands.top->parsed()         ? Command::kTop
         : commands.flame_graph->parsed() ? Command::kFlameGraph
         : commands.check->parsed()       ? Command::kCheck
         : commands.inspect->parsed()     ? Command::kInspect
         : commands.replay->parsed()      ? Command::kReplay
         : commands.resolve->parsed()     ? Command::kResolve
         : commands.lines->parsed()       ? Command::kLines
         : commands.rollouts->parsed()    ? Command::kRollouts
         : commands.events->parsed()      ? Command::kEvents
         : commands.push->parsed()        ? Command::kPush
         : commands.remove->parsed()      ? Command::kRemoveSymbols
         : commands.symbols->parsed()     ? Command::kSymbols
                                          : Command::kRecord;
}

}  // namespace

CommandLine ParseCommandLine(int argc, const char* const* argv) {
  CommandLine line;
  Commands commands(line);
  const std::vector<std::string> arguments(argv + std::min(argc, 1), argv + argc);
  if (AsksForDocs(arguments)) {
    line.exit_code = PrintDocs(commands.app, arguments);
    return line;
  }
  // The arguments after "--" are record's command, whatever they look like.
  int own = 1;
  while (own < argc && std::string_view(argv[own]) != "--") ++own;
  for (int i = own + 1; i < argc; ++i) line.record.command.emplace_back(argv[i]);
  try {
    commands.app.parse(own, argv);
    if (commands.record->parsed() == (line.record.command.empty())) {
      throw CLI::ValidationError(commands.record->parsed() ? "record needs a command: tributary record -- COMMAND"
                                                           : "only tributary record accepts a command after --");
    }
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) {
      commands.app.exit(error);  // prints the requested text
      return line;
    }
    fmt::print(stderr, "tributary: {}\n", UsageError(commands.app, error));
    line.exit_code = kExitUsage;
    return line;
  }
  line.command = ChosenCommand(commands);
  return line;
}

}  // namespace tributary::cli
