#include <algorithm>

#include "base/docs/document.h"
#include "base/docs/print_docs.h"
#include "base/options.h"

namespace tributary {

docs::Command Options::Describe() const {
  docs::Command program{.name = binary_, .summary = summary_};
  for (const Entry& entry : entries_) {
    docs::Option option{
        .flags = {"--" + entry.spec.name},
        .value_name = entry.is_bool ? std::string() : entry.spec.value_name,
        .help = entry.spec.help + (entry.spec.reloadable ? "; SIGHUP puts a new value in force" : ""),
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
      option.key = entry.spec.name;
      std::replace(option.key.begin(), option.key.end(), '-', '_');
      option.environment = {EnvironmentName(entry.spec.name)};
      option.environment.insert(option.environment.end(), entry.spec.env_aliases.begin(), entry.spec.env_aliases.end());
    } else {
      option.default_text.clear();
    }
    program.options.push_back(std::move(option));
  }
  return program;
}

absl::StatusOr<std::string> Options::Docs(const Environment& environment) const {
  return docs::Print(print_docs_, "", Describe(), make_manual_ != nullptr ? make_manual_() : docs::Manual{},
                     environment);
}

}  // namespace tributary
