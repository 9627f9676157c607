#include "cli/print_docs.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "base/docs/print_docs.h"
#include "base/status.h"
#include "cli/manual.h"
#include "cli/options.h"

namespace tributary::cli {
namespace {

constexpr std::string_view kFlag = "--print-docs";

std::string WithoutStop(std::string text) {
  if (text.ends_with('.')) text.pop_back();
  return text;
}

// "FORMAT:{svg,html}" → {"svg", "html"}: CLI11 keeps the values of a closed set only in the type's name.
std::vector<std::string> Values(const std::string& type_name) {
  const size_t begin = type_name.find('{'), end = type_name.find('}');
  std::vector<std::string> values;
  if (begin == type_name.npos || end == type_name.npos) return values;
  std::string_view rest = std::string_view(type_name).substr(begin + 1, end - begin - 1);
  while (!rest.empty()) {
    const size_t comma = std::min(rest.find(','), rest.size());
    values.emplace_back(rest.substr(0, comma));
    rest.remove_prefix(std::min(comma + 1, rest.size()));
  }
  return values;
}

docs::Option Describe(const CLI::Option& option) {
  docs::Option out{.help = WithoutStop(option.get_description()),
                   .default_text = option.get_default_str(),
                   .is_list = option.get_items_expected_max() > 1,
                   .is_negatable = !option.get_fnames().empty(),
                   .is_required = option.get_required()};
  for (const std::string& name : FlagNames(option)) out.flags.push_back("--" + name);
  for (const std::string& name : option.get_snames()) out.flags.push_back("-" + name);
  const std::string type_name = option.get_type_name();
  out.values = Values(type_name);
  if (out.flags.empty()) {
    out.value_name = option.get_single_name();
  } else if (option.get_items_expected_max() > 0) {
    out.value_name = type_name.substr(0, type_name.find(':'));
  }
  if (const std::string variable = option.get_envname(); !variable.empty()) out.environment.push_back(variable);
  return out;
}

// Returns the arguments after --print-docs; "--print-docs=man" counts as two arguments.
std::vector<std::string> Words(const std::vector<std::string>& arguments) {
  std::vector<std::string> words(arguments.begin() + 1, arguments.end());
  if (arguments[0].size() > kFlag.size()) words.insert(words.begin(), arguments[0].substr(kFlag.size() + 1));
  return words;
}

}  // namespace

std::vector<std::string> FlagNames(const CLI::Option& option) {
  std::vector<std::string> names = option.get_lnames();
  // CLI11 also lists the forms that turn a switch off among the names.
  std::erase_if(names, [&](const std::string& name) {
    return std::find(option.get_fnames().begin(), option.get_fnames().end(), name) != option.get_fnames().end();
  });
  return names;
}

docs::Command Describe(const CLI::App& app) {
  docs::Command out{.name = app.get_name(), .summary = WithoutStop(app.get_description())};
  out.runs_command = app.get_name() == "record";
  for (const CLI::Option* option : app.get_options()) {
    docs::Option described = Describe(*option);
    (described.flags.empty() ? out.arguments : out.options).push_back(std::move(described));
  }
  for (const CLI::App* child : app.get_subcommands([](const CLI::App*) { return true; })) {
    out.commands.push_back(Describe(*child));
  }
  return out;
}

bool AsksForDocs(const std::vector<std::string>& arguments) {
  return !arguments.empty() && (arguments[0] == kFlag || arguments[0].starts_with(std::string(kFlag) + "="));
}

int PrintDocs(const CLI::App& app, const std::vector<std::string>& arguments) {
  std::vector<std::string> words = Words(arguments);
  std::string format;
  if (!words.empty()) {
    format = words[0];
    words.erase(words.begin());
  }
  const docs::Command program = Describe(app);
  if (format == "commands" && words.empty()) {
    for (const docs::CommandPath& path : docs::AllCommands(program)) {
      if (!path.words.empty()) fmt::print("{}\n", docs::Joined(path.words, "-"));
    }
    return kExitOk;
  }
  std::map<std::string, std::string> environment;
  if (const char* epoch = getenv("SOURCE_DATE_EPOCH"); epoch != nullptr) environment["SOURCE_DATE_EPOCH"] = epoch;
  const absl::StatusOr<std::string> text =
      docs::Print(format, docs::Joined(words, "-"), program, CliManual(), environment);
  if (!text.ok()) {
    fmt::print(stderr, "tributary: {}\n", Message(text.status()));
    return kExitUsage;
  }
  fputs(text->c_str(), stdout);
  return kExitOk;
}

}  // namespace tributary::cli
