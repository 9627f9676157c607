#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/options.h"
#include "reducer/options.h"

namespace tributary {

// Options of the web page, the API and the metrics: their addresses, who may use them, and their limits.
struct HttpTexts {
  std::string listen, answer_bytes, metrics;  // as given
  std::vector<std::string> proxies, users;
};
// Adds the options to `table`. When the table is parsed, their values are in `out` and `texts`.
void AddHttp(Options& table, ReducerOptions& out, HttpTexts& texts);
// Checks the values, and converts `texts` to fields of `out`. InvalidArgument: an option is missing or not valid.
absl::Status TakeHttp(const Options& table, const HttpTexts& texts, ReducerOptions& out);

// Returns OK if `text` is an address to listen on.
absl::Status CheckListen(std::string_view text);
// Returns OK if `text` is a size of at least 16 MiB.
absl::Status CheckBytes(std::string_view text);

}  // namespace tributary
