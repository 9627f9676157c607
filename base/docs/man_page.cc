#include "base/docs/man_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "base/docs/config_file.h"
#include "base/docs/roff.h"
#include "base/version.h"

namespace tributary::docs {
namespace {

std::string Upper(std::string text) {
  for (char& c : text) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return text;
}

void AddHeader(const std::string& name, std::string_view summary, int section, std::string_view date,
               std::string& out) {
  if (summary.ends_with('.')) summary.remove_suffix(1);
  out += fmt::format(".\\\" Made by --print-docs from the table of options: change that, not this.\n");
  out += fmt::format(".TH {} {} {} \"Tributary {}\" \"Tributary\"\n", RoffText(Upper(name)), section, date, kVersion);
  out += fmt::format(".SH NAME\n{} \\- {}\n", RoffText(name), RoffText(summary));
}

void AddParagraphs(const std::vector<std::string_view>& paragraphs, std::string& out) {
  for (std::string_view paragraph : paragraphs) out += ".PP\n" + RoffLine(paragraph) + "\n";
}

// Omits ".PP" before the first paragraph, because it must not follow a section's title.
void AddSection(std::string_view title, const std::vector<std::string_view>& paragraphs, std::string& out) {
  if (paragraphs.empty()) return;
  out += fmt::format(".SH {}\n{}\n", title, RoffLine(paragraphs[0]));
  AddParagraphs({paragraphs.begin() + 1, paragraphs.end()}, out);
}

void AddItems(const std::vector<Manual::Item>& items, std::string& out) {
  for (const Manual::Item& item : items) {
    out += fmt::format(".TP\n\\fB{}\\fR\n{}\n", RoffText(item.term), RoffLine(item.text));
  }
}

void AddItemSection(std::string_view title, const std::vector<Manual::Item>& items, std::string& out) {
  if (items.empty()) return;
  out += fmt::format(".SH {}\n", title);
  AddItems(items, out);
}

void AddExamples(const std::vector<Manual::Example>& examples, std::string& out) {
  if (examples.empty()) return;
  out += ".SH EXAMPLES\n";
  for (size_t i = 0; i < examples.size(); ++i) {
    out += fmt::format("{}{}\n.PP\n.nf\n.RS 4\n", i == 0 ? "" : ".PP\n", RoffLine(examples[i].text));
    for (std::string_view rest = examples[i].lines; !rest.empty();) {
      const size_t end = std::min(rest.find('\n'), rest.size());
      out += RoffLine(rest.substr(0, end)) + "\n";
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    out += ".RE\n.fi\n";
  }
}

void AddSeeAlso(const std::vector<std::string>& pages, std::string& out) {
  if (pages.empty()) return;
  out += ".SH SEE ALSO\n";
  for (size_t i = 0; i < pages.size(); ++i) {
    const size_t bracket = pages[i].find('(');
    out += fmt::format("\\fB{}\\fR{}{}\n", RoffText(pages[i].substr(0, bracket)), pages[i].substr(bracket),
                       i + 1 < pages.size() ? "," : "");
  }
}

// "--port PORT, -p PORT".
std::string OptionTitle(const Option& option) {
  std::string out;
  for (const std::string& flag : option.flags) {
    out += fmt::format("{}\\fB{}\\fR", out.empty() ? "" : ", ", RoffText(flag));
    if (!option.value_name.empty()) out += fmt::format(" \\fI{}\\fR", RoffText(option.value_name));
  }
  if (option.is_negatable) out += fmt::format(", \\fB{}\\fR", RoffText(NegatedFlag(option)));
  return option.flags.empty() ? fmt::format("\\fI{}\\fR", RoffText(option.value_name)) : out;
}

void AddOptions(const std::vector<Option>& options, std::string& out) {
  for (const Option& option : options) {
    out += fmt::format(".TP\n{}\n{}.\n", OptionTitle(option), RoffLine(option.help));
    if (!option.values.empty()) {
      out += fmt::format(".br\nValues: \\fB{}\\fR\n", RoffText(Joined(option.values, ", ")));
    }
    if (!option.default_text.empty() && !option.is_secret) {
      out += fmt::format(".br\nDefault: \\fB{}\\fR\n", RoffText(option.default_text));
    }
    if (!option.environment.empty()) {
      out += fmt::format(".br\nEnvironment: \\fB{}\\fR\n", RoffText(Joined(option.environment, ", ")));
    }
  }
}

// Synopsis of a command: "[OPTION]... FILE [ADDRESS]...".
std::string Synopsis(std::string_view name, const Command& command) {
  std::string out = fmt::format(".SH SYNOPSIS\n\\fB{}\\fR", RoffText(name));
  if (!command.options.empty()) out += " [\\fIOPTION\\fR]...";
  for (const Option& argument : command.arguments) {
    const std::string text = fmt::format("\\fI{}\\fR", RoffText(argument.value_name));
    out += (argument.is_required ? " " + text : " [" + text + "]") + (argument.is_list ? "..." : "");
  }
  if (command.runs_command) out += " \\-\\- \\fICOMMAND\\fR [\\fIARGUMENT\\fR]...";
  out += "\n";
  if (!command.commands.empty()) {
    out += fmt::format(".br\n\\fB{}\\fR \\fICOMMAND\\fR [\\fIOPTION\\fR]...\n", RoffText(name));
  }
  return out;
}

void AddOptionSections(const Command& command, std::string& out) {
  if (!command.arguments.empty()) {
    out += ".SH ARGUMENTS\n";
    AddOptions(command.arguments, out);
  }
  if (!command.options.empty()) {
    out += ".SH OPTIONS\n";
    AddOptions(command.options, out);
  }
}

void AddEnvironment(const Command& program, const Manual& manual, std::string& out) {
  if (!HasConfigFile(program)) {
    AddItemSection("ENVIRONMENT", manual.environment, out);
    return;
  }
  out += ".SH ENVIRONMENT\n";
  out += RoffLine(
             "The environment variables that OPTIONS names set these options. A variable's name is EBPF_NET_ and the "
             "option's name in capitals, with _ for each dash. A flag outranks a variable, which outranks the "
             "configuration file.") +
         "\n";
  AddItems(manual.environment, out);
}

std::string PageOf(const Command& program, std::string_view command, int section) {
  return fmt::format("{}-{}({})", program.name, command, section);
}

}  // namespace

std::string ManPage(const Command& program, const Manual& manual, std::string_view date) {
  std::string out;
  AddHeader(program.name, program.summary, manual.section, date, out);
  out += Synopsis(program.name, program);
  AddSection("DESCRIPTION", manual.description, out);
  std::vector<std::string> pages;
  const std::vector<CommandPath> all = AllCommands(program);
  if (!program.commands.empty()) out += ".SH COMMANDS\n";
  for (const CommandPath& path : all) {
    if (path.words.empty()) continue;
    out += fmt::format(".TP\n\\fB{}\\fR\n{}.\n", RoffText(Joined(path.words, " ")), RoffLine(path.command->summary));
    pages.push_back(PageOf(program, Joined(path.words, "-"), manual.section));
  }
  AddOptionSections(program, out);
  AddEnvironment(program, manual, out);
  AddItemSection("FILES", manual.files, out);
  AddItemSection("SIGNALS", manual.signals, out);
  AddItemSection("EXIT STATUS", manual.exit_status, out);
  AddExamples(manual.examples, out);
  pages.insert(pages.end(), manual.see_also.begin(), manual.see_also.end());
  AddSeeAlso(pages, out);
  return out;
}

std::string CommandManPage(const Command& program, const Command& command, std::string_view name, const Manual& manual,
                           std::string_view date) {
  std::string dashed(name), spaced(name);
  std::replace(dashed.begin(), dashed.end(), ' ', '-');
  std::replace(spaced.begin(), spaced.end(), '-', ' ');
  const std::string words = fmt::format("{} {}", program.name, spaced);
  std::string out;
  AddHeader(fmt::format("{}-{}", program.name, dashed), command.summary, manual.section, date, out);
  out += Synopsis(words, command);
  const auto text = std::find_if(manual.commands.begin(), manual.commands.end(),
                                 [&](const Manual::CommandText& one) { return one.command == dashed; });
  if (text != manual.commands.end()) AddSection("DESCRIPTION", text->description, out);
  std::vector<std::string> pages = {fmt::format("{}({})", program.name, manual.section)};
  for (const Command& child : command.commands) {
    pages.push_back(PageOf(program, fmt::format("{}-{}", dashed, child.name), manual.section));
  }
  AddOptionSections(command, out);
  AddItemSection("EXIT STATUS", manual.exit_status, out);
  if (text != manual.commands.end()) AddExamples(text->examples, out);
  AddSeeAlso(pages, out);
  return out;
}

}  // namespace tributary::docs
