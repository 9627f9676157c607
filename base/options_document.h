#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/docs/document.h"
#include "base/options.h"

// Makes texts for people from a table of options (options.h).

namespace tributary {

std::string OptionEnvironmentName(std::string_view option);  // returns "EBPF_NET_SAMPLE_RATE" for "sample-rate"

// Converts the table to the input of base/docs/, which generates documents from it.
docs::Command DescribeOptions(const std::string& binary, const std::string& summary,
                              std::span<const Options::Entry> entries);
// Returns the output of --help.
std::string OptionsHelp(const std::string& binary, const std::string& summary, std::span<const Options::Entry> entries);
// Returns the output of --print-config: YAML, with the source of each value as a comment.
std::string OptionsConfig(std::span<const Options::Entry> entries);

}  // namespace tributary
