#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <type_traits>

#include "profile/model.h"

// The functions below list the tables of a dictionary and the references between them. All code that handles every
// table uses these functions.

namespace tributary {

// Calls `visit` once for each table, with the member for this table of each object in `tables`: first with all members
// `strings`, then `executables`, and so on. In this order, a definition refers only to earlier tables or to its own
// table.
template <typename Visit, typename... Tables>
constexpr void ForEachTable(Visit&& visit, Tables&&... tables) {
  visit(tables.strings...);
  visit(tables.executables...);
  visit(tables.frames...);
  visit(tables.nodes...);
  visit(tables.processes...);
  visit(tables.threads...);
}

template <typename Is, typename Definition>
concept DefinitionOf = std::same_as<std::remove_const_t<Definition>, Is>;

// Calls visit(ref) for each reference in a definition (StringRef, ExecutableRef, …). `visit` may change the reference
// if the definition is not const.
template <typename Definition, typename Visit>
constexpr void ForEachRef(Definition& definition, Visit&& visit) {
  if constexpr (DefinitionOf<Executable, Definition>) {
    visit(definition.path);
  } else if constexpr (DefinitionOf<Frame, Definition>) {
    visit(definition.executable);
    visit(definition.name);
  } else if constexpr (DefinitionOf<Node, Definition>) {
    visit(definition.parent);
    visit(definition.frame);
  } else if constexpr (DefinitionOf<Process, Definition>) {
    visit(definition.comm);
    visit(definition.executable_path);
    visit(definition.container_id);
    visit(definition.cgroup_path);
    visit(definition.attributes);
    visit(definition.executable);
  } else if constexpr (DefinitionOf<Thread, Definition>) {
    visit(definition.process);
    visit(definition.name);
  } else {
    static_assert(DefinitionOf<std::string, Definition>, "a definition of no table");
  }
}

// Returns the member of `tables` that `ref` indexes.
template <typename Of>
constexpr auto& TableOf(Of& tables, StringRef) {
  return tables.strings;
}
template <typename Of>
constexpr auto& TableOf(Of& tables, ExecutableRef) {
  return tables.executables;
}
template <typename Of>
constexpr auto& TableOf(Of& tables, FrameRef) {
  return tables.frames;
}
template <typename Of>
constexpr auto& TableOf(Of& tables, NodeRef) {
  return tables.nodes;
}
template <typename Of>
constexpr auto& TableOf(Of& tables, ProcessRef) {
  return tables.processes;
}
template <typename Of>
constexpr auto& TableOf(Of& tables, ThreadRef) {
  return tables.threads;
}

// A struct with one member of type `Each` for every table.
template <typename Each>
struct Tables {
  Each strings, executables, frames, nodes, processes, threads;
};

// The number of definitions in each table, including id 0. All ids below this number are defined.
struct DictionaryCounts {
  uint32_t strings = 1, executables = 1, frames = 1, nodes = 1, processes = 1, threads = 1;

  // Returns true if no count of `part` is larger than the same count of this object.
  bool Covers(const DictionaryCounts& part) const {
    bool covers = true;
    ForEachTable([&](uint32_t mine, uint32_t theirs) { covers = covers && theirs <= mine; }, *this, part);
    return covers;
  }
  // Returns true if all ids in `definition` are defined.
  bool Define(const auto& definition) const {
    bool defined = true;
    ForEachRef(definition, [&](auto ref) { defined = defined && ref.value < TableOf(*this, ref); });
    return defined;
  }
  friend bool operator==(const DictionaryCounts&, const DictionaryCounts&) = default;
};

}  // namespace tributary
