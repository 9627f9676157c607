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

void AddServer(CLI::App* app, std::string* server) {
  app->add_option("--server", *server, "URL of the reducer to ask")
      ->type_name("URL")
      ->envname("TRIBUTARY_SERVER")
      ->capture_default_str();
}

void AddQuery(CLI::App* app, QueryOptions* query) {
  AddServer(app, &query->server);
  app->add_option(
         "--query", query->query,
         "selector of samples: '{process_executable_name=\"x\",container_id=~\"a.*\"}'; all samples if not given")
      ->type_name("SELECTOR");
  app->add_option("--from", query->from, "start of the time range: -60s, now-5m, or unix milliseconds")
      ->type_name("TIME")
      ->capture_default_str();
  app->add_option("--to", query->to, "end of the time range, not included")->type_name("TIME")->capture_default_str();
  app->add_option("--type", query->type, "type of samples: cpu, or another type that the reducer has samples of")
      ->type_name("TYPE")
      ->capture_default_str();
}

CLI::App* AddStatus(CLI::App& app, StatusOptions* options) {
  CLI::App* status = app.add_subcommand("status", "Show nodes, samples captured, stored and lost, and stack health");
  AddServer(status, &options->server);
  AddSwitch(status, "--json", &options->json, "print the reducer's answers as JSON");
  return status;
}

