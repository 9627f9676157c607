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
  app->add_option("--server", *server, "reducer to ask")
      ->type_name("URL")
      ->envname("TRIBUTARY_SERVER")
      ->capture_default_str();
}

void AddQuery(CLI::App* app, QueryOptions* query) {
  AddServer(app, &query->server);
  app->add_option("--query", query->query, "what to select: '{process_executable_name=\"x\",container_id=~\"a.*\"}'")
      ->type_name("SELECTOR");
  app->add_option("--from", query->from, "begin: -60s, now-5m, or unix milliseconds")
      ->type_name("TIME")
      ->capture_default_str();
  app->add_option("--to", query->to, "end, not included")->type_name("TIME")->capture_default_str();
  app->add_option("--type", query->type, "what was measured: cpu, or another type that there are samples of")
      ->type_name("TYPE")
      ->capture_default_str();
}

CLI::App* AddStatus(CLI::App& app, StatusOptions* options) {
  CLI::App* status = app.add_subcommand("status", "Nodes, samples captured, stored and lost, stack health");
  AddServer(status, &options->server);
  AddSwitch(status, "--json", &options->json, "the reducer's answers as they are");
  return status;
}

CLI::App* AddTop(CLI::App& app, TopOptions* options) {
  CLI::App* top = app.add_subcommand("top", "Functions by what they used themselves: CPU time, or another --type");
  AddQuery(top, &options->query);
  top->add_option("--limit", options->limit, "functions at most")
      ->type_name("N")
      ->check(InRange(1, 10'000))
      ->capture_default_str();
  AddSwitch(top, "--json", &options->json, "the reducer's answer as it is");
  return top;
}

CLI::App* AddLines(CLI::App& app, LinesOptions* options) {
  CLI::App* lines = app.add_subcommand(
      "lines", "Lines of a function by CPU time or another --type, with their text where the reducer has it");
  AddQuery(lines, &options->query);
  lines->add_option("FUNCTION", options->function, "as a flame graph or top shows it")->required();
  lines->add_option("--executable", options->executable, "only of this one: the base name of its file")
      ->type_name("NAME");
  AddSwitch(lines, "--json", &options->json, "the reducer's answer as it is");
  return lines;
}

CLI::App* AddRollouts(CLI::App& app, RolloutsOptions* options) {
  CLI::App* rollouts = app.add_subcommand("rollouts",
                                          "When workloads began to run another version, and their CPU use, or another "
                                          "--type, in the 30 minutes before and after");
  options->query.from = "-24h";
  AddQuery(rollouts, &options->query);
  rollouts->add_option("--limit", options->limit, "rollouts at most, the newest")
      ->type_name("N")
      ->check(InRange(1, 100))
      ->capture_default_str();
  AddSwitch(rollouts, "--json", &options->json, "the reducer's answer as it is");
  return rollouts;
}

CLI::App* AddFlameGraph(CLI::App& app, FlameGraphOptions* options) {
  CLI::App* flame_graph = app.add_subcommand("flamegraph", "A flame graph as a file");
  AddQuery(flame_graph, &options->query);
  flame_graph->add_option("--format", options->format, "svg, html, folded, folded-address or json")
      ->type_name("FORMAT")
      ->check(OneOf({"svg", "html", "folded", "folded-address", "json"}))
      ->capture_default_str();
  flame_graph
      ->add_option("--unit", options->unit,
                   "what widths and folded numbers are: ns, values in the unit of --type, or count, numbers of samples")
      ->type_name("UNIT")
      ->check(OneOf({"ns", "count"}))
      ->capture_default_str();
  flame_graph
      ->add_option("--out", options->out,
                   "file to write, - for standard output; by default flamegraph.svg or .html, else -")
      ->type_name("FILE");
  flame_graph->add_option("--max-nodes", options->max_nodes, "frames at most; the smallest subtrees are cut")
      ->type_name("N")
      ->check(InRange(1, 10'000'000))
      ->capture_default_str();
  return flame_graph;
}

CLI::App* AddRecord(CLI::App& app, RecordOptions* options) {
  CLI::App* record = app.add_subcommand(
      "record", "Profile one command: starts a private reducer and kernel-collector, runs it, leaves a flame graph");
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
  record->add_option("--duration", options->duration, "end the command after that long: 250ms, 30s, 5m")
      ->type_name("TIME");
  return record;
}

CLI::App* AddInspect(CLI::App& app, InspectOptions* options) {
  CLI::App* inspect = app.add_subcommand("inspect", "Print a recorded intake session as JSON lines");
  inspect->add_option("FILE", options->file, "as EBPF_NET_RECORD_INTAKE_OUTPUT_PATH had a kernel-collector write it")
      ->required();
  return inspect;
}

CLI::App* AddReplay(CLI::App& app, ReplayOptions* options) {
  CLI::App* replay = app.add_subcommand("replay", "Send a recorded intake session to a reducer, as one node or many");
  replay->add_option("FILE", options->file, "a recording")->required();
  replay->add_option("--intake-host", options->intake_host, "host of the reducer")
      ->type_name("HOST")
      ->envname("EBPF_NET_INTAKE_HOST")
      ->capture_default_str();
  replay->add_option("--intake-port", options->intake_port, "port of the reducer")
      ->type_name("PORT")
      ->check(InRange(0, 65'535))
      ->envname("EBPF_NET_INTAKE_PORT")
      ->capture_default_str();
  replay->add_option("--nodes", options->nodes, "nodes to be, each with a session and a node id of its own")
      ->type_name("N")
      ->check(InRange(1, 20'000))
      ->capture_default_str();
  replay->add_option("--speed", options->speed, "times as fast as it was recorded, or max: as fast as the reducer goes")
      ->type_name("FACTOR")
      ->capture_default_str();
  replay->add_option("--repeat", options->repeat, "passes over the recording, 0: until stopped")
      ->type_name("K")
      ->check(InRange(0, 1'000'000))
      ->capture_default_str();
  replay
      ->add_option("--symbols", options->symbols,
                   "functions in the made-up symbol table that all nodes have of an executable, 0: no tables")
      ->type_name("N")
      ->check(InRange(0, 1'000'000))
      ->capture_default_str();
  AddSwitch(replay, "--tls", &options->tls, "speak TLS to the reducer; implied by the other tls options");
  replay->add_option("--tls-ca", options->tls_ca, "who signs the reducer's certificate, PEM")->type_name("FILE");
  CLI::Option* cert = replay->add_option("--tls-cert", options->tls_cert, "own certificate chain, PEM, with --tls-key");
  CLI::Option* key = replay->add_option("--tls-key", options->tls_key, "its private key, PEM");
  cert->type_name("FILE")->needs(key);
  key->type_name("FILE")->needs(cert);
  replay->add_option("--tls-server-name", options->tls_server_name, "name that the reducer's certificate is for")
      ->type_name("NAME");
  replay->add_option("--intake-token-file", options->token_file, "file with the token that all nodes show")
      ->type_name("FILE");
  AddSwitch(replay, "--json", &options->json, "print the summary as JSON");
  return replay;
}

CLI::App* AddSymbols(CLI::App& app, SymbolsOptions* options) {
  CLI::App* symbols =
      app.add_subcommand("symbols", "Executables that were sampled: where their names come from, and what has none");
  AddQuery(symbols, &options->query);
  symbols->add_option("--limit", options->limit, "executables at most")
      ->type_name("N")
      ->check(InRange(1, 100'000))
      ->capture_default_str();
  AddSwitch(symbols, "--json", &options->json, "the reducer's answer as it is");
  symbols->require_subcommand(0, 1);
  return symbols;
}

CLI::App* AddPush(CLI::App& symbols, PushOptions* options) {
  CLI::App* push = symbols.add_subcommand(
      "push", "Give the reducer names for executables: makes a symbol table of each file here, and sends that");
  push->add_option(
          "PATH", options->paths,
          "executables, libraries, kernels, modules, separate debug files, .tsym files; of a directory all in it")
      ->required();
  AddServer(push, &options->server);
  push->add_option("--build-id", options->build_id, "whose names these are, where the one file has no build-id")
      ->type_name("HEX");
  AddSwitch(push, "--whole", &options->whole, "send the files as they are: the reducer reads them");
  return push;
}

CLI::App* AddResolve(CLI::App& symbols, ResolveOptions* options) {
  CLI::App* resolve = symbols.add_subcommand(
      "resolve",
      "What addresses of an executable are: functions, inlined calls, files and lines by its debug information");
  resolve->add_option("FILE", options->file, "an executable, a library or a separate debug file")->required();
  resolve->add_option("ADDRESS", options->addresses,
                      "ELF virtual addresses, hexadecimal with or without 0x; none: from standard input, one a line");
  AddSwitch(resolve, "--json", &options->json, "a line of JSON for each, then one of what was left out");
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
         "print a document made of these options, and exit: man, bash, zsh or fish; man COMMAND for a command's "
         "page; commands for the names of all commands")
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
                                                           : "only record takes a command behind --");
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
