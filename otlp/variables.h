#pragma once

#include <initializer_list>
#include <map>
#include <string>
#include <string_view>

#include "otlp/transport.h"

namespace tributary::otlp {

// The environment variables OTEL_EXPORTER_OTLP_*, by name. Each has a form for one signal, such as
// OTEL_EXPORTER_OTLP_PROFILES_*, which has precedence. Empty variables count as unset. As OpenTelemetry's specification
// requires, unknown keywords and invalid numbers are ignored with a warning in the log, and the case of keywords does
// not matter. Values may be secret. So neither errors nor warnings contain them.
using Variables = std::map<std::string, std::string>;

struct Variable {
  std::string name;
  std::string_view value;  // "": neither form is set. A view of a text in the Variables
  bool is_per_signal = false;
};
// Returns OTEL_EXPORTER_OTLP_<suffix>, or its form for `signal` if this form is set.
Variable FindVariable(const Variables& variables, const Signal& signal, std::string_view suffix);

// Logs that the value of the variable is not one of those that are allowed.
void WarnOfIgnored(const Variable& variable, std::string_view allowed);

// Returns the variable's value in lower case, or "" if it is none of `allowed`.
std::string Keyword(const Variables& variables, const Signal& signal, std::string_view suffix,
                    std::initializer_list<std::string_view> allowed);

// Returns "grpc", "http/protobuf", "http/json", or "" if the variable PROTOCOL is not set.
std::string Protocol(const Variables& variables, const Signal& signal);

}  // namespace tributary::otlp
