#pragma once

#include "base/docs/document.h"

// Returns the options table of an imaginary program. Its texts contain all characters that are special in a document
// format.

namespace tributary::docs {

inline Command OddProgram() {
  Command push{.name = "push", .summary = "Sends files"};
  push.arguments = {{.value_name = "PATH", .help = "what to send", .is_list = true, .is_required = true}};
  Command files{.name = "files", .summary = "Files: [all] of them"};
  files.options = {{.flags = {"--json"}, .help = "the answer as it is"}};
  files.commands = {push};
  Command run{.name = "run", .summary = "Runs one program", .runs_command = true};
  run.options = {{.flags = {"--format"}, .value_name = "FORMAT", .help = "svg or html", .values = {"svg", "html"}}};
  Command program{.name = "odd-program", .summary = "Has what is hard to quote."};
  program.options = {
      {.flags = {"--level", "-l"},
       .value_name = "LEVEL",
       .help =
           ".dots in front, a 'quote', \"two\", a back\\slash, [brackets], a:colon, $HOME, `date`, ~ and ^ and \u2026",
       .default_text = "low",
       .values = {"low", "high"},
       .environment = {"EBPF_NET_LEVEL"},
       .key = "level"},
      {.flags = {"--cert"}, .value_name = "FILE", .help = "a file", .environment = {"EBPF_NET_CERT"}, .key = "cert"},
      {.flags = {"--dir"}, .value_name = "DIR", .help = "a directory", .default_text = "/x y", .key = "dir"},
      {.flags = {"--live"}, .help = "a switch", .default_text = "true", .key = "live", .is_negatable = true},
      {.flags = {"--export"}, .value_name = "URL", .help = "where to", .key = "export", .is_list = true},
      {.flags = {"--token"},
       .value_name = "T",
       .help = "a secret",
       .default_text = "geheim",
       .key = "token",
       .is_secret = true},
      {.flags = {"--help"}, .help = "print this help and exit"},
  };
  program.commands = {files, run};
  return program;
}

inline Manual OddManual() {
  return {.section = 8,
          .description = {"First paragraph.", ".second paragraph begins with a dot."},
          .environment = {{"ODD_HOME", "where it lives"}},
          .files = {{"/etc/odd.yaml", "its configuration"}},
          .signals = {{"SIGTERM", "stops it"}},
          .exit_status = {{"0", "all is well"}},
          .examples = {{"Say it:", ".dot 'quote' \\ ~\nodd-program -l low"}, {"Again:", "odd-program"}},
          .see_also = {"reducer(8)", "odd(1)"},
          .commands = {{.command = "files-push", .description = {"Sends."}, .examples = {{"One:", "odd-program x"}}}}};
}

}  // namespace tributary::docs
