#include <functional>
#include <iostream>
#include <regex>
#include <sstream>
#include <string>
#include <variant>

using Value = std::variant<int, double, std::string>;

std::string Text(const Value& value) {
  return std::visit(
      [](const auto& v) {
        std::ostringstream out;
        out << v;
        return out.str();
      },
      value);
}

int main(int argc, char** argv) {
  std::regex pattern("([a-z]+)=([0-9.]+)");
  std::function<bool(const std::string&)> matches = [&](const std::string& s) { return std::regex_match(s, pattern); };
  for (int i = 1; i < argc; ++i) std::cout << matches(argv[i]) << Text(Value{argv[i]}) << Text(Value{i}) << '\n';
}
