#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace tributary {

constexpr std::string_view kGnuNoteName = "GNU";
constexpr std::string_view kGoNoteName = "Go";
constexpr uint32_t kGnuBuildIdNoteType = 3;
constexpr uint32_t kGoBuildIdNoteType = 4;

// Returns the descriptor (the content) of the first note with this owner and type. `notes`: the bytes of a note segment
// or section (gABI, "Note Section"). `alignment`: the alignment of the segment or section. Any value except 8 counts as
// 4. Returns nullopt if there is no such note, or if a note before it cannot be parsed. The input may be hostile.
std::optional<std::string_view> FindNote(std::string_view notes, uint64_t alignment, std::string_view owner,
                                         uint32_t type);

}  // namespace tributary
