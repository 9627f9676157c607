#pragma once

#include <functional>
#include <string>

namespace tributary::store {

// What a check of stored data has found. One line each.
struct Finding {
  // kNote: the data are as they should be, but the user should know something, for example what was not checked.
  // kWarning: all data are intact, but numbers about them are wrong.
  enum class Kind : unsigned char { kNote, kWarning, kDamage, kNewerRelease };
  Kind kind = Kind::kDamage;
  std::string file;
  std::string what;
  std::string advice;  // what to do next; "": nothing
};
using FindingVisitor = std::function<void(const Finding&)>;

}  // namespace tributary::store
