#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/log_setup.h"

namespace tributary::docs {
struct Command;
struct Manual;
}  // namespace tributary::docs
namespace YAML {
class Node;
}

namespace tributary {

// What an option says, for a comparison with what it said before. A list's values stand with commas between them.
struct OptionValue {
  std::string name, text;
  bool reloadable = false;
};

// One table per binary: flag `--sample-rate`, environment `EBPF_NET_SAMPLE_RATE` and YAML key `sample_rate` are one
// option. Precedence: flag > environment > file > default. A variable that is set but empty counts as unset. An unknown
// key is an error that names the nearest one. In the file, `intake: {host: h}` is another way to write `intake_host:
// h`. `--help` and `--print-config` print the table.
//
//   Options options("reducer", "Names, stores and shows what kernel-collectors send.");
//   std::string listen;
//   options.Add({.name = "intake-listen", .help = "address that collectors connect to"}, &listen, "127.0.0.1:8000");
//   ASSIGN_OR_RETURN(Options::Outcome outcome, options.Parse(argc, argv, environment));
class Options {
 public:
  struct Spec {
    std::string name;                       // "sample-rate"
    std::string help;                       // one line, lower case, no full stop
    std::string value_name = "VALUE";       // shown in --help: "HZ", "HOST:PORT"
    std::vector<std::string> flag_aliases;  // other flags, without "--"
    std::vector<std::string> env_aliases;   // other environment variables, in full
    // Checks a value; the message says what is allowed ("must be 1 to 10000").
    std::function<absl::Status(std::string_view)> check;
    bool secret = false;      // --print-config shows ***
    bool reloadable = false;  // SIGHUP puts a new value in force; --help says so
    // The only values that are allowed, if there are any here. Completions offer them.
    std::vector<std::string> values;
    // The default as documents show it, if the real one depends on the user or the machine.
    std::string documented_default;
    bool flag_only = false;  // asks for one act, as --health-check: no environment variable, no key of the file
  };
  // A row of the table.
  struct Entry {
    Spec spec;
    std::string default_text;
    std::string text;  // the value in force
    std::string source = "default";
    bool is_bool = false;
    bool is_list = false;
    bool in_file = true;  // may stand in the YAML file and in --print-config
    std::function<absl::Status(std::string_view)> set;
    std::function<void()> clear;  // of a list
    int rank = 0;                 // of the source in force: 0 default, 1 file, 2 environment, 3 flag
  };
  enum class Outcome {
    kRun,
    kExit,  // --help, --version, --print-config or --print-docs printed what was asked for
  };
  using Environment = std::map<std::string, std::string>;

  Options(std::string binary, std::string summary);

  // `target` outlives Parse, which sets it. bool options also take `--name` alone and `--no-name`.
  void Add(Spec spec, std::string* target, std::string_view default_value);
  void Add(Spec spec, bool* target, bool default_value);
  void Add(Spec spec, int64_t* target, int64_t default_value, int64_t min, int64_t max);
  void Add(Spec spec, double* target, double default_value, double min, double max);
  // Repeatable flag; comma-separated in the environment; a list in YAML.
  void Add(Spec spec, std::vector<std::string>* target);

  // Adds --config, --print-config, --print-docs, --version, --help, and the log options by itself. InvalidArgument: the
  // message says which source, which key and what would be right. Call once.
  absl::StatusOr<Outcome> Parse(int argc, const char* const* argv, const Environment& environment);
  // True if a flag, the environment or the file gave the value, be it the default. After Parse.
  bool IsGiven(std::string_view name) const;
  LogSetup log_setup() const;               // what the options --log-… said
  std::vector<OptionValue> values() const;  // all that may stand in a file

  // `make` returns the texts of the manual that the table does not hold; called by --print-docs only.
  void SetManual(docs::Manual (*make)()) { make_manual_ = make; }
  docs::Command Describe() const;  // the table, as base/docs/ turns it into documents

  std::string Help() const;
  std::string PrintConfig() const;  // YAML, with the source of each value as a comment

  static Environment ProcessEnvironment();

 private:
  struct Source {
    int rank;
    std::string name;
  };
  void AddEntry(Entry entry);
  Entry* Find(std::string_view name);
  std::string Nearest(std::string_view name) const;
  absl::Status Apply(Entry& entry, std::string_view value, const Source& source);
  absl::Status ParseEnvironment(const Environment& environment);
  absl::Status ParseFile(const std::string& path);
  // One key of the file. What stands below `key` in a map is an option of both names.
  absl::Status ParseFileKey(const std::string& path, const std::string& key, const YAML::Node& value, bool nested);
  absl::Status ParseFlags(const std::vector<std::string>& args);
  void AddCommon();
  absl::StatusOr<std::string> Docs(const Environment& environment) const;  // what --print-docs prints

  std::string binary_, summary_;
  std::vector<Entry> entries_;
  std::string config_path_;
  bool print_config_ = false, version_ = false, help_ = false;
  bool log_console_ = true;
  std::string print_docs_;
  docs::Manual (*make_manual_)() = nullptr;
  std::string log_level_, log_format_, log_file_path_;
};

}  // namespace tributary
