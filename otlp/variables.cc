#include "otlp/variables.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/ascii_case.h"
#include "base/log.h"

namespace tributary::otlp {

Variable FindVariable(const Variables& variables, const Signal& signal, std::string_view suffix) {
  for (const bool is_per_signal : {true, false}) {
    std::string name = fmt::format("OTEL_EXPORTER_OTLP_{}{}", is_per_signal ? signal.variable_infix : "", suffix);
    const auto it = variables.find(name);
    if (it != variables.end() && !it->second.empty()) return {std::move(name), it->second, is_per_signal};
  }
  return {};
}

void WarnOfIgnored(const Variable& variable, std::string_view must) {
  LogWarning("a variable is ignored, because its value is invalid variable={} allowed=\"{}\"", variable.name, must);
}

// Returns the variable's value in lower case, or "" if it is none of `allowed`.
std::string Keyword(const Variables& variables, const Signal& signal, std::string_view suffix,
                    std::initializer_list<std::string_view> allowed) {
  const Variable variable = FindVariable(variables, signal, suffix);
  std::string value = LowerCase(variable.value);
  if (value.empty() || std::find(allowed.begin(), allowed.end(), value) != allowed.end()) return value;
  WarnOfIgnored(variable, fmt::format("{}", fmt::join(allowed, ", ")));
  return "";
}

std::string Protocol(const Variables& variables, const Signal& signal) {
  return Keyword(variables, signal, "PROTOCOL", {"grpc", "http/protobuf", "http/json"});
}

}  // namespace tributary::otlp
