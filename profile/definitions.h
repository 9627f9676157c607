#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "profile/tables.h"

namespace tributary {

// Definitions to append to a dictionary. A definition does not contain its own id: it gets the next id of its table
// when it is appended.
struct Definitions {
  std::vector<std::string> strings;
  std::vector<Executable> executables;
  std::vector<Frame> frames;
  std::vector<Node> nodes;
  std::vector<Process> processes;
  std::vector<Thread> threads;
};

DictionaryCounts& operator+=(DictionaryCounts& counts, const Definitions& more);
void Append(Definitions& to, Definitions&& from);
size_t MemoryOf(const Definitions& definitions);  // bytes

}  // namespace tributary
