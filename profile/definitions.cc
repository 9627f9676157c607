#include "profile/definitions.h"

#include <iterator>
#include <type_traits>
#include <utility>

namespace tributary {

DictionaryCounts& operator+=(DictionaryCounts& counts, const Definitions& more) {
  ForEachTable([](uint32_t& count, const auto& table) { count += static_cast<uint32_t>(table.size()); }, counts, more);
  return counts;
}

void Append(Definitions& to, Definitions&& from) {
  ForEachTable(
      [](auto& table, auto& more) {
        table.insert(table.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
      },
      to, from);
}

size_t MemoryOf(const Definitions& definitions) {
  size_t bytes = 0;
  ForEachTable([&](const auto& table) { bytes += table.size() * sizeof(table[0]); }, definitions);
  for (const std::string& text : definitions.strings) bytes += text.size();
  return bytes;
}

}  // namespace tributary
