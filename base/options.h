#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/log_setup.h"

namespace tributary::docs {
struct Command;
struct Manual;
}  // namespace tributary::docs

namespace tributary {

struct YamlNode;

// The value of an option as text, for comparing it with an earlier value. For a list, the text contains all values,
// separated by commas.
struct OptionValue {
  std::string name, text;
  bool reloadable = false;
};

// The table of a program's options. An option can be set by a flag, an environment variable, or a key in a YAML file:
// `--sample-rate`, `EBPF_NET_SAMPLE_RATE` and `sample_rate` set the same option. Precedence: flag > environment > file
// > default. An empty environment variable counts as unset. An unknown key in the file is an error, and the message
// names the most similar key. In the file, `intake: {host: h}` means the same as `intake_host: h`. `--help` prints the
// options, and `--print-config` their values. A flag may begin with one dash, as Go's flags do: `-sample-rate=19`.
//
//   Options options("reducer", "Names, stores and shows the samples that kernel-collectors send.");
//   std::string listen;
//   options.Add({.name = "intake-listen", .help = "address that collectors connect to"}, &listen, "127.0.0.1:8000");
//   ASSIGN_OR_RETURN(Options::Outcome outcome, options.Parse(argc, argv, environment));
class Options {
 public:
  struct Spec {
    std::string name;                       // "sample-rate"
    std::string help;                       // one line, lower case, no full stop
    std::string value_name = "VALUE";       // shown in --help: "HZ", "HOST:PORT"
    std::vector<std::string> flag_aliases;  // other flags, without dashes
    std::vector<std::string> env_aliases;   // other environment variables, in full
    // Checks a value. Its error message must say which values are allowed ("must be 1 to 10000").
    std::function<absl::Status(std::string_view)> check;
    bool secret = false;      // --print-config shows ***
    bool reloadable = false;  // SIGHUP applies a new value; --help mentions it
    // The allowed values, which shell completions offer. Empty: any value is allowed.
    std::vector<std::string> values;
    // The default to show in documents, if the real default depends on the user or the machine.
    std::string documented_default;
    bool flag_only = false;  // requests one action, like --health-check: no environment variable, no key of the file
  };
  // A row of the table.
  struct Entry {
    Spec spec;
    std::string default_text;
    std::string text;                 // the value in force
    std::vector<std::string> list{};  // of a list: its values
    std::string source = "default";
    bool is_bool = false;
    bool is_list = false;
    bool in_file = true;  // allowed in the YAML file and in --print-config
    std::function<absl::Status(std::string_view)> set;
    std::function<void()> clear;  // for a list
    int rank = 0;                 // of the current source: 0 default, 1 file, 2 environment, 3 flag
  };
  enum class Outcome {
    kRun,
    kExit,  // --help, --version, --print-config or --print-docs printed its output
  };
  using Environment = std::map<std::string, std::string>;
  // A value of an option in a file of another format.
  struct ForeignValue {
    std::string option;  // "sample-rate"
    std::string text;
    std::string source;  // place in the file: "line 4, column 23: receivers.profiling.SamplesPerSecond"
  };
  // Returns nullopt if the text is not of the other format. Returns InvalidArgument, with the line, if it is wrong.
  using ForeignReader = std::function<absl::StatusOr<std::optional<std::vector<ForeignValue>>>(std::string_view text)>;
  // Returns values for options that depend on other options: at most one for each option.
  using Deriver = std::function<absl::StatusOr<std::vector<ForeignValue>>()>;

  Options(std::string binary, std::string summary);

  // Adds an option. Parse sets `target`. `target` must outlive the Options object. A bool option also accepts `--name`
  // without a value, and `--no-name`.
  void Add(Spec spec, std::string* target, std::string_view default_value);
  void Add(Spec spec, bool* target, bool default_value);
  void Add(Spec spec, int64_t* target, int64_t default_value, int64_t min, int64_t max);
  void Add(Spec spec, double* target, double default_value, double min, double max);
  // Adds an option with several values. The flag may be repeated. In the environment variable, commas separate the
  // values. In YAML, the option is a list of values, or one value.
  void Add(Spec spec, std::vector<std::string>* target);

  // Parses all sources and sets the targets. Also adds --config, --print-config, --print-docs, --version, --help, and
  // the log options. Returns NotFound if the file of --config cannot be read, and InvalidArgument for any other error.
  // For an invalid value, the message names the source and the key, and says which values are allowed. Call it once.
  absl::StatusOr<Outcome> Parse(int argc, const char* const* argv, const Environment& environment);
  // Returns true if a flag, an environment variable or the file has set the option, even to its default. Call it after
  // Parse, or while it derives.
  bool IsGiven(std::string_view name) const;
  // Returns the value of such an option as text, or "" if nothing has set it. Call it after Parse, or while it derives.
  std::string GivenText(std::string_view name) const;
  LogSetup log_setup() const;               // values of the options --log-…
  std::vector<OptionValue> values() const;  // all options that are allowed in a file

  // Lets --config also accept files of another format. `read` sees the text of every file first.
  void SetForeignReader(ForeignReader read) { read_foreign_ = std::move(read); }
  // Parse calls `derive` when all sources have been read, before it prints anything. A derived value only replaces a
  // default: a flag, an environment variable or a key of the file that sets the same option outranks it.
  void SetDeriver(Deriver derive) { derive_ = std::move(derive); }
  // `make` must return the texts of the manual that are not in this table. Only --print-docs calls it.
  void SetManual(docs::Manual (*make)()) { make_manual_ = make; }
  docs::Command Describe() const;  // the table, for base/docs/, which turns it into documents

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
  absl::Status ApplyDerived();
  // Applies one key of the file. If the value is a map, applies each of its keys, with `key` and `_` before it.
  absl::Status ParseFileKey(const std::string& path, const std::string& key, const YamlNode& value, bool nested);
  absl::Status ParseFlags(const std::vector<std::string>& args);
  void AddCommon();
  absl::StatusOr<std::string> Docs(const Environment& environment) const;  // the output of --print-docs

  std::string binary_, summary_;
  std::vector<Entry> entries_;
  std::string config_path_;
  bool print_config_ = false, version_ = false, help_ = false;
  bool log_console_ = true;
  ForeignReader read_foreign_;
  Deriver derive_;
  std::string print_docs_;
  docs::Manual (*make_manual_)() = nullptr;
  std::string log_level_, log_format_, log_file_path_;
};

}  // namespace tributary
