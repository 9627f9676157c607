#include "base/options_document.h"

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <cctype>
#include <string_view>
#include <utility>

#include "base/docs/help_text.h"

namespace tributary {
namespace {

constexpr std::string_view kEnvironmentPrefix = "EBPF_NET_";

std::string YamlQuoted(std::string_view text) {
  YAML::Emitter out;
  out << YAML::DoubleQuoted << std::string(text);
  return out.c_str();
}

std::string KeyOf(const Options::Entry& entry) {
  std::string key = entry.spec.name;
  std::replace(key.begin(), key.end(), '-', '_');
  return key;
}

}  // namespace

std::string OptionEnvironmentName(std::string_view option) {
  std::string out(kEnvironmentPrefix);
  for (char c : option) out += c == '-' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return out;
}

docs::Command DescribeOptions(const std::string& binary, const std::string& summary,
                              std::span<const Options::Entry> entries) {
  docs::Command program{.name = binary, .summary = summary};
  for (const Options::Entry& entry : entries) {
    docs::Option option{
        .flags = {"--" + entry.spec.name},
        .value_name = entry.is_bool ? std::string() : entry.spec.value_name,
        .help = entry.spec.help + (entry.spec.reloadable ? "; SIGHUP applies a new value" : ""),
        .default_text = entry.spec.documented_default.empty() ? entry.default_text : entry.spec.documented_default,
        .values = entry.spec.values,
        .is_list = entry.is_list,
        .is_secret = entry.spec.secret,
        .is_negatable = entry.is_bool && entry.in_file,
    };
    for (const std::string& alias : entry.spec.flag_aliases) {
      option.flags.push_back((alias.size() == 1 ? "-" : "--") + alias);
    }
    if (entry.in_file) {
      option.key = KeyOf(entry);
      option.environment = {OptionEnvironmentName(entry.spec.name)};
      option.environment.insert(option.environment.end(), entry.spec.env_aliases.begin(), entry.spec.env_aliases.end());
    } else {
      option.default_text.clear();
    }
    program.options.push_back(std::move(option));
  }
  return program;
}

std::string OptionsHelp(const std::string& binary, const std::string& summary,
                        std::span<const Options::Entry> entries) {
  std::string out = docs::HelpTitle(binary, summary, "[options]");
  for (const Options::Entry& entry : entries) {
    docs::Option option{.flags = {"--" + entry.spec.name}, .help = entry.spec.help};
    for (const std::string& alias : entry.spec.flag_aliases) {
      option.flags.push_back((alias.size() == 1 ? "-" : "--") + alias);
    }
    if (!entry.is_bool) option.value_name = entry.spec.value_name;
    if (entry.in_file) {
      option.default_text = entry.default_text;
      option.environment = {OptionEnvironmentName(entry.spec.name)};
      option.environment.insert(option.environment.end(), entry.spec.env_aliases.begin(), entry.spec.env_aliases.end());
    }
    out += docs::HelpOption(option, entry.in_file && entry.spec.reloadable ? "; SIGHUP applies a new value" : "");
  }
  out +=
      "\nA flag overrides an environment variable, which overrides the --config file. Keys of the file are option "
      "names with _ for each dash.\n";
  return out;
}

std::string OptionsConfig(std::span<const Options::Entry> entries) {
  std::string out;
  for (const Options::Entry& entry : entries) {
    if (!entry.in_file) continue;
    std::string value;
    if (entry.is_list) {
      value = "[";
      for (const std::string& item : entry.list) {
        value += fmt::format("{}{}", value.size() > 1 ? ", " : "", YamlQuoted(item));
      }
      value += "]";
    } else if (entry.spec.secret && !entry.text.empty()) {
      value = "\"***\"";
    } else {
      bool plain = !entry.text.empty() && std::all_of(entry.text.begin(), entry.text.end(), [](unsigned char c) {
        return std::isalnum(c) || c == '.' || c == '-' || c == '/' || c == '_';
      });
      value = plain ? entry.text : YamlQuoted(entry.text);
    }
    out += fmt::format("{}: {}  # {}\n", KeyOf(entry), value, entry.source);
  }
  return out;
}

}  // namespace tributary