CLI::App* AddTop(CLI::App& app, TopOptions* options) {
  CLI::App* top = app.add_subcommand(
      "top",
      "Show the functions that used the most CPU time themselves, or that have the most of another --type of samples");
  AddQuery(top, &options->query);
  top->add_option("--limit", options->limit, "maximum number of functions")
      ->type_name("N")
      ->check(InRange(1, 10'000))
      ->capture_default_str();
  AddSwitch(top, "--json", &options->json, "print the reducer's answer as JSON");
  return top;
}

CLI::App* AddLines(CLI::App& app, LinesOptions* options) {
  CLI::App* lines = app.add_subcommand(
      "lines",
      "Show the CPU time, or another --type of samples, of each line of a function, with the line's text if the "
      "reducer has it");
  AddQuery(lines, &options->query);
  lines->add_option("FUNCTION", options->function, "name of the function, as a flame graph or tributary top shows it")
      ->required();
  lines
      ->add_option("--executable", options->executable,
                   "show only the function of this executable: the base name of the executable's file")
      ->type_name("NAME");
  AddSwitch(lines, "--json", &options->json, "print the reducer's answer as JSON");
  return lines;
}

CLI::App* AddRollouts(CLI::App& app, RolloutsOptions* options) {
  CLI::App* rollouts = app.add_subcommand("rollouts",
                                          "Show when workloads began to run another version, and compare their CPU "
                                          "use, or another --type of samples, in the 30 minutes before and after");
  options->query.from = "-24h";
  AddQuery(rollouts, &options->query);
  rollouts->add_option("--limit", options->limit, "maximum number of rollouts; the newest are shown")
      ->type_name("N")
      ->check(InRange(1, 100))
      ->capture_default_str();
  AddSwitch(rollouts, "--json", &options->json, "print the reducer's answer as JSON");
  return rollouts;
}

CLI::App* AddFlameGraph(CLI::App& app, FlameGraphOptions* options) {
  CLI::App* flame_graph = app.add_subcommand("flamegraph", "Write a flame graph to a file or to standard output");
  AddQuery(flame_graph, &options->query);
  flame_graph->add_option("--format", options->format, "svg, html, folded, folded-address or json")
      ->type_name("FORMAT")
      ->check(OneOf({"svg", "html", "folded", "folded-address", "json"}))
      ->capture_default_str();
  flame_graph
      ->add_option("--unit", options->unit,
                   "what widths and folded numbers mean; ns: values in the unit of --type, for cpu nanoseconds; count: "
                   "numbers of samples")
      ->type_name("UNIT")
      ->check(OneOf({"ns", "count"}))
      ->capture_default_str();
  flame_graph
      ->add_option(
          "--out", options->out,
          "file to write, - for standard output; by default flamegraph.svg or flamegraph.html for pictures, else -")
      ->type_name("FILE");
  flame_graph
      ->add_option("--max-nodes", options->max_nodes, "maximum number of frames; the smallest subtrees are left out")
      ->type_name("N")
      ->check(InRange(1, 10'000'000))
      ->capture_default_str();
  return flame_graph;
}

CLI::App* AddRecord(CLI::App& app, RecordOptions* options) {
  CLI::App* record = app.add_subcommand(
      "record",
      "Profile one command: start a private reducer and kernel-collector, run the command, and write a flame graph");
  record->add_option("--rate", options->rate_hz, "samples per second and CPU")
      ->type_name("HZ")
      ->check(InRange(1, 10'000))
      ->capture_default_str();
  record->add_option("--format", options->format, "svg, html or folded")
      ->type_name("FORMAT")
      ->check(OneOf({"svg", "html", "folded"}))
      ->capture_default_str();
  record->add_option("--out", options->out, "file to write, - for standard output; by default flamegraph.FORMAT")
      ->type_name("FILE");
  record
      ->add_option("--duration", options->duration,
                   "stop the command after this time, such as 250ms, 30s or 5m; by default, record waits for the "
                   "command's end")
      ->type_name("TIME");
  return record;
}

CLI::App* AddInspect(CLI::App& app, InspectOptions* options) {
  CLI::App* inspect = app.add_subcommand("inspect", "Print a recorded intake session as JSON lines");
  inspect->add_option("FILE", options->file, "recording that kernel-collector --record-intake-output-path wrote")
      ->required();
  return inspect;
}

CLI::App* AddReplay(CLI::App& app, ReplayOptions* options) {
  CLI::App* replay = app.add_subcommand("replay", "Send a recorded intake session to a reducer, as one node or many");
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
  replay->add_option("--nodes", options->nodes, "number of nodes to replay as; each has its own session and node id")
      ->type_name("N")
      ->check(InRange(1, 20'000))
      ->capture_default_str();
  replay
      ->add_option("--speed", options->speed,
                   "speed of the replay: 1 is as fast as the recording, 10 is ten times as fast, max is as fast as the "
                   "reducer accepts")
      ->type_name("FACTOR")
      ->capture_default_str();
  replay->add_option("--repeat", options->repeat, "number of passes over the recording; 0: until stopped")
      ->type_name("K")
      ->check(InRange(0, 1'000'000))
      ->capture_default_str();
  replay
      ->add_option(
          "--symbols", options->symbols,
          "number of functions in the made-up symbol table that each node sends for an executable, on request; 0: no "
          "tables")
      ->type_name("N")
      ->check(InRange(0, 1'000'000))
      ->capture_default_str();
  AddSwitch(replay, "--tls", &options->tls,
            "connect to the reducer by TLS; --tls-ca, --tls-cert or --tls-server-name imply --tls");
  replay->add_option("--tls-ca", options->tls_ca, "PEM file of the authorities that sign the reducer's certificate")
      ->type_name("FILE");
  CLI::Option* cert =
      replay->add_option("--tls-cert", options->tls_cert, "PEM file of the nodes' certificate chain, with --tls-key");
  CLI::Option* key = replay->add_option("--tls-key", options->tls_key, "PEM file of --tls-cert's private key");
  cert->type_name("FILE")->needs(key);
  key->type_name("FILE")->needs(cert);
  replay->add_option("--tls-server-name", options->tls_server_name, "name that the reducer's certificate must have")
      ->type_name("NAME");
  replay
      ->add_option("--intake-token-file", options->token_file, "file with the token that all nodes send to the reducer")
      ->type_name("FILE");
  AddSwitch(replay, "--json", &options->json, "print the summary at the end as JSON");
  return replay;
}

CLI::App* AddSymbols(CLI::App& app, SymbolsOptions* options) {
  CLI::App* symbols =
      app.add_subcommand("symbols",
                         "Show sampled executables: where the names of their functions come from, and how many sampled "
                         "addresses have no name");
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
      "push",
      "Send the reducer names for executables: make a symbol table of each file on this machine, and send the table");
  push->add_option("PATH", options->paths,
                   "executables, libraries, kernels, modules, separate debug files, .tsym files; a directory "
                   "stands for all such files in it")
      ->required();
  AddServer(push, &options->server);
  push->add_option("--build-id", options->build_id,
                   "build-id of the executable that the names are for, if the file has none; only with one PATH")
      ->type_name("HEX");
  AddSwitch(push, "--whole", &options->whole, "send the whole files; the reducer makes the symbol tables");
  return push;
}

CLI::App* AddResolve(CLI::App& symbols, ResolveOptions* options) {
  CLI::App* resolve = symbols.add_subcommand(
      "resolve",
      "Print the functions, inlined calls, files and lines at addresses of an executable, from its debug information");
  resolve->add_option("FILE", options->file, "an executable, a library or a separate debug file")->required();
  resolve->add_option(
      "ADDRESS", options->addresses,
      "ELF virtual addresses, hexadecimal with or without 0x; without ADDRESS, they are read from standard input, one "
      "per line");
  AddSwitch(resolve, "--json", &options->json,
            "print one JSON line per address, then one line with the source of the names and the number of entries "
            "that were left out");
  return resolve;
}

// All commands. Their parsed values go to `line`, which must outlive them.
struct Commands {
  explicit Commands(CommandLine& line);

  CLI::App app{"Asks a Tributary reducer, profiles one command, or reads recorded sessions.", "tributary"};
  CLI::App *status, *top, *lines, *rollouts, *flame_graph, *record, *inspect, *replay, *symbols, *push, *resolve;
  std::string print_docs;  // only for --help: ParseCommandLine checks for this option before all others
};

Commands::Commands(CommandLine& line) {
  app.formatter(MakeHelpFormatter());  // also for the commands, like the following settings
  app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  app.set_help_flag("--help,-h", "print this help and exit");
  app.set_version_flag("--version", VersionLine("tributary"), "print the version and exit");
  app.add_option(
         "--print-docs", print_docs,
         "print a document made of these options, and exit; man: the man page; man COMMAND: the page of a command; "
         "bash, zsh or fish: the shell's completion script; commands: the names of all commands")
      ->type_name("FORMAT")
      ->check(OneOf({"man", "bash", "zsh", "fish", "commands"}));
  app.require_subcommand(1);
  status = AddStatus(app, &line.status);
  top = AddTop(app, &line.top);
  lines = AddLines(app, &line.lines);
  rollouts = AddRollouts(app, &line.rollouts);
  flame_graph = AddFlameGraph(app, &line.flame_graph);
  record = AddRecord(app, &line.record);
  inspect = AddInspect(app, &line.inspect);
  replay = AddReplay(app, &line.replay);
  symbols = AddSymbols(app, &line.symbols);
  push = AddPush(*symbols, &line.push);
  resolve = AddResolve(*symbols, &line.resolve);
}

CommandLine::Command ChosenCommand(const Commands& commands) {
  using Command = CommandLine::Command;
  return commands.status->parsed()        ? Command::kStatus
         : commands.top->parsed()         ? Command::kTop
         : commands.flame_graph->parsed() ? Command::kFlameGraph
         : commands.inspect->parsed()     ? Command::kInspect
         : commands.replay->parsed()      ? Command::kReplay
         : commands.resolve->parsed()     ? Command::kResolve
         : commands.lines->parsed()       ? Command::kLines
         : commands.rollouts->parsed()    ? Command::kRollouts
         : commands.push->parsed()        ? Command::kPush
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
                                                           : "only record takes a command after --");
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
