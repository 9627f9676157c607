#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/docs/document.h"
#include "base/options.h"

// What people read of a table of options (options.h).

namespace tributary {

std::string OptionEnvironmentName(std::string_view option);  // "EBPF_NET_SAMPLE_RATE" of "sample-rate"

// The table, as base/docs/ turns it into documents.
docs::Command DescribeOptions(const std::string& binary, const std::string& summary,
                              std::span<const Options::Entry> entries);
// What --help prints.
std::string OptionsHelp(const std::string& binary, const std::string& summary, std::span<const Options::Entry> entries);
// What --print-config prints: YAML, with the source of each value as a comment.
std::string OptionsConfig(std::span<const Options::Entry> entries);

}  // namespace tributary
