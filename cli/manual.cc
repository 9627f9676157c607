#include "cli/manual.h"

namespace tributary::cli {
namespace {

std::vector<docs::Manual::CommandText> AskingCommands() {
  return {
      {.command = "status",
       .description = {"Prints the nodes that have connected to the reducer. For each node, it prints how many samples "
                       "were captured, stored and lost, and why samples were lost. For all nodes together, it prints "
                       "the share of complete stacks, and why the other stacks are incomplete."},
       .examples =
           {{"The status of a reducer on another machine:",
             "tributary status --server https://reducer:4040 --tls-ca ca.pem --token-file ~/.tributary-token"}}},
      {.command = "top",
       .description = {"Prints the functions that used the most CPU time themselves: the time of the functions that "
                       "they called does not count. With --type, the samples of another type are used."},
       .examples = {{"One program, in the last hour:",
                     "tributary top --query '{process_executable_name=\"nginx\"}' --from -1h"}}},
      {.command = "lines",
       .description =
           {"Prints the CPU time of each source line of a function. The text of a line is shown if the reducer has the "
            "source file (reducer --source-dir or --debuginfod-urls). With --type, the samples of another type are "
            "used."},
       .examples = {{"The lines of a function that top shows:", "tributary lines handle_request"}}},
      {.command = "rollouts",
       .description = {"Prints when workloads began to run another version, and compares their CPU use in the 30 "
                       "minutes before and after this change. With --type, the samples of another type are compared."},
       .examples = {{"The last week:", "tributary rollouts --from -7d --limit 100"}}},
      {.command = "events",
       .description = {"Prints when processes started, ran another program and ended, newest first. For a process that "
                       "ended, it prints the exit code or the signal, and how long the process ran, how much CPU time "
                       "it used, and its largest memory. All processes have events, even if they ended before a sample "
                       "was taken.",
                       "A node with very many short processes sums up those of the same program, container and "
                       "ending: the kind of such an event is sum.",
                       "With --follow, events are printed as they happen, in order of time. Each event is printed 10 s "
                       "after it happened, because nodes send events every few seconds. Events that reach the reducer "
                       "later than that may not be printed. If the reducer does not answer, tributary waits for it."},
       .examples = {{"Programs that crashed in the last day:", "tributary events --kind crash --from -24h"},
                    {"Everything that one container starts, as it happens:",
                     "tributary events --query '{container_id=~\"4f1a.*\"}' --follow"},
                    {"The short-lived programs of the last hour:", "tributary events --programs --from -1h"}}},
      {.command = "flamegraph",
       .description = {"Writes a flame graph to a file or to standard output: as an SVG picture, as an HTML page, as "
                       "folded stacks for other programs, or as JSON."},
       .examples = {{"A page for one container:",
                     "tributary flamegraph --query '{container_id=~\"4f1a.*\"}' --format html --out web.html"}}},
      {.command = "symbols",
       .description = {"Prints the executables that were sampled or have a symbol table. For each executable, it "
                       "prints the source of its function names, and which share of its sampled addresses has no "
                       "name."},
       .examples = {{"The last day:", "tributary symbols --from -24h"}}},
      {.command = "symbols-push",
       .description = {"Makes a symbol table of each file and sends the table to the reducer. The names also appear in "
                       "samples that are stored already. A directory means all executables, libraries, debug files and "
                       ".tsym files in it and in its subdirectories."},
       .examples = {{"A program and its libraries:", "tributary symbols push ./server ./lib/"}}},
      {.command = "symbols-rm",
       .description =
           {"Deletes symbol tables in the reducer, for example tables with wrong names. The reducer may then "
            "ask nodes for these tables again. The first 6 or more letters of a build-id are enough if no "
            "other table begins with them."},
       .examples = {{"A table that tributary symbols shows:", "tributary symbols rm 4f1a09c2"}}},
      {.command = "symbols-resolve",
       .description =
           {"Prints the functions, inlined calls, files and lines at addresses of an executable. This command needs no "
            "reducer."},
       .examples = {{"One address:", "tributary symbols resolve ./server 4f1a30"}}},
  };
}

std::vector<docs::Manual::CommandText> RecordingCommands() {
  return {
      {.command = "record",
       .description = {"Starts a private reducer and kernel-collector, runs one command, and writes a flame graph of "
                       "this command. tributary record must run as root: kernel-collector(8) needs root's "
                       "capabilities. The programs reducer and kernel-collector must be in tributary's directory or "
                       "in PATH.",
                       "The exit status is the exit status of the command, or 0 if a signal that tributary sent after "
                       "--duration ended the command. It is 127 if the command's program does not exist, and 126 if "
                       "the program cannot be run."},
       .examples = {{"Profile a build:", "tributary record -- make -j8"},
                    {"Profile a server for half a minute:",
                     "tributary record --duration 30s --out server.svg -- ./server"}}},
      {.command = "check",
       .description =
           {"Checks the files in a reducer's data directory, and changes nothing. Prints a line for each damage, with "
            "what to do next, and notes about what was checked. A reducer may use the directory meanwhile: each file "
            "is then checked as it is at one moment. The program reducer must be in tributary's directory or in PATH.",
            "The exit status is 0 if nothing is damaged, 1 if something is damaged, and 2 if the directory could not "
            "be checked, for example because a newer release wrote it."},
       .examples = {{"The default directory:", "tributary check /var/lib/tributary"}}},
      {.command = "inspect",
       .description = {"Prints the messages in a recording of kernel-collector (--record-intake-output-path) as JSON "
                       "lines. The last line is a summary."},
       .examples = {{"Record, then print the summary:",
                     "kernel-collector --record-intake-output-path /var/tmp/node.rec\n"
                     "tributary inspect /var/tmp/node.rec | tail -1"}}},
      {.command = "replay",
       .description =
           {"Sends a recording of kernel-collector to a reducer, as one node or as many nodes, at any speed."},
       .examples = {{"As a thousand nodes, as fast as the reducer accepts:",
                     "tributary replay /var/tmp/node.rec --intake-host reducer --nodes 1000 --speed max"}}},
  };
}

}  // namespace

docs::Manual CliManual() {
  docs::Manual manual{
      .section = 1,
      .description =
          {"tributary shows where a fleet of machines spends its CPU time: it queries a Tributary reducer. "
           "It can also profile one command, and read recordings of kernel-collector. Each command has its "
           "own man page, for example tributary-top(1), and its own --help.",
           "Times are relative (-60s, -15m, -24h, now-5m), or milliseconds since 1970. A selector chooses "
           "samples by their attributes: '{process_executable_name=\"nginx\"}'. Its operators are =, !=, =~ "
           "(matches a regular expression) and !~ (does not match).",
           "A reducer that listens on other addresses than loopback usually requires a token. Write it "
           "into a file that only you can read, and name this file with --token-file. The token is sent only "
           "to the host of --server: tributary does not follow redirects."},
      .environment = {{"TRIBUTARY_SERVER", "URL of the reducer, if --server is not given."},
                      {"TRIBUTARY_TOKEN",
                       "Token to sign in with at the reducer, if --token-file is not given. Programs that tributary "
                       "starts inherit it, and the user's other programs can read it in /proc: prefer --token-file."},
                      {"EBPF_NET_INTAKE_HOST, EBPF_NET_INTAKE_PORT",
                       "Host and port of the reducer to which replay sends, if --intake-host and --intake-port are not "
                       "given."},
                      {"SOURCE_DATE_EPOCH",
                       "Date of the man pages (--print-docs man). The value is a number of seconds since 1970."}},
      .exit_status = {{"0", "The command succeeded."},
                      {"1", "The command failed. The message on standard error says why."},
                      {"2", "An option or an argument is unknown, missing or invalid."}},
      .examples = {{"The busiest functions of the last 15 minutes:", "tributary top"},
                   {"A flame graph of one program:",
                    "tributary flamegraph --query '{process_executable_name=\"nginx\"}' --from -1h --out nginx.svg"},
                   {"Profile one command on this machine:", "tributary record -- make -j8"}},
      .see_also = {"kernel-collector(8)", "reducer(8)", "k8s-collector(8)"},
  };
  manual.commands = AskingCommands();
  for (docs::Manual::CommandText& text : RecordingCommands()) manual.commands.push_back(std::move(text));
  return manual;
}

}  // namespace tributary::cli
