#include "base/options.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdio>
#include <iterator>
#include <utility>

#include "base/docs/document.h"
#include "base/docs/print_docs.h"
#include "base/edit_distance.h"
#include "base/number.h"
#include "base/options_document.h"
#include "base/status.h"
#include "base/version.h"

extern char** environ;

namespace tributary {
namespace {

// Returns the error "must be a, b or c", unless `text` is one of `values`.
absl::Status CheckOneOf(const std::vector<std::string>& values, std::string_view text) {
  if (values.empty() || std::find(values.begin(), values.end(), text) != values.end()) return absl::OkStatus();
  std::string names;
  for (size_t i = 0; i < values.size(); ++i) {
    names += fmt::format("{}{}", i == 0 ? "" : i + 1 < values.size() ? ", " : " or ", values[i]);
  }
  return Error(absl::StatusCode::kInvalidArgument, "must be " + names);
}

absl::StatusOr<bool> ParseBool(std::string_view text) {
  if (text == "true" || text == "1" || text == "yes" || text == "on") return true;
  if (text == "false" || text == "0" || text == "no" || text == "off") return false;
  return Error(absl::StatusCode::kInvalidArgument, "must be true or false");
}

constexpr std::string_view kLogLevels[] = {"trace",   "debug", "info",
                                           "warning", "error", "critical"};  // in the order of enum LogLevel

constexpr std::string_view kLogFormats[] = {"text", "logfmt", "json"};  // in the order of enum LogFormat

// Returns the position of `name` in the list, or the list's size if the list does not contain it.
template <size_t size>
size_t IndexOf(const std::string_view (&names)[size], std::string_view name) {
  return static_cast<size_t>(std::find(std::begin(names), std::end(names), name) - std::begin(names));
}

bool IsLogLevel(std::string_view text) { return IndexOf(kLogLevels, text) < std::size(kLogLevels); }

template <typename T>
absl::StatusOr<T> NumberInRange(std::string_view text, T min, T max) {
  const std::optional<T> value = ParseNumber<T>(text);
  // !(a <= x <= b) also refuses NaN.
  if (!value || !(*value >= min && *value <= max)) {
    return Error(absl::StatusCode::kInvalidArgument, fmt::format("must be a number from {} to {}", min, max));
  }
  return *value;
}

// Returns false for a value that may have a password: a URL with a user does, and the log is no place for it.
bool MayShow(const Options::Spec& spec, std::string_view value) {
  return !spec.secret && value.find('@') == value.npos;
}

}  // namespace

Options::Options(std::string binary, std::string summary) : binary_(std::move(binary)), summary_(std::move(summary)) {}

void Options::AddEntry(Entry entry) {
  TRIBUTARY_CHECK(Find(entry.spec.name) == nullptr);
  if (entry.spec.flag_only) entry.in_file = false;
  entry.text = entry.default_text;
  TRIBUTARY_CHECK(entry.default_text.empty() || entry.set(entry.default_text).ok());
  entries_.push_back(std::move(entry));
}

void Options::Add(Spec spec, std::string* target, std::string_view default_value) {
  *target = std::string(default_value);
  AddEntry(
      {.spec = std::move(spec), .default_text = std::string(default_value), .set = [target](std::string_view text) {
         *target = std::string(text);
         return absl::OkStatus();
       }});
}

void Options::Add(Spec spec, bool* target, bool default_value) {
  AddEntry({.spec = std::move(spec),
            .default_text = default_value ? "true" : "false",
            .is_bool = true,
            .set = [target](std::string_view text) -> absl::Status {
              ASSIGN_OR_RETURN(*target, ParseBool(text));
              return absl::OkStatus();
            }});
}

void Options::Add(Spec spec, int64_t* target, int64_t default_value, int64_t min, int64_t max) {
  AddEntry({.spec = std::move(spec),
            .default_text = fmt::format("{}", default_value),
            .set = [target, min, max](std::string_view text) -> absl::Status {
              ASSIGN_OR_RETURN(*target, NumberInRange<int64_t>(text, min, max));
              return absl::OkStatus();
            }});
}

void Options::Add(Spec spec, double* target, double default_value, double min, double max) {
  AddEntry({.spec = std::move(spec),
            .default_text = fmt::format("{}", default_value),
            .set = [target, min, max](std::string_view text) -> absl::Status {
              ASSIGN_OR_RETURN(*target, NumberInRange<double>(text, min, max));
              return absl::OkStatus();
            }});
}

void Options::Add(Spec spec, std::vector<std::string>* target) {
  AddEntry({.spec = std::move(spec),
            .is_list = true,
            .set =
                [target](std::string_view text) {
                  target->emplace_back(text);
                  return absl::OkStatus();
                },
            .clear = [target] { target->clear(); }});
}

void Options::AddCommon() {
  Add({.name = "log-console", .help = "log to standard error", .flag_aliases = {"console-log"}}, &log_console_, true);
  Add({.name = "log-level",
       .help = "log messages of this level and of more severe levels: trace, debug, info, warning, error or critical; "
               "each level is also a flag: --debug means --log-level=debug",
       .value_name = "LEVEL",
       .reloadable = true,
       .values = {std::begin(kLogLevels), std::end(kLogLevels)}},
      &log_level_, "info");
  Add({.name = "log-format",
       .help = "format of the log: text, for people; logfmt or json (one object per line), for programs",
       .value_name = "FORMAT",
       .values = {std::begin(kLogFormats), std::end(kLogFormats)}},
      &log_format_, "text");
  Add({.name = "log-file-path",
       .help = "write the log to this file, in addition to standard error (--log-console); at 1 MiB the file is "
               "renamed and a new file begins; 5 old files are kept",
       .value_name = "PATH"},
      &log_file_path_, "");
  auto own = [&](std::string name, std::string help, bool* target) {
    Add({.name = std::move(name), .help = std::move(help)}, target, false);
    entries_.back().in_file = false;
  };
  Add({.name = "config",
       .help = "read options from this YAML file",
       .value_name = "FILE",
       .flag_aliases = {"config-file"}},
      &config_path_, "");
  entries_.back().in_file = false;
  own("print-config", "print the value of each option, with its source (flag, environment, file or default), and exit",
      &print_config_);
  Add({.name = "print-docs",
       .help = "print a document about these options, and exit; man: the man page; bash, zsh or fish: the completion "
               "script for this shell; yaml: a configuration file that lists every option in a comment",
       .value_name = "FORMAT",
       .values = {std::begin(docs::kFormats), std::end(docs::kFormats)}},
      &print_docs_, "");
  entries_.back().in_file = false;
  own("version", "print the version and exit", &version_);
  own("help", "print this help and exit", &help_);
}

Options::Entry* Options::Find(std::string_view name) {
  for (Entry& entry : entries_) {
    if (entry.spec.name == name) return &entry;
    for (const std::string& alias : entry.spec.flag_aliases) {
      if (alias == name) return &entry;
    }
  }
  return nullptr;
}

bool Options::IsGiven(std::string_view name) const {
  return std::any_of(entries_.begin(), entries_.end(),
                     [name](const Entry& entry) { return entry.spec.name == name && entry.rank > 0; });
}

std::string Options::GivenText(std::string_view name) const {
  for (const Entry& entry : entries_) {
    if (entry.spec.name == name && entry.rank > 0) return entry.text;
  }
  return "";
}

std::string Options::Nearest(std::string_view name) const {
  name = name.substr(0, 64);  // a key of megabytes in a file is like no option, and would cost as many steps
  std::string best;
  size_t best_distance = SIZE_MAX;
  for (const Entry& entry : entries_) {
    size_t distance = EditDistance(name, entry.spec.name);
    if (distance < best_distance) {
      best_distance = distance;
      best = entry.spec.name;
    }
  }
  return best;
}

absl::Status Options::Apply(Entry& entry, std::string_view value, const Source& source) {
  // A list from a stronger source replaces the list from a weaker source. Within one source the list grows.
  bool appends = entry.is_list && source.rank == entry.rank;
  if (entry.is_list && !appends) entry.clear();
  absl::Status status = entry.spec.check ? entry.spec.check(value) : absl::OkStatus();
  if (status.ok()) status = CheckOneOf(entry.spec.values, value);
  if (status.ok()) status = entry.set(value);
  if (!status.ok()) {
    return Error(absl::StatusCode::kInvalidArgument,
                 fmt::format("{} = {}: {}", source.name, EscapeForDisplay(MayShow(entry.spec, value) ? value : "***"),
                             ToStd(status.message())));
  }
  entry.text = appends ? entry.text + "," + std::string(value) : std::string(value);
  if (!appends) entry.list.clear();
  entry.list.emplace_back(value);
  entry.source = source.name;
  entry.rank = source.rank;
  return absl::OkStatus();
}

absl::Status Options::ParseEnvironment(const Environment& environment) {
  for (Entry& entry : entries_) {
    if (!entry.in_file) continue;  // --config was read before; the others only print, and are flags only
    std::vector<std::string> names = entry.spec.env_aliases;
    names.push_back(OptionEnvironmentName(entry.spec.name));  // last, so that the main name wins
    for (const std::string& name : names) {
      auto it = environment.find(name);
      if (it == environment.end() || it->second.empty()) continue;  // compose files and pod templates unset it so
      Source source{2, "environment variable " + name};
      std::string_view rest = it->second;
      while (entry.is_list && rest.find(',') != rest.npos) {
        RETURN_IF_ERROR(Apply(entry, rest.substr(0, rest.find(',')), source));
        rest.remove_prefix(rest.find(',') + 1);
      }
      RETURN_IF_ERROR(Apply(entry, rest, source));
    }
  }
  return absl::OkStatus();
}

absl::Status Options::ParseFlags(const std::vector<std::string>& args) {
  for (size_t i = 0; i < args.size(); ++i) {
    std::string_view arg = args[i];
    if (arg == "-h") arg = "--help";
    if (!arg.starts_with('-')) {
      return Error(
          absl::StatusCode::kInvalidArgument,
          fmt::format("unexpected argument '{}'; {} --help lists the options", EscapeForDisplay(arg), binary_));
    }
    std::string_view name = arg.substr(arg.starts_with("--") ? 2 : 1);
    size_t equals = name.find('=');
    bool has_value = equals != name.npos;
    std::string_view value = has_value ? name.substr(equals + 1) : std::string_view();
    name = name.substr(0, equals);
    if (!has_value && IsLogLevel(name) && Find(name) == nullptr) {
      value = name;
      name = "log-level";
      has_value = true;
    }
    Entry* entry = Find(name);
    bool negated = false;
    if (entry == nullptr && name.starts_with("no-")) {
      entry = Find(name.substr(3));
      negated = entry != nullptr && entry->is_bool;
      if (!negated) entry = nullptr;
    }
    if (entry == nullptr) {
      return Error(absl::StatusCode::kInvalidArgument,
                   fmt::format("unknown option --{}; did you mean --{}?", EscapeForDisplay(name), Nearest(name)));
    }
    if (entry->is_bool && !has_value) {
      value = negated ? "false" : "true";
    } else if (!has_value) {
      if (i + 1 >= args.size()) {
        return Error(absl::StatusCode::kInvalidArgument, fmt::format("--{} needs a value: {}", name, entry->spec.help));
      }
      value = args[++i];
    }
    RETURN_IF_ERROR(Apply(*entry, value, Source{3, fmt::format("--{}", name)}));
  }
  return absl::OkStatus();
}

absl::StatusOr<Options::Outcome> Options::Parse(int argc, const char* const* argv, const Environment& environment) {
  AddCommon();
  std::vector<std::string> args(argv + std::min(argc, 1), argv + argc);
  // The file's name may come from a flag or the environment, but both outrank the file's contents. So find the name
  // first, then apply file, environment and flags in that order.
  if (auto it = environment.find("EBPF_NET_CONFIG"); it != environment.end()) config_path_ = it->second;
  for (size_t i = 0; i < args.size(); ++i) {
    for (std::string_view name : {"--config", "--config-file", "-config", "-config-file"}) {
      if (args[i] == name && i + 1 < args.size()) config_path_ = args[i + 1];
      if (args[i].starts_with(std::string(name) + "=")) config_path_ = args[i].substr(name.size() + 1);
    }
  }
  if (!config_path_.empty()) RETURN_IF_ERROR(ParseFile(config_path_));

  RETURN_IF_ERROR(ParseEnvironment(environment));
  RETURN_IF_ERROR(ParseFlags(args));
  if (derive_) RETURN_IF_ERROR(ApplyDerived());

  if (help_) {
    fputs(Help().c_str(), stdout);
    return Outcome::kExit;
  }
  if (version_) {
    fmt::print("{}\n", VersionLine(binary_));
    return Outcome::kExit;
  }
  if (!print_docs_.empty()) {
    ASSIGN_OR_RETURN(const std::string text, Docs(environment));
    fputs(text.c_str(), stdout);
    return Outcome::kExit;
  }
  if (print_config_) {
    fputs(PrintConfig().c_str(), stdout);
    return Outcome::kExit;
  }
  return Outcome::kRun;
}

docs::Command Options::Describe() const { return DescribeOptions(binary_, summary_, entries_); }

absl::StatusOr<std::string> Options::Docs(const Environment& environment) const {
  return docs::Print(print_docs_, "", Describe(), make_manual_ != nullptr ? make_manual_() : docs::Manual{},
                     environment);
}

std::string Options::Help() const { return OptionsHelp(binary_, summary_, entries_); }
std::string Options::PrintConfig() const { return OptionsConfig(entries_); }

LogSetup Options::log_setup() const {
  LogSetup setup;
  setup.options.console = log_console_;
  setup.options.file_path = log_file_path_;
  setup.options.level = static_cast<LogLevel>(IndexOf(kLogLevels, log_level_));
  setup.format = static_cast<LogFormat>(IndexOf(kLogFormats, log_format_));
  return setup;
}

std::vector<OptionValue> Options::values() const {
  std::vector<OptionValue> values;
  for (const Entry& entry : entries_) {
    if (entry.in_file) values.push_back({entry.spec.name, entry.text, entry.spec.reloadable});
  }
  return values;
}

Options::Environment Options::ProcessEnvironment() {
  Environment out;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    std::string_view text(*entry);
    if (size_t equals = text.find('='); equals != text.npos) {
      out.emplace(text.substr(0, equals), text.substr(equals + 1));
    }
  }
  return out;
}

}  // namespace tributary
