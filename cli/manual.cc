#include "cli/manual.h"

namespace tributary::cli {
namespace {

std::vector<docs::Manual::CommandText> AskingCommands() {
  return {
      {.command = "status",
       .description =
           {"Prints the nodes that the reducer knows. For each node it prints how many samples were captured, stored "
            "and lost, with the reasons. For all nodes together it prints which share of the stacks is complete, and "
            "why the other stacks are not."},
       .examples = {{"Ask a reducer on another machine:", "tributary status --server http://reducer:4040"}}},
      {.command = "top",
       .description =
           {"Prints the functions that used the most CPU time themselves, or that have the most of another type of "
            "samples (--type)."},
       .examples = {{"One program, in the last hour:",
                     "tributary top --query '{process_executable_name=\"nginx\"}' --from -1h"}}},
      {.command = "lines",
       .description =
           {"Prints the CPU time, or another type of samples (--type), of each line of a function, with the line's "
            "text if the reducer has it (reducer --source-dir or --debuginfod-urls)."},
       .examples = {{"A function that top shows:", "tributary lines handle_request"}}},
      {.command = "rollouts",
       .description = {"Prints when workloads began to run another version, and compares their CPU use in the 30 "
                       "minutes before and after. With --type it compares the values per second of another type of "
                       "samples, in the type's unit."},
       .examples = {{"The last week:", "tributary rollouts --from -7d --limit 100"}}},
      {.command = "flamegraph",
       .description =
           {"Writes a flame graph to a file: as a picture, as an interactive page, as folded stacks for other "
            "programs, or as JSON."},
       .examples = {{"A page for one container:",
                     "tributary flamegraph --query '{container_id=~\"4f1a.*\"}' --format html --out web.html"}}},
      {.command = "symbols",
       .description =
           {"Prints the executables that were sampled, where the names of their functions come from, and how "
            "many of their sampled addresses have no name."},
       .examples = {{"The last day:", "tributary symbols --from -24h"}}},
      {.command = "symbols-push",
       .description =
           {"Makes a symbol table of each file and sends it to the reducer. Samples that are stored already get the "
            "names, too. A directory stands for all executables, libraries, debug files and .tsym files in and below "
            "it."},
       .examples = {{"A program and its libraries:", "tributary symbols push ./server ./lib/"}}},
      {.command = "symbols-resolve",
       .description = {"Prints the functions, inlined calls, files and lines at addresses of an executable. It asks no "
                       "reducer."},
       .examples = {{"One address:", "tributary symbols resolve ./server 4f1a30"}}},
  };
}

std::vector<docs::Manual::CommandText> RecordingCommands() {
  return {
      {.command = "record",
       .description =
           {"Starts a private reducer and kernel-collector, runs one command, and writes a flame graph of it. "
            "It must run as root, with the rights of kernel-collector(8). Both programs must be in tributary's "
            "directory or in PATH.",
            "The exit status is that of the command: 127 if there is no such program, and 126 if the program cannot be "
            "run."},
       .examples = {{"Profile a build:", "tributary record -- make -j8"},
                    {"Profile a server for half a minute:",
                     "tributary record --duration 30s --out server.svg -- ./server"}}},
      {.command = "inspect",
       .description = {"Prints a recorded intake session as JSON lines. The last line is a summary."},
       .examples = {{"Record, then look at the summary:",
                     "kernel-collector --record-intake-output-path /var/tmp/node.rec\n"
                     "tributary inspect /var/tmp/node.rec | tail -1"}}},
      {.command = "replay",
       .description = {"Sends a recorded intake session to a reducer again, as one node or many, at any speed."},
       .examples = {{"As a thousand nodes, as fast as the reducer accepts:",
                     "tributary replay /var/tmp/node.rec --intake-host reducer --nodes 1000 --speed max"}}},
  };
}

}  // namespace

docs::Manual CliManual() {
  docs::Manual manual{
      .section = 1,
      .description =
          {"tributary asks a Tributary reducer where a fleet of machines spends its CPU time, profiles one command, or "
           "reads recorded sessions. Each command has its own page, for example tributary-top(1), and --help.",
           "Times are relative (-60s, -15m, -24h, now-5m), or milliseconds since 1970. A selector chooses samples: "
           "'{process_executable_name=\"nginx\"}'. Its operators are =, !=, =~ and !~."},
      .environment = {{"TRIBUTARY_SERVER", "The reducer to ask, if --server is not given."},
                      {"EBPF_NET_INTAKE_HOST, EBPF_NET_INTAKE_PORT",
                       "Host and port of the reducer to which replay sends, if --intake-host and --intake-port are not "
                       "given."},
                      {"SOURCE_DATE_EPOCH",
                       "The date of the pages that --print-docs man prints, in seconds since 1970."}},
      .exit_status = {{"0", "The command succeeded."},
                      {"1", "The command failed. The message on standard error says what to do."},
                      {"2", "An option or an argument is wrong."}},
      .examples = {{"The busiest functions of the last 15 minutes:", "tributary top"},
                   {"A flame graph of one program:",
                    "tributary flamegraph --query '{process_executable_name=\"nginx\"}' --from -1h --out nginx.svg"},
                   {"Profile one command, here and now:", "tributary record -- make -j8"}},
      .see_also = {"kernel-collector(8)", "reducer(8)", "k8s-collector(8)"},
  };
  manual.commands = AskingCommands();
  for (docs::Manual::CommandText& text : RecordingCommands()) manual.commands.push_back(std::move(text));
  return manual;
}

}  // namespace tributary::cli
