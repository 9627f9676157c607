// otlp_validate SIGNAL FILE: checks every request of a file. SIGNAL is profiles, logs or metrics. Each request follows
// its length (4 bytes, big endian), as in the output of the Collector's file exporter. Prints findings by rule and the
// number of requests. Exit code 0: no finding.

#include <cstdio>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "test/otlp/metrics_validator.h"
#include "test/otlp/validator.h"

namespace tributary::otlp {
namespace {

using Check = std::function<std::vector<Finding>(std::string_view bytes)>;

// Returns nullptr if the signal is unknown.
Check CheckOf(std::string_view signal) {
  if (signal == "profiles") return ValidateProfilesBytes;
  if (signal == "logs") return ValidateLogsBytes;
  if (signal != "metrics") return nullptr;
  return [validator = MetricsValidator()](std::string_view bytes) mutable { return validator.CheckBytes(bytes); };
}

int Main(const char* path, const Check& check) {
  std::ifstream file(path, std::ios::binary);
  std::string bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  std::string_view rest = bytes;
  std::map<std::string, std::pair<int, Finding>> by_rule;
  int requests = 0;
  while (rest.size() >= 4) {
    uint32_t size = 0;
    for (int i = 0; i < 4; ++i) size = size << 8 | static_cast<uint8_t>(rest[static_cast<size_t>(i)]);
    rest.remove_prefix(4);
    if (rest.size() < size) {
      fprintf(stderr, "%s ends inside a request\n", path);
      return 1;
    }
    for (Finding& finding : check(rest.substr(0, size))) {
      auto [it, added] = by_rule.try_emplace(finding.rule, 0, finding);
      ++it->second.first;
    }
    rest.remove_prefix(size);
    ++requests;
  }
  for (const auto& [rule, entry] : by_rule) {
    printf("%s %d times, first at [%s]: %s\n", rule.c_str(), entry.first, entry.second.where.c_str(),
           entry.second.detail.c_str());
  }
  printf("%d requests\n", requests);
  return by_rule.empty() && rest.empty() ? 0 : 1;
}

}  // namespace
}  // namespace tributary::otlp

int main(int argc, char** argv) {
  const auto check = tributary::otlp::CheckOf(argc == 3 ? argv[1] : "");
  if (check == nullptr) {
    fprintf(stderr, "usage: otlp_validate profiles|logs|metrics FILE\n");
    return 2;
  }
  return tributary::otlp::Main(argv[2], check);
}
