#include "cli/help.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "base/docs/help_text.h"
#include "base/edit_distance.h"
#include "base/log.h"
#include "cli/print_docs.h"

namespace tributary::cli {
namespace {

class HelpFormatter final : public CLI::FormatterBase {
 public:
  std::string make_help(const CLI::App* app, std::string name, CLI::AppFormatMode) const override {
    const docs::Command command = Describe(*app);
    if (name.empty()) name = command.name;
    std::string arguments = "[options]";
    if (!command.commands.empty()) arguments += app->get_require_subcommand_min() > 0 ? " COMMAND" : " [COMMAND]";
    for (const docs::Option& argument : command.arguments) {
      const std::string shown = argument.value_name + (argument.is_list ? "..." : "");
      arguments += argument.is_required ? " " + shown : " [" + shown + "]";
    }
    if (command.runs_command) arguments += " -- COMMAND [ARGUMENTS...]";
    std::string out = docs::HelpTitle(name, command.summary, arguments);
    if (!command.commands.empty()) {
      for (const docs::Command& child : command.commands)
        out += fmt::format("  {}\n      {}\n", child.name, child.summary);
      out += '\n';
    }
    for (const docs::Option& argument : command.arguments) out += docs::HelpOption(argument);
    for (const docs::Option& option : command.options) out += docs::HelpOption(option);
    if (!command.commands.empty()) out += fmt::format("\n{} COMMAND --help lists the options of a command.\n", name);
    return out;
  }
};

template <typename Names>
std::string Nearest(std::string_view name, const Names& names) {
  const auto distance = [name](const std::string& other) { return EditDistance(name.substr(0, 64), other); };
  const auto nearest = std::min_element(names.begin(), names.end(), [&](const std::string& a, const std::string& b) {
    return distance(a) < distance(b);
  });
  return nearest == names.end() ? std::string() : *nearest;
}

// Describes an argument that no option or command of `command` accepts. `path` is the full name of `command`.
std::string UnknownArgument(const CLI::App& command, const std::string& path, std::string_view argument) {
  if (argument.starts_with("--")) {
    const std::string_view name = argument.substr(2, argument.find('=') - 2);
    std::vector<std::string> names;
    for (const CLI::Option* option : command.get_options()) {
      const std::vector<std::string> own = FlagNames(*option);
      names.insert(names.end(), own.begin(), own.end());
    }
    return fmt::format("unknown option --{}; did you mean --{}?", EscapeForDisplay(name), Nearest(name, names));
  }
  std::vector<std::string> commands;
  for (const CLI::App* child : command.get_subcommands([](const CLI::App*) { return true; })) {
    commands.push_back(child->get_name());
  }
  if (!commands.empty() && !argument.starts_with("-")) {
    return fmt::format("unknown command '{}'; did you mean '{}'?", EscapeForDisplay(argument),
                       Nearest(argument, commands));
  }
  return fmt::format("unexpected argument '{}'; {} --help lists the options", EscapeForDisplay(argument), path);
}

// Rewrites CLI11's "NAME: what is wrong" about an option's value. A refusal from options.cc starts with the value.
std::string WrongValue(const CLI::App& command, const CLI::ParseError& error) {
  const std::string_view text = error.what();
  const size_t colon = text.find(": ");
  const CLI::Option* option =
      colon == text.npos ? nullptr : command.get_option_no_throw(std::string(text.substr(0, colon)));
  if (option == nullptr) return std::string(text);
  if (error.get_exit_code() == static_cast<int>(CLI::ExitCodes::ArgumentMismatch)) {
    return fmt::format("{} needs a value: {}", option->get_name(), option->get_description());
  }
  return fmt::format("{} = {}", option->get_name(), text.substr(colon + 2));
}

}  // namespace

std::shared_ptr<CLI::FormatterBase> MakeHelpFormatter() { return std::make_shared<HelpFormatter>(); }

std::string UsageError(const CLI::App& app, const CLI::ParseError& error) {
  const CLI::App* command = &app;
  std::string path = app.get_name();
  while (!command->get_subcommands().empty()) {
    command = command->get_subcommands().front();
    path += " " + command->get_name();
  }
  const auto is = [&error](CLI::ExitCodes code) { return error.get_exit_code() == static_cast<int>(code); };
  const bool lacks = is(CLI::ExitCodes::RequiredError);
  if (lacks || is(CLI::ExitCodes::ExtrasError)) {
    const std::vector<std::string> unknown = app.remaining(/*recurse=*/true);  // the last one comes first
    const auto option = std::find_if(unknown.begin(), unknown.end(), [](const auto& a) { return a.starts_with("-"); });
    if (option != unknown.end()) return UnknownArgument(*command, path, *option);
    if (!unknown.empty()) return UnknownArgument(*command, path, unknown.back());
  }
  if (lacks) {
    const std::string_view text = error.what();
    const std::string_view argument = text.starts_with("A subcommand") ? "COMMAND" : text.substr(0, text.find(' '));
    return fmt::format("the argument {} is missing; {} --help describes it", argument, path);
  }
  if (is(CLI::ExitCodes::RequiresError)) {
    return "--tls-cert and --tls-key belong together: one is missing";  // no other options need each other
  }
  return WrongValue(*command, error);
}

}  // namespace tributary::cli
